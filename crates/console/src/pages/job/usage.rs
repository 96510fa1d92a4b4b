//! What a job uses: sentences, a chart and a table of its GPUs.

use axum::{
    Json,
    response::{IntoResponse, Response},
};
use chrono::TimeDelta;
use maud::{Markup, html};

use crate::{
    client::{Failure, JOB_USAGE, Query},
    frame::{IdPath, Visit},
    layout::{Axis, Chart, Charts, Curve, bytes, charts_from, duration},
    model::{Accounted, Gpu, Job, Measured, Usage},
};

/// So many GPUs are in a page; the API has all.
const MOST_GPUS: usize = 64;

/// What a job uses that has begun. The tasks of an array have their own.
pub(super) async fn read(visit: &Visit, job: &Job) -> Result<Option<Usage>, Failure> {
    if job.summary.started_on.is_none() || job.details.array.is_some() {
        return Ok(None);
    }
    visit.api.get(&JOB_USAGE, &[&job.summary.id], &Query::new()).await.map(Some)
}

/// The chart, as data for the script.
pub(crate) async fn usage(visit: Visit, IdPath(id): IdPath) -> Result<Response, Failure> {
    let usage = visit.api.get(&JOB_USAGE, &[&id], &visit.query.only(&["task"])).await?;
    Ok(Json(Charts { charts: usage.measured.into_iter().map(chart).collect(), notes: Vec::new() })
        .into_response())
}

pub(super) fn section(job: &Job, usage: &Usage) -> Markup {
    let gpus = usage.measured.as_ref().map_or(&[][..], |measured| &measured.gpus);
    html! {
        @if !usage.notes.is_empty() || usage.accounted.runs > 0 {
            section #use {
                h2 { "Use" }
                ul {
                    @for note in &usage.notes { li { (note) } }
                    @if usage.accounted.runs > 0 { li { (account(&usage.accounted)) } }
                }
                @if !gpus.is_empty() {
                    (charts_from("usage", &super::path(&job.summary.id, "/usage")))
                    details #gpus { summary { "Each GPU" } (table(gpus)) }
                }
            }
        }
    }
}

/// "Slurm accounts for 2 runs: 1 h 2 min, 8.3 GPU hours, 12 % of its processors' time used, at most 60.4 GiB in one task."
#[expect(clippy::cast_precision_loss, reason = "hours with one digit, and a percentage")]
fn account(account: &Accounted) -> String {
    let share = |used: u64| used as f64 * 100.0 / account.cpu_seconds.max(1) as f64;
    let parts = [
        Some(duration(TimeDelta::seconds(account.seconds))),
        (account.gpu_seconds > 0).then(|| format!("{:.1} GPU hours", account.gpu_seconds as f64 / 3600.0)),
        account
            .cpu_seconds_used
            .map(|used| format!("{:.0} % of its processors\u{2019} time used", share(used))),
        account.most_memory_mib.map(|mib| format!("at most {} in one task", bytes(u64::from(mib) << 20))),
    ];
    let plural = if account.runs == 1 { "" } else { "s" };
    let parts = parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
    format!("Slurm accounts for {} run{plural}: {parts}.", account.runs)
}

fn table(gpus: &[Gpu]) -> Markup {
    let left_out = gpus.len().saturating_sub(MOST_GPUS);
    html! {
        table {
            caption.unseen { "The GPUs of the job" }
            thead { tr {
                th scope="col" { "Node" } th scope="col" { "GPU" } th scope="col" { "Used" } th scope="col" { "At most" } th scope="col" { "Memory at most" }
            } }
            tbody { @for gpu in gpus.iter().take(MOST_GPUS) {
                tr {
                    td data-name="Node" { (gpu.node) }
                    td.number data-name="GPU" { (gpu.index) }
                    td.number data-name="Used" { (format!("{:.0} %", gpu.percent)) }
                    td.number data-name="At most" { (gpu.most_percent) " %" }
                    td.number data-name="Memory at most" { (gpu.most_memory_mib) " of " (gpu.memory_mib) " MiB" }
                }
            } }
        }
        @if left_out > 0 { p.hint { (left_out) " more are in the API\u{2019}s answer." } }
    }
}

#[expect(clippy::cast_precision_loss, reason = "seconds since 1970 are below 2^52")]
fn chart(measured: Measured) -> Chart {
    let series = measured.series;
    let curve = Curve {
        name: format!("attempt {}", measured.attempt),
        kind: None,
        x: series.times.iter().map(|at| at.timestamp() as f64).collect(),
        y: series.percent,
    };
    Chart { title: "GPUs, % used".to_owned(), axis: Axis::Time, curves: vec![curve], note: None }
}
