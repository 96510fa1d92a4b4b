//! Which events of all jobs are asked for.

use domain::{ClusterName, JobId};
use persistence::FeedFilter;
use strum::{EnumString, IntoStaticStr, VariantNames};
use utoipa::{IntoParams, ToSchema};

use crate::{
    calls::event_id::EventId,
    http::extract::{FromQuery, Parameters},
    problem::Problem,
};

pub(super) const DEFAULT_LIMIT: u32 = 100;
pub(super) const MOST: u64 = 1000;
/// More than anybody lists by hand; who wants so many wants all.
const MOST_JOBS: usize = 200;

/// What an event is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr, VariantNames, ToSchema)]
#[strum(serialize_all = "snake_case")]
#[schema(rename_all = "snake_case")]
pub(crate) enum EventKind {
    /// The job's status, phase or newest attempt has changed.
    Transition,
    /// A line of one of its status files.
    Status,
    /// From here on the job has written more lines than are kept.
    EventsTruncated,
    /// A Slurm job of its name that does not belong to its newest attempt was found, and is canceled.
    Orphan,
    /// The job was deleted, and its events with it.
    Deleted,
}

impl EventKind {
    /// Those that the query names, each once.
    pub(crate) fn all_in(parameters: &Parameters) -> Result<Vec<String>, Problem> {
        let must = || format!("must be one of {}", Self::VARIANTS.join(", "));
        let kind =
            |text: &str| text.parse::<Self>().map_err(|_| Problem::parameter("kind", "invalid", must()));
        let mut kinds = parameters.all("kind").map(kind).collect::<Result<Vec<_>, _>>()?;
        kinds.dedup();
        Ok(kinds.into_iter().map(|kind| <&str>::from(kind).to_owned()).collect())
    }
}

/// Which events. Parameters of different names all have to match; of one that is repeated, any of its values.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "the fields are the document; `Asked` is what they mean")]
pub(crate) struct EventParameters {
    /// Only events after the one with this id: the `next_after` of the answer before. `0`: after none. Default: as JSON
    /// `0`, as a stream after the newest.
    #[param(pattern = "^(?:0|[0-7][0-9a-f]{15})$", example = "00000000000004d2")]
    after: Option<String>,
    /// At most so many; a stream has no end.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<u32>,
    /// Only events of this job. May be repeated.
    #[param(style = Form, explode)]
    job: Option<Vec<JobId>>,
    /// Only events of jobs of this cluster. May be repeated.
    #[param(style = Form, explode)]
    cluster: Option<Vec<String>>,
    /// Only events of this kind. May be repeated.
    #[param(style = Form, explode, inline)]
    kind: Option<Vec<EventKind>>,
}

#[derive(Debug)]
pub(crate) struct Asked {
    pub(super) after: Option<EventId>,
    pub(super) limit: u32,
    pub(super) filter: FeedFilter,
}

impl FromQuery for Asked {
    const KNOWN: &'static [&'static str] = &["after", "limit", "job", "cluster", "kind"];

    fn from_query(parameters: &Parameters) -> Result<Self, Problem> {
        let after = match parameters.one("after")? {
            Some("0") => Some(EventId(0)),
            Some(text) => {
                let wrong = |_| Problem::parameter("after", "invalid", "must be the id of an event, or 0");
                Some(text.parse().map_err(wrong)?)
            }
            None => None,
        };
        let limit = parameters.number("limit", 1, MOST)?;
        let wrong = |_| Problem::parameter("job", "invalid", "must be the id of a job, a UUID");
        let jobs =
            parameters.all("job").map(|text| text.parse().map_err(wrong)).collect::<Result<Vec<_>, _>>()?;
        if jobs.len() > MOST_JOBS {
            return Err(Problem::parameter(
                "job",
                "too_many",
                format!("may be given {MOST_JOBS} times at most"),
            ));
        }
        let wrong = |_| Problem::parameter("cluster", "invalid", "must be the name of a cluster");
        let clusters = parameters.all("cluster").map(|text| text.parse::<ClusterName>().map_err(wrong));
        Ok(Self {
            after,
            limit: limit.and_then(|limit| u32::try_from(limit).ok()).unwrap_or(DEFAULT_LIMIT),
            filter: FeedFilter {
                jobs,
                clusters: clusters.collect::<Result<_, _>>()?,
                kinds: EventKind::all_in(parameters)?,
            },
        })
    }
}
