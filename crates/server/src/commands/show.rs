//! The commands that show a job: `status`, `attempts`, `timeline` and `script`.

use std::process::ExitCode;

use serde::Deserialize;

use super::{change, chosen, follow, output::Output};
use crate::{
    cli::{JobArgs, ScriptArgs, StatusArgs},
    client::{Client, StatusDocument, seconds, table, with_query},
};

pub(super) fn status(args: &StatusArgs) -> anyhow::Result<ExitCode> {
    let (server, is_one) = (&args.jobs.server, args.jobs.jobs.len() == 1);
    change::each(&args.jobs, |client, id| {
        if args.watch {
            return follow::status(client, id, server.output, Output::new());
        }
        let answer = client.get(&format!("/jobs/{id}/status"))?;
        Output::new().show(server, &answer, |job: StatusDocument| {
            if is_one { job.colored_line() + "\n" } else { format!("{id} {}\n", job.colored_line()) }
        })
    })
}

#[derive(Deserialize)]
struct Attempts {
    attempts: Vec<Attempt>,
}

#[derive(Deserialize)]
struct Attempt {
    number: u32,
    slurm_job_id: Option<String>,
    slurm_state: Option<String>,
    exit_code: Option<u8>,
    exit_signal: Option<u8>,
    #[serde(default)]
    nodes: Vec<String>,
    outcome: Option<String>,
    outcome_reason: Option<String>,
}

pub(super) fn attempts(args: &JobArgs) -> anyhow::Result<ExitCode> {
    let client = Client::new(&args.server)?;
    let id = chosen::job(&client, &args.job)?;
    let answer = client.get(&format!("/jobs/{id}/attempts"))?;
    Output::new().show(&args.server, &answer, |found: Attempts| attempt_table(found.attempts))
}

fn attempt_table(attempts: Vec<Attempt>) -> String {
    let headers = ["ATTEMPT", "SLURM JOB", "STATE", "EXIT", "NODES", "OUTCOME", "REASON"];
    let row = |attempt: Attempt| {
        let exit = attempt.exit_code.map(|code| match attempt.exit_signal {
            Some(signal) if signal != 0 => format!("signal {signal}"),
            _ => format!("code {code}"),
        });
        [
            attempt.number.to_string(),
            attempt.slurm_job_id.unwrap_or_default(),
            attempt.slurm_state.unwrap_or_default(),
            exit.unwrap_or_default(),
            attempt.nodes.join(","),
            attempt.outcome.unwrap_or_default(),
            attempt.outcome_reason.unwrap_or_default(),
        ]
    };
    table(headers, attempts.into_iter().map(row))
}

#[derive(Deserialize)]
struct Commands {
    entries: Vec<RemoteCommand>,
    next_page_token: Option<String>,
}

#[derive(Deserialize)]
struct RemoteCommand {
    class: String,
    attempt: Option<u32>,
    host: Option<String>,
    started_on: String,
    duration_ms: u64,
    result: String,
    exit_code: Option<i32>,
    outcome: Option<String>,
}

pub(super) fn timeline(args: &JobArgs) -> anyhow::Result<ExitCode> {
    let id = chosen::job(&Client::new(&args.server)?, &args.job)?;
    let path = format!("/jobs/{id}/timeline");
    Output::new().show_pages(
        &args.server,
        &path,
        &[],
        |page: Commands| (page.entries, page.next_page_token),
        timeline_table,
    )
}

fn timeline_table(commands: Vec<RemoteCommand>) -> String {
    let headers = ["STARTED", "COMMAND", "ATTEMPT", "DURATION", "RESULT", "EXIT CODE", "HOST", "OUTCOME"];
    let row = |command: RemoteCommand| {
        [
            seconds(&command.started_on),
            command.class,
            command.attempt.map(|attempt| attempt.to_string()).unwrap_or_default(),
            format!("{} ms", command.duration_ms),
            command.result,
            command.exit_code.map(|code| code.to_string()).unwrap_or_default(),
            command.host.unwrap_or_default(),
            command.outcome.unwrap_or_default(),
        ]
    };
    table(headers, commands.into_iter().map(row))
}

pub(super) fn script(args: &ScriptArgs) -> anyhow::Result<ExitCode> {
    let JobArgs { job, server } = &args.job;
    let client = Client::new(server)?;
    let id = chosen::job(&client, job)?;
    let attempt = args.attempt.map(|number| number.to_string());
    let answer = client.get(&with_query(&format!("/jobs/{id}/script"), [("attempt", attempt)]))?;
    let mut output = Output::new();
    if server.output.is_document() {
        let document = serde_json::json!({ "script": String::from_utf8_lossy(&answer.body) });
        output.document(server.output, &document)?;
    } else {
        output.foreign(&answer.body)?;
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;

    use super::*;

    #[test]
    fn an_attempt_is_one_line() {
        let json = r#"{"attempts": [
            {"number": 1, "slurm_job_id": "4711", "slurm_state": "NODE_FAIL", "exit_code": 0, "exit_signal": 9,
             "nodes": ["n1", "n2"], "outcome": "retried", "outcome_reason": "A node died."},
            {"number": 2}]}"#;
        let Attempts { attempts } = serde_json::from_str(json).unwrap();
        let expected = "\
ATTEMPT  SLURM JOB  STATE      EXIT      NODES  OUTCOME  REASON
1        4711       NODE_FAIL  signal 9  n1,n2  retried  A node died.
2
";
        assert_eq!(strip_str(&attempt_table(attempts)).to_string(), expected);
    }

    #[test]
    fn a_remote_command_is_one_line() {
        let json = r#"{"entries": [
            {"class": "submit", "attempt": 1, "host": "login1:22", "started_on": "2026-11-21T21:00:00Z",
             "duration_ms": 31, "result": "ok", "exit_code": 0, "outcome": "submitted as 4711"},
            {"class": "poll", "started_on": "2026-11-21T21:00:05Z", "duration_ms": 0, "result": "not_sent"}]}"#;
        let Commands { entries, .. } = serde_json::from_str(json).unwrap();
        let expected = "\
STARTED              COMMAND  ATTEMPT  DURATION  RESULT    EXIT CODE  HOST       OUTCOME
2026-11-21 21:00:00  submit   1        31 ms     ok        0          login1:22  submitted as 4711
2026-11-21 21:00:05  poll              0 ms      not_sent
";
        assert_eq!(strip_str(&timeline_table(entries)).to_string(), expected);
    }
}
