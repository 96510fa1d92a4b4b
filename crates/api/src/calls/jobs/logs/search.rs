//! `GET /jobs/{id}/logs/search`: where a text stands in a job's logs. The cluster searches them.

use axum::Json;
use domain::{AttemptPlace, Job, LogExcerpt, LogFile};
use remote::{LogAnswer, LogFinds, LogHit, LogPattern, LogQuestion, SearchText, SearchedLog};
use utoipa::IntoParams;

use super::{
    place, read,
    selection::{Selection, Stream},
};
use crate::{
    calls::clusters::is_there,
    http::extract::{Call, FromQuery, JobInPath, Parameters},
    problem::{Kind, Problem, problems},
    state::App,
    view::{LogHitView, LogSearchView, SearchedLogView},
};

problems!(
    Problems = SECURED,
    JobNotFound,
    TaskNotFound,
    AttemptNotFound,
    NoLogYet,
    LogUnreadable,
    ClusterGone,
    ClusterUnusable,
    ClusterUnavailable,
    LogsBusy
);

const HITS: u32 = 50;
const MOST_HITS: u32 = 200;

/// Selects logs, and what to search for.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "the fields document the query that `Search` reads")]
pub(crate) struct SearchParameters {
    /// The text to search for, in one line.
    #[param(min_length = 1, max_length = 500, pattern = "^[^\\n\\r\\x00]+$")]
    q: String,
    /// Whether `q` is a POSIX extended regular expression, as for `grep -E`. Default: false.
    regex: Option<bool>,
    /// Whether capital and small letters of ASCII are the same. Default: false.
    ignore_case: Option<bool>,
    /// The byte at which to begin, in one log.
    #[param(maximum = 9_223_372_036_854_775_807_u64)]
    from: Option<u64>,
    /// The maximum number of hits.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
    /// The streams. Default: `all`; with `from`, `out`.
    #[param(inline)]
    stream: Option<Stream>,
    /// The logs of a role's processes, or of a step or service, instead of the job's own: a directory below the attempt's logs.
    #[param(pattern = "^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$")]
    role: Option<String>,
    /// Of a job with an array: the task, which must be given. Of another job: only this process of the role, counted from 0. Default:
    /// all; with `from`, 0.
    #[param(maximum = 999_999)]
    task: Option<u32>,
    /// The attempt, counted from 1. Default: the newest.
    #[param(minimum = 1, maximum = 2_147_483_647)]
    attempt: Option<u32>,
}

/// The parsed query.
#[derive(Debug)]
pub(crate) struct Search {
    selection: Selection,
    pattern: LogPattern,
    from: u64,
    most: u32,
}

impl FromQuery for Search {
    const KNOWN: &'static [&'static str] =
        &["q", "regex", "ignore_case", "from", "limit", "stream", "role", "task", "attempt"];

    fn from_query(parameters: &Parameters) -> Result<Self, Problem> {
        let text: Option<SearchText> = parameters.parse("q", "one line of 1 to 500 characters")?;
        let text =
            text.ok_or_else(|| Problem::parameter("q", "required", "is required: the text to search for"))?;
        let flag = |name| parameters.parse(name, "true or false").map(Option::unwrap_or_default);
        let from = parameters.number("from", 0..=i64::MAX.unsigned_abs())?;
        Ok(Self {
            selection: Selection::for_search(parameters, from)?,
            pattern: LogPattern { text, is_expression: flag("regex")?, ignores_case: flag("ignore_case")? },
            from: from.unwrap_or(0),
            most: parameters.number("limit", 1..=MOST_HITS)?.unwrap_or(HITS),
        })
    }
}

/// Search a job's logs
///
/// Searches on the cluster, for at most five seconds, 2 GiB and `limit` hits. `complete` is false if one of these ended the search; then go
/// on with `from`. Without `regex`, `q` is searched for as it is. A line ends at a newline, and a match within 200 bytes of the hit before in
/// the same line is none of its own. Hits have no line numbers: to count the lines, all bytes before would have to be read.
#[utoipa::path(
    get,
    path = "/jobs/{id}/logs/search",
    params(("id" = domain::JobId, Path, description = "The job's id."), SearchParameters),
    security(("bearer" = ["read"])),
    responses((status = 200, description = "The hits; none if the logs do not have the text.", body = LogSearchView), Problems)
)]
pub(crate) async fn search_job_logs(
    Call(app, caller, JobInPath(id), search): Call<JobInPath, Search>,
) -> Result<Json<LogSearchView>, Problem> {
    let job = crate::calls::jobs::find(&app, &caller, id).await?;
    is_there(&app, &job)?;
    let selection = search.selection.clone().of(&job)?;
    let Some(place) = place::attempt(&app, &job, selection.task, selection.attempt).await? else {
        return Err(read::no_log(&job, &selection));
    };
    let _turn = read::turn(&app, &job).await?;
    let files = read::files(&app, &job, &place, &selection).await?;
    if files.is_empty() {
        return Err(read::no_log(&job, &selection));
    }
    let logs = found(&app, &job, &place, &files, &search).await?;
    let mut view = LogSearchView {
        job_id: id,
        attempt: place.no.get(),
        hits: Vec::new(),
        logs: Vec::new(),
        complete: true,
    };
    for (file, log) in files.iter().zip(logs) {
        match log {
            SearchedLog::Read(finds) => view.add(file, search.from, &finds),
            SearchedLog::Unreadable => return Err(read::unreadable(file)),
            SearchedLog::Missing => {}
        }
    }
    if view.logs.is_empty() { Err(read::no_log(&job, &selection)) } else { Ok(Json(view)) }
}

async fn found(
    app: &App,
    job: &Job,
    place: &AttemptPlace,
    files: &[LogFile],
    search: &Search,
) -> Result<Vec<SearchedLog>, Problem> {
    let logs: Result<Vec<_>, _> = files.iter().map(|file| place::paths_of(job.id, place, file)).collect();
    let question = LogQuestion::Search {
        subject: place.key(job.id).subject,
        logs: logs.map_err(|error| place::no_path(job.id, &error))?,
        pattern: search.pattern.clone(),
        from: search.from,
        most: search.most,
    };
    match read::ask(app, job, vec![question]).await?.pop() {
        Some(LogAnswer::Searched(logs)) => Ok(logs),
        Some(LogAnswer::InvalidPattern(reason)) => {
            let detail = format!("is not a POSIX extended regular expression: {reason}");
            Err(Problem::parameter("q", "invalid_pattern", detail))
        }
        other => {
            tracing::error!(?other, job.id = %job.id, "a search has the answer to another question");
            Err(Problem::new(Kind::Internal, "The search failed."))
        }
    }
}

impl LogSearchView {
    fn add(&mut self, file: &LogFile, from: u64, finds: &LogFinds) {
        let complete = finds.to >= finds.size;
        let log = file.to_string();
        self.hits.extend(finds.hits.iter().map(|hit| shown(&log, hit)));
        self.logs.push(SearchedLogView { log, size: finds.size, from, to: finds.to, complete });
        self.complete &= complete;
    }
}

fn shown(log: &str, hit: &LogHit) -> LogHitView {
    let place = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let excerpt =
        LogExcerpt::new(&hit.window, place(hit.offset.saturating_sub(hit.start)), place(hit.length));
    LogHitView {
        log: log.to_owned(),
        offset: hit.offset,
        excerpt: excerpt.text,
        match_start: excerpt.match_start,
        match_length: excerpt.match_length,
    }
}
