//! The query parameter `wait`.

use std::time::Duration;

use utoipa::IntoParams;

use super::{FromQuery, Parameters};
use crate::problem::Problem;

/// Most proxies time out after a minute.
const LONGEST: u64 = 60;

/// Whether to wait.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Patience {
    /// Answer when the job changes, or after this many seconds with the current state. A change is relative to the `ETag` in
    /// `If-None-Match`; without one, to the job's state when the request arrives, and a finished job is returned at once. A new
    /// `observed_at` alone is not a change. When the service stops, it answers at once. Set the timeout of the client and of
    /// proxies to at least this many seconds and 40 more.
    #[param(value_type = Option<u64>, minimum = 0, maximum = 60, default = 0)]
    pub(crate) wait: Duration,
}

impl FromQuery for Patience {
    const KNOWN: &'static [&'static str] = &["wait"];

    fn from_query(parameters: &Parameters) -> Result<Self, Problem> {
        Ok(Self { wait: Duration::from_secs(parameters.number("wait", 0..=LONGEST)?.unwrap_or(0)) })
    }
}

/// The extra time that a request may take because it waits.
pub(crate) fn requested_wait(query: Option<&str>) -> Duration {
    let waits = query.unwrap_or_default().split('&').filter_map(|pair| pair.strip_prefix("wait="));
    let longest = waits.filter_map(|text| text.parse::<u64>().ok()).max().unwrap_or(0);
    Duration::from_secs(longest.min(LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_requested_wait_is_bounded() {
        for (query, seconds) in
            [("", 0), ("wait=30", 30), ("x=1&wait=5", 5), ("wait=9999999", 60), ("wait=x", 0)]
        {
            assert_eq!(requested_wait(Some(query)).as_secs(), seconds, "{query}");
        }
    }
}
