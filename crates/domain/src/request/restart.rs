//! When a job goes on after an attempt that did not succeed.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use remote::script;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;
use utoipa::ToSchema;

use crate::{cluster::resources::Resources, violation::Faults};

/// When the service makes another attempt. The job's own failures end it, unless `exit_codes` lists their exit code.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RestartRequest {
    /// The ends of an attempt after which the job goes on. Default: the failures of the infrastructure, which are `node_failure`,
    /// `boot_failure`, `launch_failure` and `infrastructure`.
    #[schema(min_items = 1, max_items = 20)]
    pub on: Option<Vec<RestartCause>>,
    /// The exit codes with which the program asks for another attempt, for instance after it has saved its state on the warning before its
    /// time limit. Those from 113 to 124 are of the batch script.
    #[schema(max_items = 20)]
    pub exit_codes: Option<Vec<u8>>,
    /// As `retry.max_retries`: restarts after failures of the infrastructure. An attempt of less than ten seconds counts as one, and one of less
    /// than a minute that ended by its exit code.
    pub max_infrastructure: Option<u32>,
    /// How long a task may run in all its attempts together. The last attempt of a job without an array gets a shorter time
    /// limit, and Slurm does not requeue the job. Default: 120 hours if it goes on after more than failures of the infrastructure, else no limit.
    pub max_total_hours: Option<f64>,
    /// The wait before an attempt; not for arrays. It doubles with each failure of the infrastructure. Default: none after other ends, and
    /// after a failure the wait that the service is configured with.
    pub delay_seconds: Option<u32>,
    /// Whether each attempt queues the next one in Slurm when it begins, so that the job goes on while the service is away. Slurm starts the
    /// next attempt after a time limit, a preemption or one of `exit_codes`, and deletes it if the job succeeds. Needs `timeout` in `on`, which gets `launch_failure` as
    /// well: Slurm may lose an attempt that waits. Not for arrays, and without `delay_seconds`. Default: false.
    pub prequeue: Option<bool>,
}

/// How an attempt may end without success.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, IntoStaticStr, ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum RestartCause {
    /// It reached its time limit.
    Timeout,
    /// A job of higher priority took its nodes, and Slurm did not requeue it.
    Preempted,
    /// One of its nodes failed.
    NodeFailure,
    /// A node could not be booted.
    BootFailure,
    /// Slurm could not start it, or lost it.
    LaunchFailure,
    /// Its log shows a failure of the infrastructure.
    Infrastructure,
}

/// A validated policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restart {
    pub on: BTreeSet<RestartCause>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub exit_codes: BTreeSet<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_total_seconds: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_seconds: Option<u32>,
    /// Each attempt queues the next one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub prequeue: bool,
}

/// The most ends in a request.
const MOST: usize = 20;

/// The default of `max_total_hours`: five days.
const MAX_TOTAL_HOURS: f64 = 120.0;

impl Default for Restart {
    fn default() -> Self {
        use RestartCause::{BootFailure, Infrastructure, LaunchFailure, NodeFailure};
        let on = BTreeSet::from([NodeFailure, BootFailure, LaunchFailure, Infrastructure]);
        Self {
            on,
            exit_codes: BTreeSet::new(),
            max_total_seconds: None,
            delay_seconds: None,
            prequeue: false,
        }
    }
}

