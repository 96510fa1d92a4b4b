//! `tao-slurm attempts`: each time a job was sent to Slurm, a line each.

use std::process::ExitCode;

use serde::Deserialize;

use super::output::Output;
use crate::{
    cli::JobArgs,
    client::{Client, on_one_line},
};

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

pub(super) fn run(args: &JobArgs) -> anyhow::Result<ExitCode> {
    let client = Client::new(&args.server);
    let answer = client.get(&format!("/jobs/{}/attempts", args.id), None)?;
    let mut output = Output::new();
    if args.server.json {
        output.document(&answer.body)?;
        return Ok(ExitCode::SUCCESS);
    }
    for attempt in &client.document::<Attempts>(&answer.body)?.attempts {
        output.line(&line(attempt))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// `number (Slurm id) state, exit code, on nodes: outcome. why`, what is not known left out.
fn line(attempt: &Attempt) -> String {
    let mut parts = vec![attempt.number.to_string()];
    parts.extend(attempt.slurm_job_id.as_ref().map(|id| format!("({id})")));
    parts.extend(attempt.slurm_state.clone());
    parts.extend(attempt.exit_code.map(|code| match attempt.exit_signal {
        Some(signal) if signal != 0 => format!("signal {signal}"),
        _ => format!("code {code}"),
    }));
    if !attempt.nodes.is_empty() {
        parts.push(format!("on {}", attempt.nodes.join(",")));
    }
    parts.extend(attempt.outcome.as_ref().map(|outcome| format!("{outcome}:")));
    parts.extend(attempt.outcome_reason.clone());
    on_one_line(&parts.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_is_one_line() {
        let json = r#"{"number": 1, "slurm_job_id": "4711", "slurm_state": "NODE_FAIL", "exit_code": 0, "exit_signal": 9,
            "nodes": ["n1", "n2"], "outcome": "retried", "outcome_reason": "A node died."}"#;
        let attempt = serde_json::from_str(json).unwrap();
        assert_eq!(line(&attempt), "1 (4711) NODE_FAIL signal 9 on n1,n2 retried: A node died.");
        assert_eq!(line(&serde_json::from_str(r#"{"number": 2}"#).unwrap()), "2");
    }
}
