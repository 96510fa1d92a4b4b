//! What the results of a task are.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::request::{results::ResultRule, text::Word};

/// What was found for one result of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskResult {
    pub name: Word,
    /// Null without a value.
    #[serde(default)]
    pub value: Value,
    /// Why there is no value: a sentence without its full stop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Its file may still become visible through the shared file system.
    #[serde(skip)]
    pub(crate) may_follow: bool,
}

impl TaskResult {
    pub(crate) fn found(rule: &ResultRule, value: Value) -> Self {
        Self { name: rule.name.clone(), value, problem: None, may_follow: false }
    }

    pub(crate) fn lacking(rule: &ResultRule, problem: impl Into<String>) -> Self {
        Self { name: rule.name.clone(), value: Value::Null, problem: Some(problem.into()), may_follow: false }
    }

    /// The results as they are stored. The column is a text, because `jsonb` refuses NUL and writes out large exponents.
    pub fn stored(results: &[Self]) -> Option<String> {
        serde_json::to_string(results).ok()
    }

    /// The stored results of a task that has ended, in the order of the rules.
    pub fn of_stored(stored: Option<&str>, rules: &[ResultRule]) -> Vec<Self> {
        let known: Vec<Self> = stored.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        let mut known: BTreeMap<_, _> =
            known.into_iter().map(|result| (result.name.clone(), result)).collect();
        let of = |rule: &ResultRule| {
            known.remove(&rule.name).unwrap_or_else(|| Self::lacking(rule, "the task did not run"))
        };
        rules.iter().map(of).collect()
    }

    /// The results of a task that has not ended.
    pub fn of_unended(rules: &[ResultRule]) -> Vec<Self> {
        rules.iter().map(|rule| Self::lacking(rule, "the task has not ended")).collect()
    }
}
