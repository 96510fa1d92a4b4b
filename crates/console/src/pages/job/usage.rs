//! What a job uses: sentences, a chart and a table of its GPUs.

use axum::{
    Json,
    response::{IntoResponse, Response},
};
use maud::{Markup, html};

use crate::{
    client::{Failure, JOB_USAGE, Query},
    frame::{IdPath, Visit},
    layout::{Axis, Chart, Charts, Curve, charts_from},
    model::{Gpu, Job, Measured, Usage},
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
        @if !usage.notes.is_empty() {
            section #use {
                h2 { "Use" }
                ul { @for note in &usage.notes { li { (note) } } }
                @if !gpus.is_empty() {
                    (charts_from("usage", &super::path(&job.summary.id, "/usage")))
                    details #gpus { summary { "Each GPU" } (table(gpus)) }
                }
            }
        }
    }
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
