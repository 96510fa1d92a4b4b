//! The charts of the figures over the window, as data for the script.

use axum::{
    Json,
    response::{IntoResponse, Response},
};
use maud::{Markup, html};

use super::choice::Choice;
use crate::{
    client::{Failure, STATS},
    frame::Visit,
    layout::{Axis, Chart, Charts, Curve, Kind, charts_from},
    model::{Bucket, Figures},
};

/// The charts of the window and the filters in the address.
pub(crate) async fn charts(visit: Visit) -> Result<Response, Failure> {
    let choice = Choice::of(&visit.query);
    let stats = visit.api.get(&STATS, &[], &choice.course(visit.now)).await?;
    let charts = of(stats.buckets.as_deref().unwrap_or_default(), choice.bucket());
    Ok(Json(charts).into_response())
}

/// The place of the charts in the page.
pub(super) fn section(choice: &Choice) -> Markup {
    html! {
        section { h2 { "Course" } (charts_from("usage", &choice.address(&format!("{}/charts", super::path())))) }
    }
}

fn of(buckets: &[Bucket], bucket: &str) -> Charts {
    let charts = if buckets.is_empty() {
        Vec::new()
    } else {
        vec![ended(buckets, bucket), hours(buckets, bucket), waits(buckets)]
    };
    Charts {
        charts,
        notes: vec![format!(
            "Each point is the {bucket} that begins there, in UTC. The last one is not over yet."
        )],
    }
}

fn ended(buckets: &[Bucket], bucket: &str) -> Chart {
    #[expect(clippy::cast_precision_loss, reason = "numbers of jobs, to be drawn")]
    let jobs = |name, kind, number: fn(Figures) -> u64| {
        curve(name, Some(kind), buckets, |of| Some(number(of) as f64))
    };
    chart(
        format!("Jobs that ended in each {bucket}"),
        vec![
            jobs("Done", Kind::Good, |of| of.ended.done),
            jobs("Error", Kind::Bad, |of| of.ended.error),
            jobs("Canceled", Kind::Off, |of| of.ended.canceled),
        ],
    )
}

fn hours(buckets: &[Bucket], bucket: &str) -> Chart {
    chart(
        format!("GPU hours of each {bucket}"),
        vec![curve("GPU hours", None, buckets, |of| Some(of.gpu_hours))],
    )
}

fn waits(buckets: &[Bucket]) -> Chart {
    let minutes = |seconds: Option<f64>| seconds.map(|seconds| seconds / 60.0);
    chart(
        "Minutes that runs waited in the queue".to_owned(),
        vec![
            curve("Median", None, buckets, |of| minutes(of.queue_wait_seconds.p50)),
            curve("9 of 10", None, buckets, |of| minutes(of.queue_wait_seconds.p90)),
        ],
    )
}

fn chart(title: String, curves: Vec<Curve>) -> Chart {
    Chart { title, axis: Axis::Time, curves, note: None }
}

/// The values that are known.
fn curve(
    name: &str,
    kind: Option<Kind>,
    buckets: &[Bucket],
    value: impl Fn(Figures) -> Option<f64>,
) -> Curve {
    let known = buckets.iter().filter_map(|bucket| {
        let value = value(bucket.figures()).filter(|value| value.is_finite())?;
        #[expect(clippy::cast_precision_loss, reason = "a place in a chart")]
        Some((bucket.start.timestamp() as f64, value))
    });
    let (x, y) = known.unzip();
    Curve { name: name.to_owned(), kind: kind.map(Kind::class), x, y }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn bucket(start: &str, done: u64, p50: Option<f64>) -> Bucket {
        serde_json::from_value(json!({
            "start": start, "submitted": 7, "ended": {"done": done, "error": 2, "canceled": 1}, "success_rate": 0.5,
            "queue_wait_seconds": {"runs": 9, "p50": p50, "p90": 600.0}, "gpu_hours": 1.5,
        }))
        .unwrap()
    }

    #[test]
    fn each_figure_is_a_curve_over_the_beginnings_of_the_buckets() {
        let buckets =
            [bucket("2026-11-27T00:00:00Z", 3, Some(90.0)), bucket("2026-11-28T00:00:00Z", 0, None)];
        let charts = serde_json::to_value(of(&buckets, "day")).unwrap();
        let (first, second) = (1_795_737_600.0, 1_795_824_000.0);
        assert_eq!(
            charts["charts"][0],
            json!({"title": "Jobs that ended in each day", "axis": "time", "note": null, "curves": [
                {"name": "Done", "kind": "good", "x": [first, second], "y": [3.0, 0.0]},
                {"name": "Error", "kind": "bad", "x": [first, second], "y": [2.0, 2.0]},
                {"name": "Canceled", "kind": "off", "x": [first, second], "y": [1.0, 1.0]},
            ]})
        );
        assert_eq!(charts["charts"][1]["curves"][0]["y"], json!([1.5, 1.5]));
        // A bucket without a run has no wait, which is not a wait of 0.
        let waits = &charts["charts"][2]["curves"];
        assert_eq!((&waits[0]["x"], &waits[0]["y"]), (&json!([first]), &json!([1.5])));
        assert_eq!(waits[1]["y"], json!([10.0, 10.0]));
    }

    #[test]
    fn a_window_without_buckets_has_no_charts() {
        assert!(of(&[], "day").charts.is_empty());
    }
}
