//! `tao-slurm timeline`: what was run on the cluster for a job, a line each.

use std::process::ExitCode;

use serde::Deserialize;

use super::output::Output;
use crate::{
    cli::JobArgs,
    client::{Client, on_one_line},
};

#[derive(Deserialize)]
struct Page {
    entries: Vec<Entry>,
    next_page_token: Option<String>,
}

#[derive(Deserialize)]
struct Entry {
    class: String,
    attempt: Option<u32>,
    host: Option<String>,
    started_on: String,
    duration_ms: u64,
    result: String,
    exit_code: Option<i32>,
    outcome: Option<String>,
}

pub(super) fn run(args: &JobArgs) -> anyhow::Result<ExitCode> {
    let client = Client::new(&args.server);
    let mut output = Output::new();
    let mut page = String::new();
    loop {
        let answer = client.get(&format!("/jobs/{}/timeline?limit=200{page}", args.id), None)?;
        let found = client.document::<Page>(&answer.body)?;
        if args.server.json {
            output.document(&answer.body)?;
        } else {
            for entry in &found.entries {
                output.line(&line(entry))?;
            }
        }
        match found.next_page_token {
            Some(token) => page = format!("&page_token={token}"),
            None => return Ok(ExitCode::SUCCESS),
        }
    }
}

/// `start class (attempt) duration result on host: outcome`, what is not known left out.
fn line(entry: &Entry) -> String {
    let mut parts = vec![entry.started_on.clone(), entry.class.clone()];
    parts.extend(entry.attempt.map(|attempt| format!("(attempt {attempt})")));
    parts.push(format!("{} ms", entry.duration_ms));
    parts.push(entry.result.clone());
    parts.extend(entry.exit_code.filter(|code| *code != 0).map(|code| format!("code {code}")));
    parts.extend(entry.host.as_ref().map(|host| format!("on {host}")));
    let mut text = parts.join(" ");
    if let Some(outcome) = &entry.outcome {
        text.push_str(": ");
        text.push_str(outcome);
    }
    on_one_line(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remote_command_is_one_line() {
        let json = r#"{"class": "submit", "attempt": 1, "host": "login1:22", "started_on": "2026-11-21T21:00:00Z",
            "duration_ms": 31, "result": "ok", "exit_code": 0, "outcome": "submitted as 4711"}"#;
        let entry = serde_json::from_str(json).unwrap();
        let said = "2026-11-21T21:00:00Z submit (attempt 1) 31 ms ok on login1:22: submitted as 4711";
        assert_eq!(line(&entry), said);
        let json = r#"{"class": "poll", "started_on": "2026-11-21T21:00:05Z", "duration_ms": 0, "result": "not_sent"}"#;
        let entry = serde_json::from_str(json).unwrap();
        assert_eq!(line(&entry), "2026-11-21T21:00:05Z poll 0 ms not_sent");
    }
}
