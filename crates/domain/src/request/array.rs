//! The array of a job: one program for many tasks, each with its own parameters.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroU32,
};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use slurm::{EnvKey, TaskSet};
use utoipa::ToSchema;

use crate::{
    request::{
        secret::is_secret_key,
        variable::{MAX_ENV_VALUE, reserved_variable},
    },
    violation::{Faults, pointer},
};

/// Slurm's default of `MaxArraySize` (slurm.conf(5)): the indices of an array are below it.
pub const DEFAULT_MAX_ARRAY_SIZE: u32 = 1001;
const MAX_TASKS: u32 = 100_000;
/// Some clusters allow millions of indices, but one submission of all would make the list of their parameters long.
const MOST_PER_PIECE: u32 = 10_001;
/// The most bytes of the parameters of one attempt's tasks.
const PIECE_BYTES: usize = 4 * 1024 * 1024;
const MAX_PARAMETERS: usize = 100;

/// The tasks of a job: its program runs once for each, with the task's parameters as environment variables. Give one of `values`, `matrix`
/// and `indices`.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ArrayRequest {
    /// One task for each object: its parameters by name.
    #[schema(value_type = Option<Vec<Object>>, min_items = 1, max_items = 100_000)]
    pub values: Option<Vec<Map<String, Value>>>,
    /// One task for each combination of these values, which are listed by parameter. The last parameter varies fastest.
    #[schema(value_type = Option<BTreeMap<String, Vec<Object>>>)]
    pub matrix: Option<Map<String, Value>>,
    /// The numbers of tasks without parameters: `0-99`, `1-9:2` or `3,7-9`.
    pub indices: Option<String>,
    /// The most tasks that run at once. Default: as many as the cluster allows.
    #[schema(minimum = 1, maximum = 100_000)]
    pub max_parallel: Option<u32>,
}

/// The validated array of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobArray {
    pub tasks: ArrayTasks,
    /// The most tasks that run at once.
    pub max_parallel: Option<NonZeroU32>,
}

/// What distinguishes the tasks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArrayTasks {
    /// The parameters of each task.
    Values(Vec<BTreeMap<EnvKey, Value>>),
    /// All combinations of the values of each parameter; the last parameter varies fastest.
    Matrix(Vec<(EnvKey, Vec<Value>)>),
    /// Only their numbers.
    Indices(TaskSet),
}

impl JobArray {
    /// The validated array of a request. `variables` are those of all tasks.
    pub(super) fn from_request(
        asked: ArrayRequest,
        variables: &BTreeSet<EnvKey>,
        faults: &mut Faults,
    ) -> Option<Self> {
        let ArrayRequest { values, matrix, indices, max_parallel } = asked;
        let tasks = match (values, matrix, indices) {
            (Some(values), None, None) => self::values(values, variables, faults),
            (None, Some(matrix), None) => self::matrix(matrix, variables, faults),
            (None, None, Some(indices)) => faults.parse("/array/indices", &indices).map(ArrayTasks::Indices),
            (None, None, None) => {
                faults.add("/array", "required", "must have one of values, matrix and indices");
                None
            }
            _ => {
                faults.add("/array", "contradiction", "must have only one of values, matrix and indices");
                None
            }
        };
        let most = max_parallel.map(|most| faults.within("/array/max_parallel", most, 1..=MAX_TASKS));
        let tasks = tasks?;
        let count = tasks.count();
        if count == 0 || count > u64::from(MAX_TASKS) {
            let detail = format_args!("has {count} tasks; must have 1 to {MAX_TASKS}");
            faults.add("/array", "out_of_range", detail);
            return None;
        }
        Some(Self { tasks, max_parallel: most.and_then(NonZeroU32::new) })
    }

    /// The numbers of its tasks: from 0 without a gap, unless the job lists them.
    pub fn tasks(&self) -> TaskSet {
        match &self.tasks {
            ArrayTasks::Indices(tasks) => tasks.clone(),
            tasks @ (ArrayTasks::Values(_) | ArrayTasks::Matrix(_)) => {
                TaskSet::first(u32::try_from(tasks.count()).unwrap_or(MAX_TASKS))
            }
        }
    }

