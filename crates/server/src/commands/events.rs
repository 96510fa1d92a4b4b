//! `tao-slurm events`: what happened to a job, a line each.

use std::process::ExitCode;

use serde::Deserialize;
use serde_json::Value;

use super::output::Output;
use crate::{
    cli::{EventsArgs, Kind},
    client::{Client, on_one_line},
};

#[derive(Deserialize)]
struct Page {
    events: Vec<Event>,
    next_after: u64,
}

#[derive(Deserialize)]
struct Event {
    seq: u64,
    at: String,
    kind: String,
    file: Option<String>,
    #[serde(default)]
    earlier_run: bool,
    data: Value,
}

const PAGE: usize = 1000;

pub(super) fn run(args: &EventsArgs) -> anyhow::Result<ExitCode> {
    let client = Client::new(&args.server);
    let mut output = Output::new();
    let kinds = args.kind.iter().flat_map(|kind| ["&kind=", name(*kind)]).collect::<String>();
    let mut after = args.after;
    loop {
        let path = format!("/jobs/{}/events?limit={PAGE}&after={after}{kinds}", args.id);
        let answer = client.get(&path, None)?;
        let page: Page = client.document(&answer.body)?;
        if args.server.json {
            output.document(&answer.body)?;
        } else {
            for event in &page.events {
                output.line(&line(event))?;
            }
        }
        if page.events.len() < PAGE || page.next_after <= after {
            return Ok(ExitCode::SUCCESS);
        }
        after = page.next_after;
    }
}

const fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Transition => "transition",
        Kind::Status => "status",
    }
}

/// `seq  time  what`, of a status line the file and the line as the job wrote it.
fn line(event: &Event) -> String {
    // To the second, in UTC, as the service wrote it.
    let at = event.at.get(..19).unwrap_or(&event.at).replace('T', " ");
    let text = |key| event.data.get(key).and_then(Value::as_str).unwrap_or_default();
    let what = match (event.kind.as_str(), &event.file) {
        ("transition", _) => format!("{} {} {}", text("status"), text("phase"), text("message")),
        (_, Some(file)) => {
            let earlier = if event.earlier_run { " (earlier run)" } else { "" };
            format!("{file}{earlier} {}", event.data)
        }
        (kind, None) => format!("{kind} {}", event.data),
    };
    on_one_line(&format!("{:>6}  {at}  {what}", event.seq))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line_that_no_terminal_obeys() {
        let show = |json: &str| line(&serde_json::from_str(json).unwrap());
        let transition = r#"{"seq": 3, "at": "2026-11-21T03:04:05.123Z", "kind": "transition", "attempt": 1, "file": null,
            "data": {"status": "Error", "phase": "ended", "message": "It failed.\nlast\u001b[31m"}}"#;
        assert_eq!(
            show(transition),
            "     3  2026-11-21 03:04:05  Error ended It failed.\u{240a}last\u{241b}[31m"
        );
        let status = r#"{"seq": 12, "at": "x", "kind": "status", "attempt": 1, "file": "train/status.json",
            "earlier_run": true, "data": {"epoch": 1}}"#;
        assert_eq!(show(status), "    12  x  train/status.json (earlier run) {\"epoch\":1}");
    }
}
