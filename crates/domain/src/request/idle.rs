//! What becomes of a running job that does not use its GPUs.

use std::collections::BTreeMap;

use serde::Deserialize;
use utoipa::ToSchema;

use crate::{
    cluster::idle::{ClusterIdlePolicy, IdleAction, IdlePolicy},
    request::text::Label,
    violation::Faults,
};

/// What becomes of the job if it does not use its GPUs. Default: the cluster's policy, by default nothing.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct IdleRequest {
    /// The GPUs are idle while the utilization of each of them is below this, in percent, on the average of about a minute. Default: 5.
    #[schema(minimum = 1, maximum = 100)]
    pub below_percent: Option<u32>,
    /// After so many minutes without a busy GPU the service acts. At half of this time the message of the job warns.
    #[schema(minimum = 1, maximum = 10_080)]
    pub minutes: u32,
    /// What the service does. Default: `warn`.
    pub action: Option<IdleAction>,
}

/// The policy of a job: its own, or else that of its cluster.
pub(super) fn policy(
    asked: Option<&IdleRequest>,
    cluster: Option<&ClusterIdlePolicy>,
    labels: &BTreeMap<Label, String>,
    faults: &mut Faults,
) -> Option<IdlePolicy> {
    let has = |key: &str, value: Option<&str>| {
        labels.iter().any(|(known, of)| known.as_str() == key && value.is_none_or(|value| value == of))
    };
    let Some(asked) = asked else {
        return cluster.filter(|cluster| !cluster.exempts(has)).map(|cluster| cluster.policy.clone());
    };
    IdlePolicy::new(asked.below_percent, asked.minutes, asked.action)
        .map_err(|(field, most)| {
            let detail = format_args!("must be from 1 to {most}");
            faults.add(format!("/idle_policy/{field}"), "out_of_range", detail);
        })
        .ok()
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    fn of_job(asked: Option<&IdleRequest>, labels: &[(&str, &str)]) -> (Option<IdlePolicy>, usize) {
        let standard = IdlePolicy::new(None, 60, Some(IdleAction::Pause)).unwrap();
        let exempt_labels = vec!["interactive".to_owned(), "team:vision".to_owned()];
        let cluster = ClusterIdlePolicy { policy: standard, exempt_labels };
        let labels = labels.iter().map(|(key, value)| (key.parse().unwrap(), (*value).to_owned())).collect();
        let mut faults = Faults::default();
        let found = policy(asked, Some(&cluster), &labels, &mut faults);
        (found, faults.0.len())
    }

    #[test_case(&[], true ; "no label")]
    #[test_case(&[("interactive", "x")], false ; "a key")]
    #[test_case(&[("team", "vision")], false ; "a key with its value")]
    #[test_case(&[("team", "speech")], true ; "another value")]
    #[test_case(&[("vision", "team")], true ; "the words the other way round")]
    fn labels_exempt_from_the_policy_of_the_cluster(labels: &[(&str, &str)], applies: bool) {
        assert_eq!(of_job(None, labels).0.is_some(), applies);
    }

    #[test]
    fn a_job_has_its_own_policy_whatever_its_labels() {
        let own = IdleRequest { below_percent: Some(20), minutes: 7, action: None };
        let expected = IdlePolicy { below_percent: 20, minutes: 7, action: IdleAction::Warn };
        assert_eq!(of_job(Some(&own), &[("interactive", "")]), (Some(expected), 0));
        let wrong = IdleRequest { minutes: 0, ..own };
        assert_eq!(of_job(Some(&wrong), &[]), (None, 1));
    }
}