    /// How many tasks an attempt may carry: as Slurm's `MaxArraySize` allows, and as the list of their parameters has room.
    pub fn piece_size(&self, max_array_size: u32) -> u32 {
        let longest = match &self.tasks {
            ArrayTasks::Values(tasks) => tasks.iter().map(|task| task.iter().map(written).sum()).max(),
            ArrayTasks::Matrix(parameters) => {
                let longest = |(name, values): &(EnvKey, Vec<Value>)| {
                    values.iter().map(|value| written((name, value))).max().unwrap_or_default()
                };
                Some(parameters.iter().map(longest).sum())
            }
            ArrayTasks::Indices(_) => None,
        };
        let room = PIECE_BYTES / longest.unwrap_or(0).max(1);
        max_array_size.min(MOST_PER_PIECE).min(u32::try_from(room).unwrap_or(u32::MAX)).max(1)
    }

    /// The names of the parameters that its tasks have.
    pub fn parameter_names(&self) -> BTreeSet<&EnvKey> {
        match &self.tasks {
            ArrayTasks::Values(tasks) => tasks.iter().flat_map(BTreeMap::keys).collect(),
            ArrayTasks::Matrix(parameters) => parameters.iter().map(|(name, _)| name).collect(),
            ArrayTasks::Indices(_) => BTreeSet::new(),
        }
    }

    /// The parameters of a task; none for a task without parameters or a number that is no task.
    pub fn parameters(&self, task: u32) -> BTreeMap<&EnvKey, &Value> {
        let Ok(mut place) = usize::try_from(task) else { return BTreeMap::new() };
        match &self.tasks {
            ArrayTasks::Values(tasks) => tasks.get(place).into_iter().flatten().collect(),
            ArrayTasks::Matrix(_) if u64::from(task) >= self.tasks.count() => BTreeMap::new(),
            ArrayTasks::Matrix(parameters) => {
                let mut chosen = BTreeMap::new();
                for (name, values) in parameters.iter().rev() {
                    chosen.extend(values.get(place % values.len().max(1)).map(|value| (name, value)));
                    place /= values.len().max(1);
                }
                chosen
            }
            ArrayTasks::Indices(_) => BTreeMap::new(),
        }
    }
}

impl ArrayTasks {
    fn count(&self) -> u64 {
        match self {
            Self::Values(tasks) => tasks.len() as u64,
            Self::Matrix(parameters) => {
                parameters.iter().fold(1, |count, (_, values)| count.saturating_mul(values.len() as u64))
            }
            Self::Indices(tasks) => u64::from(tasks.len()),
        }
    }
}

fn values(
    asked: Vec<Map<String, Value>>,
    variables: &BTreeSet<EnvKey>,
    faults: &mut Faults,
) -> Option<ArrayTasks> {
    let before = faults.0.len();
    let mut tasks = Vec::new();
    for (place, values) in asked.into_iter().enumerate() {
        let at = pointer("/array/values", &place.to_string());
        if values.len() > MAX_PARAMETERS {
            faults.add(&at, "too_many", format_args!("must have at most {MAX_PARAMETERS} parameters"));
        }
        let mut task = BTreeMap::new();
        for (name, value) in values.into_iter().take(MAX_PARAMETERS) {
            let at = pointer(&at, &name);
            check_value(&at, &value, faults);
            if let Some(name) = parameter(&at, &name, variables, faults) {
                task.insert(name, value);
            }
        }
        tasks.push(task);
        // The first faults show what is wrong with the others.
        if faults.0.len() > before + 20 {
            return None;
        }
    }
    Some(ArrayTasks::Values(tasks))
}

