//! When a job goes on after an attempt that did not succeed.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::body::{JobRequest, RetryBudget};
use crate::{cluster::resources::Resources, violation::Faults};

/// When the service makes another attempt. The job's own failures end it, unless `on` lists their exit code.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RestartRequest {
    /// The ends of an attempt after which the job goes on. Default: the failures of the infrastructure, which are `node_failure`,
    /// `boot_failure`, `launch_failure` and `infrastructure`.
    #[schema(min_items = 1, max_items = 20)]
    pub on: Option<Vec<RestartCause>>,
    /// As `retry.max_retries`: restarts after failures of the infrastructure. An attempt that ran for less than ten seconds counts as one.
    pub max_infrastructure: Option<u32>,
    /// How long a task may run in all its attempts together. The last attempt gets a shorter time limit. Default: 120 hours if `on` has
    /// more than failures of the infrastructure, else no limit.
    pub max_total_hours: Option<f64>,
    /// The wait before an attempt. It doubles with each failure of the infrastructure. Default: none after other ends, and after
    /// a failure the wait that the service is configured with.
    pub delay_seconds: Option<u32>,
}

/// How an attempt may end without success.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
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
    /// Its program asked for it with one of these exit codes, for instance after it had saved its state on the warning before the time
    /// limit.
    ExitCode(Vec<u8>),
}

/// A validated policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restart {
    /// Without exit codes.
    pub on: BTreeSet<RestartCause>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub exit_codes: BTreeSet<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_total_seconds: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_seconds: Option<u32>,
}

/// The default of `max_total_hours`: NeMo's launcher has the same.
const MAX_TOTAL_HOURS: f64 = 120.0;

impl Default for Restart {
    fn default() -> Self {
        use RestartCause::{BootFailure, Infrastructure, LaunchFailure, NodeFailure};
        let on = BTreeSet::from([NodeFailure, BootFailure, LaunchFailure, Infrastructure]);
        Self { on, exit_codes: BTreeSet::new(), max_total_seconds: None, delay_seconds: None }
    }
}

impl Restart {
    pub(super) fn from_request(request: &mut JobRequest, faults: &mut Faults) -> Self {
        let Some(asked) = request.restart.take() else { return Self::default() };
        if let Some(most) = asked.max_infrastructure {
            if request.retry.max_retries.is_some_and(|other| other != most) {
                let detail = "contradicts retry.max_retries, which is another name for it; give one of them";
                faults.add("/restart/max_infrastructure", "contradiction", detail);
            }
            let most = faults.within("/restart/max_infrastructure", most, 0..=100);
            request.retry = RetryBudget { max_retries: Some(most) };
        }
        let mut restart = Self::default();
        if let Some(on) = asked.on {
            restart.on.clear();
            for cause in on {
                match cause {
                    RestartCause::ExitCode(codes) => restart.exit_codes.extend(codes),
                    cause => drop(restart.on.insert(cause)),
                }
            }
            if restart.exit_codes.contains(&0) {
                faults.add(
                    "/restart/on",
                    "invalid",
                    "has exit code 0, which is success; a job that is done ends",
                );
            }
            if restart.on.is_empty() && restart.exit_codes.is_empty() {
                faults.add("/restart/on", "invalid", "must have an end; leave `restart` out for the default");
            }
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
        restart
    }

    /// Whether a job goes on after ends that are no failures of the infrastructure.
    fn goes_on(&self) -> bool {
        let planned = [RestartCause::Timeout, RestartCause::Preempted];
        planned.iter().any(|cause| self.on.contains(cause)) || !self.exit_codes.is_empty()
    }

    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
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
