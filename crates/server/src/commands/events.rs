//! `events`: the events of one job or of all jobs, one line each.

use std::process::ExitCode;

use domain::JobId;
use serde::Deserialize;
use serde_json::Value;

use super::{
    chosen, follow, interrupt,
    output::{Output, note},
};
use crate::{
    cli::EventsArgs,
    client::{Client, ServerEvent, on_one_line, seconds, with_query},
};

#[derive(Deserialize)]
struct Page {
    events: Vec<Event>,
    /// An event's number for one job, its id for all jobs.
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
    let client = Client::new(&args.server)?;
    let id = args.job.as_ref().map(|job| chosen::job(&client, job)).transpose()?;
    let mut output = Output::new();
    if args.follow {
        interrupt::say("The jobs go on.".to_owned());
        let path = path(id, args, args.after.as_deref(), None);
        follow::events(&client, &path, |event| show(event, args, &mut output))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut after = args.after.clone();
    loop {
        let answer = client.get(&path(id, args, after.as_deref(), Some(PAGE)))?;
        let page: Page = answer.document()?;
        if args.server.output.is_document() {
            output.document(args.server.output, &answer.document()?)?;
        } else {
            for event in &page.events {
                output.line(&line(event, args.job.is_none()))?;
            }
        }
        if !answer.has_next {
            return Ok(ExitCode::SUCCESS);
        }
        after = Some(page.next_after.as_str().map_or_else(|| page.next_after.to_string(), str::to_owned));
    }
}

fn path(id: Option<JobId>, args: &EventsArgs, after: Option<&str>, limit: Option<usize>) -> String {
    let path = id.map_or_else(|| "/events".to_owned(), |id| format!("/jobs/{id}/events"));
    let kinds = args.kind.iter().map(|kind| ("kind", Some(<&str>::from(kind).to_owned())));
    let clusters = args.cluster.iter().map(|cluster| ("cluster", Some(cluster.to_string())));
    let range = [("limit", limit.map(|limit| limit.to_string())), ("after", after.map(str::to_owned))];
    with_query(&path, range.into_iter().chain(kinds).chain(clusters))
}

fn show(event: &ServerEvent, args: &EventsArgs, output: &mut Output) -> anyhow::Result<()> {
    match event.name.as_str() {
        _ if args.server.output.is_document() => output.line(&event.data)?,
        "reset" => note(&format!("({})", on_one_line(&event.data))),
        "end" => {}
        _ => {
            if let Ok(event) = serde_json::from_str(&event.data) {
                output.line(&line(&event, args.job.is_none()))?;
            }
        }
    }
    Ok(())
}

/// `number  time  change`; a status line follows the name of its file. Among all jobs the job's id comes first.
fn line(event: &Event, with_job: bool) -> String {
    let text = |key| event.data.get(key).and_then(Value::as_str).unwrap_or_default();
    let change = match (event.kind.as_str(), &event.file) {
        ("transition", _) => format!("{} {} {}", text("status"), text("phase"), text("message")),
        (_, Some(file)) => {
            let earlier = if event.earlier_run { " (earlier run)" } else { "" };
            format!("{file}{earlier} {}", event.data)
        }
        ("deleted", None) => "deleted".to_owned(),
        (kind, None) => format!("{kind} {}", event.data),
    };
    let job = if with_job { format!("{}  ", event.job_id) } else { String::new() };
    on_one_line(&format!("{job}{:>6}  {}  {change}", event.seq, seconds(&event.at)))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    const ID: &str = "0f8fad5b-d9cb-469f-a165-70867728950e";

    #[test]
    fn only_given_options_are_in_the_query() {
        let path = |line: &str| {
            let words = ["tao-slurm", "events"].into_iter().chain(line.split_whitespace());
            let Command::Events(args) = Cli::parse_from(words).command else { panic!("{line}") };
            let id = args.job.as_ref().map(|job| job.to_string().parse().unwrap());
            super::path(id, &args, args.after.as_deref(), None)
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
    fn an_event_is_one_line_without_control_characters() {
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