impl Restart {
    /// The policy; `max_retries` is the other name of its `max_infrastructure`.
    pub(super) fn from_request(
        asked: Option<RestartRequest>,
        max_retries: &mut Option<u32>,
        faults: &mut Faults,
    ) -> Self {
        let Some(asked) = asked else { return Self::default() };
        if let Some(most) = asked.max_infrastructure {
            if max_retries.is_some_and(|other| other != most) {
                let detail = "contradicts retry.max_retries, which is another name for it; give one of them";
                faults.add("/restart/max_infrastructure", "contradiction", detail);
            }
            *max_retries = Some(faults.within("/restart/max_infrastructure", most, 0..=100));
        }
        let mut restart = Self::default();
        if let Some(on) = asked.on {
            if on.is_empty() || on.len() > MOST {
                let detail = format_args!("must have 1 to {MOST} ends; leave it out for the default");
                faults.add("/restart/on", "invalid", detail);
            }
            restart.on = on.into_iter().collect();
        }
        restart.exit_codes = asked.exit_codes.into_iter().flatten().collect();
        let own = script::EXIT_NOT_NEEDED..=script::EXIT_LIMIT;
        let wrong = restart.exit_codes.iter().find(|code| **code == 0 || own.contains(code)).copied();
        if let Some(code) = wrong {
            let (from, to) = own.into_inner();
            let detail =
                format_args!("has {code}; 0 is success, and {from} to {to} are those of the batch script");
            faults.add("/restart/exit_codes", "invalid", detail);
        }
        if restart.exit_codes.len() > MOST {
            let detail = format_args!("must have at most {MOST} codes");
            faults.add("/restart/exit_codes", "too_many", detail);
        }
        let hours = asked.max_total_hours.or(restart.goes_on().then_some(MAX_TOTAL_HOURS));
        restart.max_total_seconds = hours.map(|hours| {
            if !(Resources::LEAST_HOURS..=Resources::MOST_HOURS).contains(&hours) {
                let detail = format_args!(
                    "is {hours}; must be from {} to {}",
                    Resources::LEAST_HOURS,
                    Resources::MOST_HOURS
                );
                faults.add("/restart/max_total_hours", "out_of_range", detail);
            }
            seconds(hours).max(1)
        });
        restart.delay_seconds =
            asked.delay_seconds.map(|delay| faults.within("/restart/delay_seconds", delay, 0..=86_400));
        restart.prequeue = asked.prequeue.unwrap_or(false);
        if restart.prequeue {
            // A controller may lose an attempt that waits.
            restart.on.insert(RestartCause::LaunchFailure);
        }
        if restart.prequeue && !restart.on.contains(&RestartCause::Timeout) {
            let detail =
                "needs `timeout` in restart.on: the attempt that is queued ahead goes on after a time limit";
            faults.add("/restart/prequeue", "contradiction", detail);
        }
        if restart.prequeue && restart.delay_seconds.is_some() {
            let detail = "contradicts restart.delay_seconds: Slurm starts the attempt that is queued ahead at once; leave one out";
            faults.add("/restart/prequeue", "contradiction", detail);
        }
        restart
    }

    /// Whether the policy suits the job.
    pub(super) fn check(&self, is_array: bool, is_tao: bool, faults: &mut Faults) {
        if is_array && self.delay_seconds.is_some() {
            let detail = "does not go with an array: tasks that wait are submitted together";
            faults.add("/restart/delay_seconds", "unsupported", detail);
        }
        if is_array && self.prequeue {
            let detail = "does not go with an array: an attempt of it carries the tasks that are left";
            faults.add("/restart/prequeue", "unsupported", detail);
        }
        if is_tao && self.prequeue {
            let detail = "goes with a command or with steps; leave `restart` out, then a TAO job goes back into the queue at its time limit by itself";
            faults.add("/restart/prequeue", "unsupported", detail);
        }
    }

    /// Whether a job goes on after ends that are no failures of the infrastructure.
    fn goes_on(&self) -> bool {
        let planned = [RestartCause::Timeout, RestartCause::Preempted];
        planned.iter().any(|cause| self.on.contains(cause)) || !self.exit_codes.is_empty()
    }

    /// Whether Slurm may requeue the job: the policy has nothing to say about the ends after which it does.
    pub(super) fn leaves_requeues_to_slurm(&self) -> bool {
        self.max_total_seconds.is_none() && self.on == Self::default().on
    }

    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// The states of Slurm and the exit codes after which an attempt that was queued ahead goes on. The service decides about all others.
    pub(crate) fn planned_ends(&self) -> Vec<String> {
        let states = [(RestartCause::Timeout, "TIMEOUT"), (RestartCause::Preempted, "PREEMPTED")];
        let states = states.into_iter().filter(|(cause, _)| self.on.contains(cause));
        states.map(|(_, state)| state.to_owned()).chain(self.exit_codes.iter().map(u8::to_string)).collect()
    }

    pub(crate) fn delay(&self) -> Option<TimeDelta> {
        self.delay_seconds.map(|seconds| TimeDelta::seconds(i64::from(seconds)))
    }

