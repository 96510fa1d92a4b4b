//! `list`: jobs by all the filters of the API.

use std::{process::ExitCode, thread, time::Duration};

use chrono::{DateTime, Utc};
use domain::Clock;
use serde::Deserialize;
use serde_json::Value;

use super::{
    interrupt,
    output::{Output, append, note},
};
use crate::{
    cli::{Format, ListArgs, Moment},
    client::{Client, Progress, age, on_one_line, seconds, table, with_query},
    process::clock::SystemClock,
};

/// Between two lists of `--watch`.
const INTERVAL: Duration = Duration::from_secs(5);
/// The most jobs in a page of the API.
const PAGE: u32 = 200;
/// The characters of an id that the table shows, if they are enough to tell its jobs apart.
const SHORT_ID: usize = 13;

#[derive(Deserialize)]
struct Jobs {
    jobs: Vec<Job>,
    next_page_token: Option<String>,
}

#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct Job {
    id: String,
    name: Option<String>,
    status: String,
    owner: String,
    cluster: String,
    partition: Option<String>,
    gpus: u32,
    nodes: Vec<String>,
    slurm_job_id: Option<String>,
    created_on: String,
    progress: Progress,
    message: String,
}

pub(super) fn run(args: &ListArgs) -> anyhow::Result<ExitCode> {
    let client = Client::new(&args.server)?;
    if !args.watch {
        print(&client, args, "")?;
        return Ok(ExitCode::SUCCESS);
    }
    interrupt::say("The jobs go on.".to_owned());
    loop {
        // To the upper left corner, and clear what is below.
        let clear = if Output::new().is_terminal { "\u{1b}[H\u{1b}[J" } else { "" };
        print(&client, args, clear)?;
        pause(INTERVAL);
    }
}

#[expect(clippy::disallowed_methods, reason = "the client has one thread, with nothing else to do")]
fn pause(time: Duration) {
    thread::sleep(time);
}

/// Prints the list below `before`.
fn print(client: &Client, args: &ListArgs, before: &str) -> anyhow::Result<()> {
    let now = SystemClock.now();
    let (mut jobs, mut document, mut token) = (Vec::new(), Value::Null, None);
    let mut left = if args.all { u32::MAX } else { args.limit };
    loop {
        let answer = client.get(&path(args, now, left.min(PAGE), token))?;
        let page: Jobs = answer.document()?;
        append(&mut document, answer.document()?);
        left = left.saturating_sub(u32::try_from(page.jobs.len()).unwrap_or(PAGE));
        jobs.extend(page.jobs);
        token = page.next_page_token;
        if token.is_none() || left == 0 {
            break;
        }
    }
    let mut output = Output::new();
    match args.server.output {
        Format::Json | Format::Yaml => output.document(args.server.output, &document)?,
        Format::Name => {
            for job in &jobs {
                output.line(&on_one_line(&job.id))?;
            }
        }
        Format::Text => output.text(&format!("{before}{}", short(&jobs, now)))?,
        Format::Wide => output.text(&format!("{before}{}", wide(&jobs, now)))?,
    }
    if token.is_some() {
        note(&format!("These are {} jobs, and there are more: use --all, --limit or a filter.", jobs.len()));
    } else if jobs.is_empty() && !args.server.output.is_document() {
        note("No job matches.");
    }
    Ok(())
}

fn path(args: &ListArgs, now: DateTime<Utc>, limit: u32, token: Option<String>) -> String {
    let texts =
        |key: &'static str, values: Vec<String>| values.into_iter().map(move |value| (key, Some(value)));
    let time = |moment: &Moment| moment.before(now).to_rfc3339();
    let single = [
        ("q", args.q.clone()),
        ("network_arch", args.network_arch.clone()),
        ("action", args.action.clone()),
        ("created_after", args.since.as_ref().map(time)),
        ("created_before", args.until.as_ref().map(time)),
        ("sort", args.oldest.then(|| "created_at".to_owned())),
        ("limit", Some(limit.to_string())),
        ("page_token", token),
    ];
    let several = texts("status", args.status.iter().map(ToString::to_string).collect())
        .chain(texts("cluster", args.cluster.iter().map(ToString::to_string).collect()))
        .chain(texts("owner", args.owner.clone()))
        .chain(texts("partition", args.partition.clone()))
        .chain(texts("rule", args.rule.clone()))
        .chain(texts("label", args.label.clone()));
    with_query("/jobs", several.chain(single))
}

