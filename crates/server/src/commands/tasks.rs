//! `tasks`: the tasks of a job's array.

use std::process::ExitCode;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{chosen, output::Output};
use crate::{
    cli::TasksArgs,
    client::{Client, seconds, table},
};

#[derive(Deserialize)]
struct Page {
    tasks: Vec<Row>,
    next_page_token: Option<String>,
}

#[derive(Deserialize)]
struct Row {
    task: u32,
    status: String,
    slurm_job_id: Option<String>,
    exit_code: Option<u8>,
    exit_signal: Option<u8>,
    #[serde(default)]
    nodes: Vec<String>,
    started_on: Option<String>,
    #[serde(default)]
    parameters: Map<String, Value>,
    message: Option<String>,
}

pub(super) fn run(args: &TasksArgs) -> anyhow::Result<ExitCode> {
    let status = args.status.map(|status| <&str>::from(status).to_owned());
    let id = chosen::job(&Client::new(&args.job.server)?, &args.job.job)?;
    let path = format!("/jobs/{id}/tasks");
    let page = |page: Page| (page.tasks, page.next_page_token);
    Output::new().show_pages(&args.job.server, &path, &[("status", status)], page, task_table)
}

fn task_table(tasks: Vec<Row>) -> String {
    let headers = ["TASK", "STATUS", "SLURM JOB", "EXIT", "NODES", "STARTED", "PARAMETERS", "MESSAGE"];
    let row = |task: Row| {
        let exit = task.exit_code.map(|code| match task.exit_signal {
            Some(signal) if signal != 0 => format!("signal {signal}"),
            _ => format!("code {code}"),
        });
        let parameter = |(name, value): (&String, &Value)| match value {
            Value::String(text) => format!("{name}={text}"),
            value => format!("{name}={value}"),
        };
        let parameters: Vec<String> = task.parameters.iter().map(parameter).collect();
        [
            task.task.to_string(),
            task.status,
            task.slurm_job_id.unwrap_or_default(),
            exit.unwrap_or_default(),
            task.nodes.join(","),
            task.started_on.as_deref().map(seconds).unwrap_or_default(),
            parameters.join(" "),
            task.message.unwrap_or_default(),
        ]
    };
    table(headers, tasks.into_iter().map(row))
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;

    use super::*;

    #[test]
    fn a_task_is_one_line() {
        let json = r#"{"tasks": [
            {"task": 0, "status": "done", "slurm_job_id": "7_0", "exit_code": 0, "exit_signal": 0, "nodes": ["n1"],
             "started_on": "2026-11-21T21:00:00Z", "parameters": {"LR": 0.1, "NAME": "a b"}},
            {"task": 1, "status": "pending", "parameters": {"LR": 0.2, "NAME": "c"}}],
            "next_page_token": null}"#;
        let page: Page = serde_json::from_str(json).unwrap();
        let expected = "\
TASK  STATUS   SLURM JOB  EXIT    NODES  STARTED              PARAMETERS       MESSAGE
0     done     7_0        code 0  n1     2026-11-21 21:00:00  LR=0.1 NAME=a b
1     pending                                                 LR=0.2 NAME=c
";
        assert_eq!(strip_str(&task_table(page.tasks)).to_string(), expected);
    }
}