fn matrix(
    asked: Map<String, Value>,
    variables: &BTreeSet<EnvKey>,
    faults: &mut Faults,
) -> Option<ArrayTasks> {
    if !(1..=MAX_PARAMETERS).contains(&asked.len()) {
        let detail = format_args!("must have 1 to {MAX_PARAMETERS} parameters");
        faults.add("/array/matrix", "out_of_range", detail);
        return None;
    }
    let mut parameters = Vec::new();
    for (name, values) in asked {
        let at = pointer("/array/matrix", &name);
        let name = parameter(&at, &name, variables, faults);
        let Value::Array(values) = values else {
            faults.add(&at, "wrong_type", "must be the list of the parameter's values");
            continue;
        };
        if values.is_empty() {
            faults.add(&at, "out_of_range", "is empty, so that there would be no task; give it a value");
        }
        for (place, value) in values.iter().enumerate() {
            check_value(&pointer(&at, &place.to_string()), value, faults);
        }
        parameters.extend(name.map(|name| (name, values)));
    }
    Some(ArrayTasks::Matrix(parameters))
}

/// A parameter becomes an environment variable.
fn parameter(at: &str, name: &str, variables: &BTreeSet<EnvKey>, faults: &mut Faults) -> Option<EnvKey> {
    let name: EnvKey = faults.parse(at, name)?;
    if let Some(detail) = reserved_variable(&name) {
        faults.add(at, "reserved", detail);
    } else if name.as_str().starts_with("TAO_TASK") || name.as_str().starts_with("_tao_") {
        faults.add(at, "reserved", "is reserved: the service sets TAO_TASK* and _tao_*; use another name");
    } else if is_secret_key(&name) {
        faults.add(
            at,
            "invalid",
            "has the name of a secret, but parameters are shown; use secret_env_vars or another name",
        );
    } else if variables.contains(&name) {
        faults.add(at, "contradiction", "is also an environment variable of the job; give it once");
    }
    Some(name)
}

fn check_value(at: &str, value: &Value, faults: &mut Faults) {
    let text = value_text(value).unwrap_or_default();
    if text.len() > MAX_ENV_VALUE || text.contains('\0') {
        faults.add(at, "invalid", format_args!("must be at most {MAX_ENV_VALUE} bytes without NUL"));
    }
}

/// The size of a parameter in the list of tasks: as JSON and as a variable, both in base64.
fn written((name, value): (&EnvKey, &Value)) -> usize {
    let text = value_text(value).unwrap_or_default();
    4 * (name.as_str().len() + text.len())
}

