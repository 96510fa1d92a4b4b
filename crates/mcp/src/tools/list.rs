//! `list_jobs`.

use loopback::{Api, Query};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Refused, answer::Of};
use crate::client::{LIST_JOBS, Row};

pub(super) const ABOUT: &str = "Lists the jobs that your token may see, the newest first, in pages. All filters must match; of a filter \
    with several values, one.";

const MOST: u32 = 25;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Such as `Running` or `Error`.
    #[serde(default)]
    status: Vec<String>,
    #[serde(default)]
    cluster: Vec<String>,
    /// Labels as `key:value`; all must match.
    #[serde(default)]
    label: Vec<String>,
    /// A part of the name or of a label, or the beginning of the id.
    q: Option<String>,
    /// The rule of the failure, such as `cuda-out-of-memory`.
    rule: Option<String>,
    network_arch: Option<String>,
    action: Option<String>,
    /// A time such as `2026-11-28T00:00:00Z`.
    created_after: Option<String>,
    /// A time such as `2026-11-28T00:00:00Z`.
    created_before: Option<String>,
    /// The most jobs of a page: 1 to 25.
    #[serde(default = "usual")]
    #[schemars(range(min = 1, max = 25))]
    limit: u32,
    /// `next_page_token` of the page before. Repeat the filters with it.
    page_token: Option<String>,
}

const fn usual() -> u32 {
    15
}

/// A page of jobs.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Page {
    jobs: Vec<Row>,
    /// For the next page; null if there is none.
    next_page_token: Option<String>,
}

pub(super) async fn run(api: Api, arguments: Arguments) -> Result<Of<Page>, Refused> {
    let mut limit = arguments.limit;
    if !(1..=MOST).contains(&limit) {
        return Err(Refused::arguments("limit is not from 1 to 25"));
    }
    loop {
        let list = api.get(&LIST_JOBS, &[], &query(&arguments, limit)).await?;
        let page = Page { jobs: list.jobs, next_page_token: list.next_page_token };
        let answer = Of::new(said(&page, arguments.page_token.is_some()), &page);
        // A cut page would lose the jobs after the cut: the token leads behind them.
        if answer.fits() || limit == 1 {
            return Ok(answer);
        }
        limit = limit.div_ceil(2);
    }
}

fn query(arguments: &Arguments, limit: u32) -> Query {
    let many = [("status", &arguments.status), ("cluster", &arguments.cluster), ("label", &arguments.label)];
    let one = [
        ("q", &arguments.q),
        ("rule", &arguments.rule),
        ("network_arch", &arguments.network_arch),
        ("action", &arguments.action),
        ("created_after", &arguments.created_after),
        ("created_before", &arguments.created_before),
        ("page_token", &arguments.page_token),
    ];
    let pairs = many.into_iter().flat_map(|(name, values)| values.iter().map(move |value| (name, value)));
    let pairs = pairs.chain(one.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?))));
    pairs.fold(Query::new().with("limit", limit), |query, (name, value)| query.with(name, value))
}

fn said(page: &Page, is_later: bool) -> String {
    let number = page.jobs.len();
    match (&page.next_page_token, number) {
        (Some(_), _) => format!("{number} jobs, and there are more: call the tool again with page_token."),
        (None, 0) if is_later => "No more jobs match.".to_owned(),
        (None, 0) => "No job that your token may see matches these filters. Jobs of other owners and deleted jobs are not \
                      visible, so this is no proof that there is none."
            .to_owned(),
        (None, _) => format!("{number} jobs. There are no more that your token may see."),
    }
}
