//! `get`: all that a person wants to know of a job.

use std::{fmt::Write as _, process::ExitCode};

use chrono::{DateTime, TimeDelta, Utc};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{change, failed, output::Output};
use crate::{
    cli::JobsArgs,
    client::{Progress, Resources, colored, headline, on_one_line, seconds},
};

#[derive(Default, Deserialize)]
#[serde(default)]
struct Job {
    id: String,
    name: Option<String>,
    status: String,
    phase: String,
    message: String,
    owner: String,
    labels: Map<String, Value>,
    cluster: String,
    partition: Option<String>,
    image: Option<String>,
    slurm_job_id: Option<String>,
    slurm_state: Option<String>,
    nodes: Vec<String>,
    attempt: u32,
    resources: Resources,
    progress: Progress,
    tasks: Option<Tasks>,
    pending: Option<Pending>,
    created_on: String,
    started_on: Option<String>,
    finished_on: Option<String>,
    stale: bool,
}

#[derive(Deserialize)]
struct Tasks {
    total: u32,
    pending: u32,
    running: u32,
    done: u32,
    error: u32,
    canceled: u32,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Pending {
    meaning: Option<String>,
    advice: Option<String>,
    estimated_start_on: Option<String>,
}

pub(super) fn run(args: &JobsArgs) -> anyhow::Result<ExitCode> {
    let mut is_first = true;
    change::each(args, |client, id| {
        let answer = client.get(&format!("/jobs/{id}"))?;
        let before = if is_first { "" } else { "\n" };
        is_first = false;
        Output::new().show(&args.server, &answer, |job: Job| {
            let why = if job.status == "Error" { failed::why(client, id) } else { String::new() };
            format!("{before}{}{why}", lines(&job))
        })
    })
}

fn lines(job: &Job) -> String {
    let mut text = String::new();
    let mut add = |name: &str, value: String| {
        if !value.is_empty() {
            let _ = writeln!(text, "{:<9}{value}", format!("{name}:"));
        }
    };
    let plain = |text: &str| on_one_line(text);
    let given = |text: &Option<String>| text.as_deref().map(on_one_line).unwrap_or_default();
    add("job", [plain(&job.id), given(&job.name)].join("  ").trim_end().to_owned());
    let stale = if job.stale { " (the cluster does not respond; this may be outdated)" } else { "" };
    let phase = if job.phase.eq_ignore_ascii_case(&job.status) || job.finished_on.is_some() {
        String::new()
    } else {
        format!(" ({})", plain(&job.phase))
    };
    add("status", format!("{}{phase}{stale}", colored(&plain(&job.status))));
    add("message", plain(headline(&job.message)));
    let pending = job.pending.as_ref();
    add("reason", pending.map(|pending| given(&pending.meaning)).unwrap_or_default());
    add("advice", pending.map(|pending| given(&pending.advice)).unwrap_or_default());
    add(
        "start",
        pending
            .and_then(|pending| Some(format!("about {}", seconds(pending.estimated_start_on.as_ref()?))))
            .unwrap_or_default(),
    );
    add("done", job.progress.text().map(|text| plain(&text)).unwrap_or_default());
    if let Some(Tasks { total, pending, running, done, error, canceled }) = &job.tasks {
        add(
            "tasks",
            format!(
                "{total}: {done} done, {running} running, {pending} pending, {error} failed, {canceled} canceled"
            ),
        );
    }
    add("owner", plain(&job.owner));
    let labels =
        job.labels.iter().map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
    add("labels", plain(&labels.collect::<Vec<_>>().join(" ")));
    let partition =
        job.partition.as_ref().map(|partition| format!(", partition {partition}")).unwrap_or_default();
    add("cluster", plain(&format!("{}{partition}", job.cluster)));
    let slurm = job.slurm_job_id.as_ref().map(|id| {
        format!("{id} {} (attempt {})", job.slurm_state.as_deref().unwrap_or_default(), job.attempt)
    });
    add("slurm", plain(&slurm.unwrap_or_default()));
    add("nodes", plain(&job.nodes.join(",")));
    add("needs", job.resources.to_string());
    add("image", given(&job.image));
    add("created", seconds(&plain(&job.created_on)));
    add("started", job.started_on.as_deref().map(|time| seconds(&plain(time))).unwrap_or_default());
    let took = job.finished_on.as_deref().map(|end| {
        let took =
            span(job.started_on.as_deref(), end).map(|took| format!(" after {took}")).unwrap_or_default();
        seconds(&plain(end)) + &took
    });
    add("ended", took.unwrap_or_default());
    text
}

/// `1:02:03` between two times of the API.
fn span(from: Option<&str>, to: &str) -> Option<String> {
    let (from, to): (DateTime<Utc>, DateTime<Utc>) = (from?.parse().ok()?, to.parse().ok()?);
    let span: TimeDelta = to - from;
    let seconds = span.num_seconds().max(0);
    Some(format!("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60))
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;

    use super::*;

    #[test]
    fn each_fact_has_a_line_and_what_is_unknown_has_none() {
        let json = r#"{"id": "01a21687-3d58-727b-af43-d5f40bfcf423", "name": "train\u001b", "status": "Done", "phase": "ended",
            "message": "The job has succeeded.", "owner": "ann", "labels": {"team": "vision"}, "cluster": "dgx", "partition": "polar",
            "slurm_job_id": "4711", "slurm_state": "COMPLETED", "nodes": ["n1", "n2"], "attempt": 1,
            "resources": {"num_nodes": 2, "gpus_per_node": 8, "total_gpus": 16, "time_hours": 1.5}, "image": null,
            "created_on": "2026-11-21T03:04:05Z", "started_on": "2026-11-21T03:05:05Z", "finished_on": "2026-11-21T04:07:08Z"}"#;
        let expected = "\
job:     01a21687-3d58-727b-af43-d5f40bfcf423  train\u{241b}
status:  Done
message: The job has succeeded.
owner:   ann
labels:  team=vision
cluster: dgx, partition polar
slurm:   4711 COMPLETED (attempt 1)
nodes:   n1,n2
needs:   2 nodes of 8 GPUs, 16 GPUs in all, at most 1 h 30 min
created: 2026-11-21 03:04:05
started: 2026-11-21 03:05:05
ended:   2026-11-21 04:07:08 after 1:02:03
";
        assert_eq!(strip_str(&lines(&serde_json::from_str(json).unwrap())).to_string(), expected);
    }
}
