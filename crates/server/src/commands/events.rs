//! `tao-slurm events`: what happened to a job, or to all of them, a line each.

use std::process::ExitCode;

use serde::Deserialize;
use serde_json::Value;

use super::{
    output::{Output, remark},
    stream,
};
use crate::{
    cli::{EventsArgs, Kind},
    client::{Client, ServerEvent, escaped, on_one_line},
};

#[derive(Deserialize)]
struct Page {
    events: Vec<Event>,
    /// A number or, of all jobs, an id.
    next_after: Value,
}

#[derive(Deserialize)]
struct Event {
    #[serde(default)]
    job_id: String,
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
    if args.follow {
        let path = path(args, args.after.as_deref(), None);
        stream::to_the_end(&client, &path, None, |event| show(event, args, &mut output))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut after = args.after.clone();
    loop {
        let answer = client.get(&path(args, after.as_deref(), Some(PAGE)), None)?;
        let page: Page = client.document(&answer.body)?;
        if args.server.json {
            output.document(&answer.body)?;
        } else {
            for event in &page.events {
                output.line(&line(event, args.id.is_none()))?;
            }
        }
        if !answer.has_next {
            return Ok(ExitCode::SUCCESS);
        }
        after = Some(page.next_after.as_str().map_or_else(|| page.next_after.to_string(), str::to_owned));
    }
}

fn path(args: &EventsArgs, after: Option<&str>, limit: Option<usize>) -> String {
    let kinds = args.kind.iter().map(|kind| ("kind", name(*kind).to_owned()));
    let clusters = args.cluster.iter().map(|cluster| ("cluster", escaped(cluster.as_str())));
    let places = [("limit", limit.map(|limit| limit.to_string())), ("after", after.map(escaped))];
    let said = places.into_iter().filter_map(|(key, value)| Some((key, value?))).chain(kinds).chain(clusters);
    let said: Vec<String> = said.map(|(key, value)| format!("{key}={value}")).collect();
    let mark = if said.is_empty() { "" } else { "?" };
    let whose = args.id.map(|id| format!("/jobs/{id}")).unwrap_or_default();
    format!("{whose}/events{mark}{}", said.join("&"))
}

fn show(told: &ServerEvent, args: &EventsArgs, output: &mut Output) -> anyhow::Result<()> {
    if args.server.json {
        return Ok(output.line(&told.data)?);
    }
    let event = match told.name.as_str() {
        "reset" | "end" => None,
        _ => serde_json::from_str::<Event>(&told.data).ok(),
    };
    match event {
        Some(event) => output.line(&line(&event, args.id.is_none()))?,
        None if told.name == "reset" => remark(&format!("({})", on_one_line(&told.data))),
        None => {}
    }
    Ok(())
}

const fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Transition => "transition",
        Kind::Status => "status",
        Kind::Deleted => "deleted",
    }
}

/// `seq  time  what`, of a status line the file and the line as the job wrote it; of several jobs, which one.
fn line(event: &Event, with_job: bool) -> String {
    // To the second, in UTC, as the service wrote it.
    let at = event.at.get(..19).unwrap_or(&event.at).replace('T', " ");
    let text = |key| event.data.get(key).and_then(Value::as_str).unwrap_or_default();
    let what = match (event.kind.as_str(), &event.file) {
        ("transition", _) => format!("{} {} {}", text("status"), text("phase"), text("message")),
        (_, Some(file)) => {
            let earlier = if event.earlier_run { " (earlier run)" } else { "" };
            format!("{file}{earlier} {}", event.data)
        }
        ("deleted", None) => "deleted".to_owned(),
        (kind, None) => format!("{kind} {}", event.data),
    };
    let job = if with_job { format!("{}  ", event.job_id) } else { String::new() };
    on_one_line(&format!("{job}{:>6}  {at}  {what}", event.seq))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    const ID: &str = "0f8fad5b-d9cb-469f-a165-70867728950e";

    #[test]
    fn only_what_was_said_is_asked() {
        let path = |line: &str| {
            let words = ["tao-slurm", "events"].into_iter().chain(line.split_whitespace());
            let Command::Events(args) = Cli::parse_from(words).command else { panic!("{line}") };
            super::path(&args, args.after.as_deref(), None)
        };
        assert_eq!(path(""), "/events");
        assert_eq!(path(&format!("{ID} -f")), format!("/jobs/{ID}/events"));
        assert_eq!(
            path(&format!("{ID} --after 3 --kind status --kind transition")),
            format!("/jobs/{ID}/events?after=3&kind=status&kind=transition")
        );
        assert_eq!(path("--cluster dgx --after a&b"), "/events?after=a%26b&cluster=dgx");
    }

    #[test]
    fn an_event_is_one_line_that_no_terminal_obeys() {
        let show = |json: &str| line(&serde_json::from_str(json).unwrap(), false);
        let transition = r#"{"seq": 3, "at": "2026-11-21T03:04:05.123Z", "kind": "transition", "attempt": 1, "file": null,
            "data": {"status": "Error", "phase": "ended", "message": "It failed.\nlast\u001b[31m"}}"#;
        assert_eq!(
            show(transition),
            "     3  2026-11-21 03:04:05  Error ended It failed.\u{240a}last\u{241b}[31m"
        );
        let status = r#"{"seq": 12, "at": "x", "kind": "status", "attempt": 1, "file": "train/status.json",
            "earlier_run": true, "data": {"epoch": 1}}"#;
        assert_eq!(show(status), "    12  x  train/status.json (earlier run) {\"epoch\":1}");
        let deleted = r#"{"job_id": "j", "seq": 4, "at": "x", "kind": "deleted", "attempt": 1, "file": null, "data": {}}"#;
        assert_eq!(line(&serde_json::from_str(deleted).unwrap(), true), "j       4  x  deleted");
    }
}