fn short(jobs: &[Job], now: DateTime<Utc>) -> String {
    let is_enough = |jobs: &[Job]| {
        let mut ids: Vec<_> = jobs.iter().map(|job| job.id.get(..SHORT_ID)).collect();
        ids.sort_unstable();
        ids.windows(2).all(|pair| pair[0] != pair[1])
    };
    let length = if is_enough(jobs) { SHORT_ID } else { usize::MAX };
    table(COLUMNS, jobs.iter().map(|job| cells(job, job.id.get(..length).unwrap_or(&job.id), now)))
}

const COLUMNS: [&str; 8] = ["ID", "NAME", "STATUS", "AGE", "GPUS", "OWNER", "CLUSTER", "PROGRESS"];

/// What both tables have of a job.
fn cells(job: &Job, id: &str, now: DateTime<Utc>) -> [String; 8] {
    [
        id.to_owned(),
        job.name.clone().unwrap_or_default(),
        job.status.clone(),
        age(&job.created_on, now),
        job.gpus.to_string(),
        job.owner.clone(),
        job.cluster.clone(),
        job.progress.text().unwrap_or_default(),
    ]
}

fn wide(jobs: &[Job], now: DateTime<Utc>) -> String {
    let row = |job: &Job| {
        let more = [
            job.partition.clone().unwrap_or_default(),
            job.slurm_job_id.clone().unwrap_or_default(),
            job.nodes.join(","),
            seconds(&job.created_on),
            job.message.clone(),
        ];
        joined(cells(job, &job.id, now), more)
    };
    let headers = joined(COLUMNS, ["PARTITION", "SLURM JOB", "NODES", "CREATED", "MESSAGE"]);
    table(headers, jobs.iter().map(row))
}

fn joined<T: Default>(first: [T; 8], more: [T; 5]) -> [T; 13] {
    let mut all = first.into_iter().chain(more);
    std::array::from_fn(|_| all.next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    fn now() -> DateTime<Utc> {
        "2026-11-21T05:04:05Z".parse().unwrap()
    }

    #[test]
    fn every_filter_is_in_the_query() {
        let path = |line: &str| {
            let words = ["tao-slurm", "list"].into_iter().chain(line.split_whitespace());
            let Command::List(args) = Cli::parse_from(words).command else { panic!("{line}") };
            super::path(&args, now(), 50, None)
        };
        assert_eq!(path(""), "/jobs?limit=50");
        assert_eq!(
            path(
                "-s running -s pending --owner a --cluster c -p p --rule r -l team=v -q x --since 1d --oldest"
            ),
            "/jobs?status=Running&status=Pending&cluster=c&owner=a&partition=p&rule=r&label=team%3Av&q=x\
             &created_after=2026-11-20T05%3A04%3A05%2B00%3A00&sort=created_at&limit=50"
        );
        assert_eq!(
            path("--network-arch dino --action train"),
            "/jobs?network_arch=dino&action=train&limit=50"
        );
    }

    #[test]
    fn ids_are_short_if_that_tells_the_jobs_apart() {
        let job = |id: &str, name: &str| Job {
            id: id.to_owned(),
            name: Some(name.to_owned()),
            status: "Done".to_owned(),
            owner: "ann".to_owned(),
            cluster: "dgx".to_owned(),
            gpus: 8,
            created_on: "2026-11-21T03:04:05.123Z".to_owned(),
            ..Job::default()
        };
        let a = job("01a21687-3d58-727b-af43-d5f40bfcf423", "a");
        let expected = "\
ID             NAME  STATUS  AGE   GPUS  OWNER  CLUSTER  PROGRESS
01a21687-3d58  a     Done    119m  8     ann    dgx
";
        assert_eq!(strip_str(&short(&[a], now())).to_string(), expected);
        let twins = ["01a21687-3d58-727b-af43-d5f40bfcf423", "01a21687-3d58-727b-af43-d5f5b2ec7c0e"]
            .map(|id| job(id, "a"));
        let shown = short(&twins, now());
        assert!(twins.iter().all(|job| shown.contains(&job.id)), "{shown}");
        assert!(wide(&twins, now()).contains("2026-11-21 03:04:05"));
    }
}