    /// How much of the total run time is left after so many seconds; `None` without a limit.
    pub(crate) fn seconds_left(&self, used: u32) -> Option<u32> {
        self.max_total_seconds.map(|most| most.saturating_sub(used))
    }

    pub fn max_total_hours(&self) -> Option<f64> {
        self.max_total_seconds.map(|seconds| f64::from(seconds) / 3600.0)
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` saturates, and the range is checked"
)]
fn seconds(hours: f64) -> u32 {
    (hours * 3600.0).round() as u32
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::violation::Violation;

    fn asked(
        restart: &Value,
        mut max_retries: Option<u32>,
    ) -> (Restart, Option<u32>, Vec<(String, &'static str)>) {
        let asked = serde_json::from_value(restart.clone()).unwrap();
        let mut faults = Faults::default();
        let restart = Restart::from_request(asked, &mut max_retries, &mut faults);
        let found = faults.0.into_iter().map(|Violation { pointer, code, .. }| (pointer, code));
        (restart, max_retries, found.collect())
    }

    #[test]
    fn without_a_policy_only_failures_of_the_infrastructure_are_retried() {
        let (restart, _, faults) = asked(&Value::Null, None);
        assert!(restart.is_default() && faults.is_empty());
        assert!(
            !restart.on.contains(&RestartCause::Timeout) && restart.on.contains(&RestartCause::NodeFailure)
        );
        assert_eq!(restart.seconds_left(u32::MAX), None);
        let (restart, ..) = asked(&json!({"delay_seconds": 5}), None);
        assert_eq!((restart.on, restart.max_total_seconds), (Restart::default().on, None));
    }

    #[test]
    fn a_list_takes_the_place_of_the_default_and_what_may_go_on_for_ever_gets_a_limit() {
        let (restart, retries, faults) =
            asked(&json!({"on": ["timeout"], "exit_codes": [75, 3], "max_infrastructure": 2}), None);
        assert_eq!((faults.len(), retries), (0, Some(2)));
        assert_eq!(restart.on, [RestartCause::Timeout].into());
        assert_eq!(restart.exit_codes, [3, 75].into());
        assert_eq!(restart.max_total_hours(), Some(120.0));
        assert_eq!(restart.seconds_left(3600), Some(119 * 3600));
        let (restart, ..) = asked(&json!({"on": ["node_failure"]}), None);
        assert_eq!(restart.max_total_seconds, None);
    }

    #[test]
    fn a_policy_that_cannot_be_meant_is_refused() {
        let faults = |restart: Value| asked(&restart, Some(3)).2;
        let many = vec!["timeout"; MOST + 1];
        for on in [json!([]), json!(many)] {
            assert_eq!(faults(json!({"on": on})), [("/restart/on".to_owned(), "invalid")]);
        }
        for code in [0, script::EXIT_NOT_NEEDED, script::EXIT_NODE_FAILED, script::EXIT_LIMIT] {
            let codes = ("/restart/exit_codes".to_owned(), "invalid");
            assert_eq!(faults(json!({"exit_codes": [75, code]})), [codes]);
        }
        let many: Vec<u8> = (1..30).collect();
        assert_eq!(faults(json!({"exit_codes": many})), [("/restart/exit_codes".to_owned(), "too_many")]);
        let hours = ("/restart/max_total_hours".to_owned(), "out_of_range");
        assert_eq!(faults(json!({"max_total_hours": 0})).first(), Some(&hours));
        assert_eq!(faults(json!({"max_total_hours": -1e300})), [hours]);
        let twice = ("/restart/max_infrastructure".to_owned(), "contradiction");
        assert_eq!(faults(json!({"max_infrastructure": 4})), [twice]);
        assert_eq!(faults(json!({"max_infrastructure": 3})), []);
        let ahead = ("/restart/prequeue".to_owned(), "contradiction");
        assert_eq!(faults(json!({"prequeue": true})), std::slice::from_ref(&ahead), "no time limit ends it");
        assert_eq!(
            faults(json!({"on": ["timeout"], "prequeue": true, "delay_seconds": 5})),
            [ahead],
            "no wait before it"
        );
        let delay = ("/restart/delay_seconds".to_owned(), "out_of_range");
        assert_eq!(faults(json!({"delay_seconds": 86_401})), [delay]);
    }
}
