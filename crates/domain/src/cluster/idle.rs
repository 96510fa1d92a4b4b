//! What becomes of a running job that does not use its GPUs.

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString};
use utoipa::ToSchema;

const MOST_MINUTES: u32 = 10_080;
const DEFAULT_PERCENT: u32 = 5;

/// What the service does with a job whose GPUs are idle.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, Display, EnumString, ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum IdleAction {
    /// It only warns.
    #[default]
    Warn,
    /// It pauses the job, which keeps its checkpoints and can be resumed. A task of an array is canceled.
    Pause,
    /// It cancels the job, which ends in `Error` with the reason.
    Cancel,
}

/// A validated policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdlePolicy {
    pub below_percent: u32,
    pub minutes: u32,
    pub action: IdleAction,
}

/// The policy of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterIdlePolicy {
    pub policy: IdlePolicy,
    /// It does not apply to jobs with one of these labels: a key, or a key, a colon and a value.
    pub exempt_labels: Vec<String>,
}

impl IdlePolicy {
    /// A policy of these numbers; `Err` with the wrong field and its range.
    pub fn new(
        below_percent: Option<u32>,
        minutes: u32,
        action: Option<IdleAction>,
    ) -> Result<Self, (&'static str, u32)> {
        let below_percent = below_percent.unwrap_or(DEFAULT_PERCENT);
        for (field, number, most) in
            [("below_percent", below_percent, 100), ("minutes", minutes, MOST_MINUTES)]
        {
            if !(1..=most).contains(&number) {
                return Err((field, most));
            }
        }
        Ok(Self { below_percent, minutes, action: action.unwrap_or_default() })
    }
}

impl ClusterIdlePolicy {
    /// Whether it leaves out a job whose labels meet this: a key, and the value if it has to be this one.
    pub(crate) fn exempts(&self, has: impl Fn(&str, Option<&str>) -> bool) -> bool {
        self.exempt_labels.iter().any(|exempt| match exempt.split_once(':') {
            Some((key, value)) => has(key, Some(value)),
            None => has(exempt, None),
        })
    }
}
