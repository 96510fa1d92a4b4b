//! `usage`: jobs, waiting times and GPU hours in a window of time.

use std::process::ExitCode;

use domain::Clock;
use serde::Deserialize;

use super::output::{Output, note};
use crate::{
    cli::UsageArgs,
    client::{Client, table, with_query},
    process::clock::SystemClock,
};

#[derive(Deserialize)]
struct Stats {
    totals: Figures,
    groups: Option<Vec<Group>>,
    groups_truncated: bool,
}

#[derive(Deserialize)]
struct Group {
    value: Option<String>,
    #[serde(flatten)]
    figures: Figures,
}

#[derive(Deserialize)]
struct Figures {
    submitted: u64,
    ended: Ended,
    success_rate: Option<f64>,
    queue_wait_seconds: Wait,
    gpu_hours: f64,
}

#[derive(Deserialize)]
struct Ended {
    done: u64,
    error: u64,
    canceled: u64,
}

#[derive(Deserialize)]
struct Wait {
    p50: Option<f64>,
    p90: Option<f64>,
}

pub(super) fn run(args: &UsageArgs) -> anyhow::Result<ExitCode> {
    let now = SystemClock.now();
    let clusters = args.cluster.iter().map(|name| ("cluster", Some(name.to_string())));
    let owners = args.owner.iter().map(|name| ("owner", Some(name.clone())));
    let window = [
        ("since", Some(args.since.before(now).to_rfc3339())),
        ("until", args.until.as_ref().map(|until| until.before(now).to_rfc3339())),
        ("group_by", Some(args.by.clone())),
    ];
    let path = with_query("/stats", window.into_iter().chain(clusters).chain(owners));
    let answer = Client::new(&args.server)?.get(&path)?;
    Output::new().show(&args.server, &answer, |stats: Stats| {
        if stats.groups_truncated {
            note("These are the 100 groups with the most jobs; there are more.");
        }
        figures(&args.by, &stats)
    })
}

fn figures(by: &str, stats: &Stats) -> String {
    let header = by.rsplit(':').next().unwrap_or(by).to_uppercase();
    let headers = [
        header.as_str(),
        "GPU HOURS",
        "SUBMITTED",
        "DONE",
        "FAILED",
        "CANCELED",
        "SUCCESS",
        "WAIT P50",
        "WAIT P90",
    ];
    let groups = stats.groups.iter().flatten();
    let rows = groups.map(|group| row(group.value.as_deref().unwrap_or("(none)"), &group.figures));
    table(headers, rows.chain([row("all", &stats.totals)]))
}

fn row(name: &str, figures: &Figures) -> [String; 9] {
    let Figures { submitted, ended, success_rate, queue_wait_seconds, gpu_hours } = figures;
    [
        name.to_owned(),
        format!("{gpu_hours:.1}"),
        submitted.to_string(),
        ended.done.to_string(),
        ended.error.to_string(),
        ended.canceled.to_string(),
        success_rate.map(|rate| format!("{:.0} %", rate * 100.0)).unwrap_or_default(),
        queue_wait_seconds.p50.map(span).unwrap_or_default(),
        queue_wait_seconds.p90.map(span).unwrap_or_default(),
    ]
}

fn span(seconds: f64) -> String {
    match seconds {
        ..120.0 => format!("{seconds:.0} s"),
        ..7200.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_group_has_a_line_and_all_have_one() {
        let figures_of = r#""submitted": 120, "ended": {"done": 94, "error": 6, "canceled": 3}, "success_rate": 0.94,
            "queue_wait_seconds": {"runs": 130, "p50": 42.0, "p90": 900.5}, "gpu_hours": 96.5"#;
        let json = format!(
            r#"{{"totals": {{{figures_of}}}, "groups": [{{"value": "vision", {figures_of}}}, {{"value": null, {figures_of}}}],
               "groups_truncated": false}}"#
        );
        let expected = "\
TEAM    GPU HOURS  SUBMITTED  DONE  FAILED  CANCELED  SUCCESS  WAIT P50  WAIT P90
vision  96.5       120        94    6       3         94 %     42 s      15 min
(none)  96.5       120        94    6       3         94 %     42 s      15 min
all     96.5       120        94    6       3         94 %     42 s      15 min
";
        assert_eq!(figures("label:team", &serde_json::from_str(&json).unwrap()), expected);
    }
}
