//! The tasks that a caller selects, to cancel or to retry them.

use std::{collections::HashMap, fmt, str::FromStr};

use serde::Deserialize;
use serde_with::DeserializeFromStr;
use slurm::TaskSet;
use utoipa::ToSchema;

use crate::job::{
    array::{NewestRun, TaskStatus},
    stored::Job,
};

/// Tasks by their state or by their numbers.
#[derive(Debug, Clone, PartialEq, Eq, DeserializeFromStr)]
pub enum TaskSelection {
    All(Selectable),
    Numbers(TaskSet),
}

/// A state by which tasks are selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display, strum::EnumString)]
#[strum(serialize_all = "lowercase")]
pub enum Selectable {
    Pending,
    Running,
    Failed,
    Canceled,
}

/// A text that selects no tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be `pending`, `running`, `failed`, `canceled`, or numbers such as `3,7-9`")]
pub struct InvalidSelection;

impl FromStr for TaskSelection {
    type Err = InvalidSelection;

    fn from_str(text: &str) -> Result<Self, InvalidSelection> {
        let numbers = || text.parse().ok().filter(|numbers: &TaskSet| !numbers.is_empty()).map(Self::Numbers);
        text.parse().ok().map(Self::All).or_else(numbers).ok_or(InvalidSelection)
    }
}

impl fmt::Display for TaskSelection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All(state) => state.fmt(f),
            Self::Numbers(numbers) => numbers.fmt(f),
        }
    }
}

impl Selectable {
    const fn status(self) -> TaskStatus {
        match self {
            Self::Pending => TaskStatus::Pending,
            Self::Running => TaskStatus::Running,
            Self::Failed => TaskStatus::Error,
            Self::Canceled => TaskStatus::Canceled,
        }
    }
}

/// Which tasks of a job are canceled.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CancelRequest {
    /// Of a job with an array: the tasks, as `pending`, `running`, or numbers such as `3,7-9`. Default: the whole job.
    #[schema(value_type = Option<String>, example = "3,7-9")]
    pub tasks: Option<TaskSelection>,
}

impl Job {
    /// The tasks of the job in each of these states.
    pub fn tasks_in(&self, states: &[TaskStatus], newest: &HashMap<u32, NewestRun>) -> TaskSet {
        let all = self.spec.tasks();
        all.iter().filter(|task| states.contains(&self.task_status(*task, newest.get(task)))).collect()
    }

    /// The selected tasks. The error has the selected numbers that the job has no task for.
    pub fn selected(
        &self,
        selection: &TaskSelection,
        newest: &HashMap<u32, NewestRun>,
    ) -> Result<TaskSet, TaskSet> {
        match selection {
            TaskSelection::All(state) => Ok(self.tasks_in(&[state.status()], newest)),
            TaskSelection::Numbers(numbers) => {
                let beyond = numbers.without(&self.spec.tasks());
                if beyond.is_empty() { Ok(numbers.clone()) } else { Err(beyond) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test_case("failed", Some(&TaskSelection::All(Selectable::Failed)) ; "a state")]
    #[test_case("3,7-9", Some(&TaskSelection::Numbers([3, 7, 8, 9].into_iter().collect())) ; "numbers")]
    #[test_case("", None ; "nothing")]
    #[test_case("done", None ; "what is never selected")]
    #[test_case("9-3", None ; "a range that ends before it begins")]
    fn tasks_are_selected_by_state_or_number(text: &str, expected: Option<&TaskSelection>) {
        let read: Option<TaskSelection> = text.parse().ok();
        assert!(read.iter().all(|read| read.to_string() == text));
        assert_eq!(read.as_ref(), expected);
    }
}
