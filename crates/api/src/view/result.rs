//! The results of tasks.

use std::collections::BTreeSet;

use csv::{Terminator, WriterBuilder};
use domain::{Job, ResultRule, ResultSource, TaskResult};
use serde::Serialize;
use serde_json::Value;
use slurm::EnvKey;
use utoipa::ToSchema;

/// What was found for one result of a task.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ResultView {
    /// The task's number; 0 for a job without an array.
    pub task: u32,
    /// The name of the result.
    #[schema(example = "accuracy")]
    pub name: String,
    /// The value: any JSON of `json_line` and `json_file`, and a text of `regex`. Null without a value.
    #[schema(value_type = Object, example = 0.93)]
    pub value: Value,
    /// Why there is no value; null with one.
    #[schema(example = "scores.json is not in the job's results directory")]
    pub problem: Option<String>,
}

impl ResultView {
    pub(crate) fn new(task: u32, TaskResult { name, value, problem, .. }: TaskResult) -> Self {
        Self { task, name: name.to_string(), value, problem }
    }

    /// The row of a task in the table: its number, its parameters by these names, its results.
    pub(crate) fn row(task: u32, names: &BTreeSet<&EnvKey>, job: &Job, results: &[TaskResult]) -> Vec<u8> {
        let parameters = job.spec.array.as_ref().map(|array| array.parameters(task)).unwrap_or_default();
        let given =
            names.iter().map(|name| parameters.get(name).map_or_else(String::new, |value| cell(value)));
        let found = results.iter().map(|result| cell(&result.value));
        table_row(std::iter::once(task.to_string()).chain(given).chain(found))
    }
}

/// A row of CSV.
pub(crate) fn table_row(cells: impl IntoIterator<Item: AsRef<[u8]>>) -> Vec<u8> {
    let mut table = WriterBuilder::new().terminator(Terminator::CRLF).from_writer(Vec::new());
    // Writing to a Vec cannot fail.
    let _ = table.write_record(cells);
    table.into_inner().unwrap_or_default()
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) if is_formula(text) => format!("'{text}"),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

/// Whether a spreadsheet would run the text: a job may write the results of others who open them.
fn is_formula(text: &str) -> bool {
    text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']) && text.parse::<f64>().is_err()
}

/// A result of the request.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ResultRuleView {
    /// Its name.
    pub name: String,
    /// The text before the JSON in a line of the log; null for another kind.
    pub json_line: Option<String>,
    /// The file below the job's results directory; null for another kind.
    pub json_file: Option<String>,
    /// The regular expression; null for another kind.
    pub regex: Option<String>,
    /// The log, `out` or `err`; null for a file.
    pub log: Option<String>,
    /// The step or service whose log it is; null for a job of one program and for a file.
    pub component: Option<String>,
    /// Whether a task without it ends in `Error`.
    pub required: bool,
}

impl From<&ResultRule> for ResultRuleView {
    fn from(ResultRule { name, source, required }: &ResultRule) -> Self {
        let (mut json_line, mut json_file, mut regex, mut from) = (None, None, None, None);
        match source {
            ResultSource::JsonLine { prefix, log } => (json_line, from) = (Some(prefix.clone()), Some(log)),
            ResultSource::JsonFile { path } => json_file = Some(path.clone()),
            ResultSource::Regex { pattern, log } => (regex, from) = (Some(pattern.clone()), Some(log)),
        }
        let log = from.map(|of| of.log.to_string());
        let component = from.and_then(|of| of.component.as_ref()).map(ToString::to_string);
        Self { name: name.to_string(), json_line, json_file, regex, log, component, required: *required }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use test_case::test_case;

    use super::*;

    #[test_case(json!("=HYPERLINK(1)") => "'=HYPERLINK(1)"; "a formula")]
    #[test_case(json!("-1+cmd|' /C calc'!A0") => "'-1+cmd|' /C calc'!A0"; "a formula that begins as a number")]
    #[test_case(json!("\t=1") => "'\t=1"; "a formula after a tab")]
    #[test_case(json!("-0.5") => "-0.5"; "a number in a text")]
    #[test_case(json!("-Infinity") => "-Infinity"; "no finite number")]
    #[test_case(json!(-3) => "-3"; "a number")]
    #[test_case(json!(null) => ""; "nothing")]
    #[test_case(json!({"a": [1, "=2"]}) => r#"{"a":[1,"=2"]}"#; "an object")]
    fn a_cell_runs_nothing(value: impl std::borrow::Borrow<Value>) -> String {
        cell(value.borrow())
    }

    #[test]
    fn a_row_is_quoted_where_it_must_be() {
        assert_eq!(table_row(["1", "a,b", "x \"y\"\n", ""]), b"1,\"a,b\",\"x \"\"y\"\"\n\",\r\n");
    }
}
