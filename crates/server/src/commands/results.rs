//! `results`: what was found for the results of a job.

use std::process::ExitCode;

use serde::Deserialize;
use serde_json::Value;

use super::{chosen, output::Output};
use crate::{
    cli::ResultsArgs,
    client::{Client, table},
};

/// The most characters of a value in the table; `-o json` and `--csv` print all of it.
const SHOWN: usize = 100;

#[derive(Deserialize)]
struct TaskResult {
    task: u32,
    name: String,
    value: Value,
    problem: Option<String>,
}

pub(super) fn run(args: &ResultsArgs) -> anyhow::Result<ExitCode> {
    let client = Client::new(&args.job.server)?;
    let id = chosen::job(&client, &args.job.job)?;
    let path = format!("/jobs/{id}/results");
    let mut output = Output::new();
    if args.csv {
        output.foreign(&client.get(&format!("{path}?format=csv"))?.body)?;
        return Ok(ExitCode::SUCCESS);
    }
    output.show(&args.job.server, &client.get(&path)?, result_table)
}

fn result_table(results: Vec<TaskResult>) -> String {
    let row = |TaskResult { task, name, value, problem }: TaskResult| {
        let value = match (&problem, value) {
            (Some(_), _) => String::new(),
            (None, Value::String(text)) => text,
            (None, value) => value.to_string(),
        };
        let cut = value.char_indices().nth(SHOWN).map(|(end, _)| format!("{}…", &value[..end]));
        [task.to_string(), name, cut.unwrap_or(value), problem.unwrap_or_default()]
    };
    table(["TASK", "NAME", "VALUE", "PROBLEM"], results.into_iter().map(row))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_one_line() {
        let json = r#"[{"task": 0, "name": "accuracy", "value": 0.93, "problem": null},
            {"task": 0, "name": "best", "value": "a\nb", "problem": null},
            {"task": 1, "name": "accuracy", "value": null, "problem": "scores.json is not there"}]"#;
        let expected = "\
TASK  NAME      VALUE  PROBLEM
0     accuracy  0.93
0     best      a␊b
1     accuracy         scores.json is not there
";
        assert_eq!(result_table(serde_json::from_str(json).unwrap()), expected);
    }

    #[test]
    fn a_long_value_is_cut() {
        let value = Value::String("é".repeat(SHOWN + 1));
        let result = TaskResult { task: 0, name: "a".to_owned(), value, problem: None };
        assert!(result_table(vec![result]).ends_with(&format!("{}…\n", "é".repeat(SHOWN))));
    }
}