/// A parameter as an environment variable: a text as it is, everything else as JSON. Null is no variable.
pub fn value_text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => Some(value.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use test_case::test_case;

    use super::*;

    fn read(request: Value) -> Result<JobArray, Vec<String>> {
        let mut faults = Faults::default();
        let variables = BTreeSet::from(["SHARED".parse().unwrap()]);
        let array = JobArray::from_request(serde_json::from_value(request).unwrap(), &variables, &mut faults);
        let faults: Vec<_> =
            faults.0.iter().map(|fault| format!("{} {}", fault.pointer, fault.code)).collect();
        array.filter(|_| faults.is_empty()).ok_or(faults)
    }

    fn of(array: &JobArray, task: u32) -> Value {
        json!(array.parameters(task))
    }

    #[test]
    fn each_object_is_a_task() {
        let array = read(json!({"values": [{"lr": 0.1}, {"lr": "1e-3", "layers": [2, 3]}]})).unwrap();
        assert_eq!(array.tasks().to_string(), "0-1");
        assert_eq!(of(&array, 1), json!({"lr": "1e-3", "layers": [2, 3]}));
        assert_eq!(of(&array, 2), json!({}));
    }

    #[test]
    fn an_attempt_carries_what_slurm_allows_and_its_list_has_room_for() {
        let of = |array: Value, max| read(array).unwrap().piece_size(max);
        assert_eq!(of(json!({"indices": "0-99999"}), 1001), 1001);
        assert_eq!(of(json!({"indices": "0-99999"}), 4_000_001), MOST_PER_PIECE);
        let long = "x".repeat(10_000);
        assert_eq!(of(json!({"values": [{"a": 1}, {"a": long}]}), 1001), 104, "of 40 kB each");
        assert_eq!(of(json!({"matrix": {"a": ["x", long], "b": [long]}}), 1001), 52);
        let whole = "x".repeat(MAX_ENV_VALUE);
        let all: Value =
            (0..100).map(|place| (format!("P{place}"), json!([whole]))).collect::<Map<_, _>>().into();
        assert_eq!(of(json!({"matrix": all}), 1001), 1);
    }

    #[test]
    fn each_combination_is_a_task_and_the_last_parameter_varies_fastest() {
        let array = read(json!({"matrix": {"lr": [0.1, 0.2], "batch": [8, 16, 32]}})).unwrap();
        assert_eq!(array.tasks().to_string(), "0-5");
        let expected = [(0.1, 8), (0.1, 16), (0.1, 32), (0.2, 8), (0.2, 16), (0.2, 32)];
        for (task, (lr, batch)) in (0..).zip(expected) {
            assert_eq!(of(&array, task), json!({"lr": lr, "batch": batch}), "{task}");
        }
        assert_eq!(of(&array, 6), json!({}));
    }

    #[test]
    fn tasks_may_be_only_numbers() {
        let array = read(json!({"indices": "1-9:4", "max_parallel": 2})).unwrap();
        assert_eq!((array.tasks().to_string().as_str(), of(&array, 5)), ("1,5,9", json!({})));
        assert_eq!(array.max_parallel, NonZeroU32::new(2));
    }

    #[test]
    fn an_array_is_stored_whole() {
        for request in [
            json!({"values": [{"b": 1, "a": null}]}),
            json!({"matrix": {"b": [1], "a": ["x"]}}),
            json!({"indices": "0-9999"}),
        ] {
            let array = read(request).unwrap();
            let stored = serde_json::to_value(&array).unwrap();
            assert_eq!(serde_json::from_value::<JobArray>(stored).unwrap(), array);
        }
    }

    #[test_case(json!({}), "/array required"; "nothing")]
    #[test_case(json!({"indices": "0", "values": [{}]}), "/array contradiction"; "two of them")]
    #[test_case(json!({"values": []}), "/array out_of_range"; "no task")]
    #[test_case(json!({"indices": ""}), "/array out_of_range"; "no index")]
    #[test_case(json!({"indices": "0-100000"}), "/array out_of_range"; "too many")]
    #[test_case(json!({"indices": "x"}), "/array/indices invalid"; "no numbers")]
    #[test_case(json!({"indices": "0-4", "max_parallel": 0}), "/array/max_parallel out_of_range"; "none at once")]
    #[test_case(json!({"matrix": {}}), "/array/matrix out_of_range"; "no parameter")]
    #[test_case(json!({"matrix": {"lr": 1}}), "/array/matrix/lr wrong_type"; "no list")]
    #[test_case(json!({"matrix": {"a-b": [1]}}), "/array/matrix/a-b invalid"; "no variable")]
    #[test_case(json!({"values": [{"SLURM_X": 1}]}), "/array/values/0/SLURM_X reserved"; "a variable of Slurm")]
    #[test_case(json!({"values": [{"SHARED": 1}]}), "/array/values/0/SHARED contradiction"; "a variable of the job")]
    #[test_case(json!({"values": [{"HF_TOKEN": "x"}]}), "/array/values/0/HF_TOKEN invalid"; "a secret")]
    #[test_case(json!({"values": [{"a": "\u{0}"}]}), "/array/values/0/a invalid"; "NUL")]
    fn a_fault_names_its_field(request: Value, fault: &str) {
        assert_eq!(read(request).unwrap_err(), [fault]);
    }

    #[test]
    fn an_empty_list_is_no_task() {
        let faults = read(json!({"matrix": {"a": [], "b": [1]}})).unwrap_err();
        assert_eq!(faults, ["/array/matrix/a out_of_range", "/array out_of_range"]);
    }

    #[test]
    fn thousands_of_faults_are_not_all_reported() {
        let faults = read(json!({"values": vec![json!({"a-b": 1}); 5000]})).unwrap_err();
        assert!(faults.len() < 30, "{}", faults.len());
    }

    #[test]
    fn a_huge_matrix_is_refused_without_being_made() {
        let wide: Map<String, Value> = (0..100).map(|n| (format!("p{n}"), json!(vec![0; 1000]))).collect();
        assert_eq!(read(json!({"matrix": wide})).unwrap_err(), ["/array out_of_range"]);
    }
}
