//! The charts of a job's metrics, as data for the script.

use axum::{
    Json,
    response::{IntoResponse, Response},
};
use maud::{Markup, html};

use crate::{
    client::{Failure, JOB_METRICS},
    frame::{IdPath, Visit},
    layout::{Axis, Chart, Charts, Curve, charts_from},
    model::{Job, MetricSeries, Metrics},
};

/// What a page draws.
const MOST_CHARTS: usize = 24;
/// What a chart draws: the newest attempts.
const MOST_CURVES: usize = 6;

pub(crate) async fn charts(visit: Visit, IdPath(id): IdPath) -> Result<Response, Failure> {
    let metrics = visit.api.get(&JOB_METRICS, &[&id], &visit.query.only(&["task"])).await?;
    Ok(Json(of(metrics)).into_response())
}

/// The place of the charts in the page of a job that has reported something. The tasks of an array have their own.
pub(super) fn section(job: &Job) -> Markup {
    let summary = &job.summary;
    let has_some =
        !summary.progress.metrics.is_empty() || (summary.attempt > 1 && summary.progress.message.is_some());
    html! {
        @if has_some && job.details.array.is_none() {
            section { h2 { "Metrics" } (charts_from("metrics", &super::path(&summary.id, "/charts"))) }
        }
    }
}

fn of(metrics: Metrics) -> Charts {
    let mut charts: Vec<Vec<MetricSeries>> = Vec::new();
    // The series of a metric are neighbours.
    for series in metrics.series {
        match charts.last_mut() {
            Some(last) if last[0].name == series.name => last.push(series),
            _ => charts.push(vec![series]),
        }
    }
    let left_out = charts.len().saturating_sub(MOST_CHARTS);
    let mut notes = Vec::new();
    if left_out > 0 {
        notes.push(format!("{left_out} more metrics are in the API\u{2019}s answer."));
    }
    if metrics.truncated {
        notes.push("Some values are missing: the job has reported more than is kept.".to_owned());
    }
    Charts { charts: charts.into_iter().take(MOST_CHARTS).map(chart).collect(), notes }
}

fn chart(series: Vec<MetricSeries>) -> Chart {
    let not_finite: u64 = series.iter().map(|one| one.not_finite).sum();
    // Attempts with different axes share only the time of neither: the newest one decides.
    let axis = series.last().map_or_else(Axis::default, |newest| Axis::of(newest.axis.raw()));
    let title = series[0].name.plain();
    let with_attempts = series.len() > 1;
    let drawn: Vec<_> = series.into_iter().filter(|one| Axis::of(one.axis.raw()) == axis).collect();
    let hidden = drawn.len().saturating_sub(MOST_CURVES);
    let curve = |one: MetricSeries| Curve {
        name: if with_attempts { format!("attempt {}", one.attempt) } else { one.name.plain() },
        kind: None,
        x: one.x,
        y: one.values,
    };
    let note = (not_finite > 0).then(|| format!("{not_finite} values were null, NaN or infinite."));
    Chart { title, axis, curves: drawn.into_iter().skip(hidden).map(curve).collect(), note }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn charts(series: &serde_json::Value) -> serde_json::Value {
        let metrics = serde_json::from_value(json!({"series": series, "truncated": false})).unwrap();
        serde_json::to_value(of(metrics)).unwrap()
    }

    fn series(name: &str, attempt: u32, axis: &str) -> serde_json::Value {
        json!({"name": name, "attempt": attempt, "axis": axis, "x": [1.0], "values": [0.5], "not_finite": 1})
    }

    #[test]
    fn each_metric_is_a_chart_and_each_attempt_a_curve() {
        let shown = charts(&json!([
            series("acc", 1, "step"),
            series("loss", 1, "time"),
            series("loss", 2, "epoch"),
            series("loss", 3, "epoch")
        ]));
        let acc = json!({"title": "acc", "axis": "step", "note": "1 values were null, NaN or infinite.", "curves": [{"name": "acc", "kind": null, "x": [1.0], "y": [0.5]}]});
        assert_eq!(shown["charts"][0], acc);
        let loss = &shown["charts"][1];
        assert_eq!((&loss["axis"], loss["curves"].as_array().unwrap().len()), (&json!("epoch"), 2));
        assert_eq!(loss["curves"][0]["name"], "attempt 2");
    }

    #[test]
    fn a_job_with_many_metrics_and_attempts_draws_some_and_says_so() {
        let many: Vec<_> = (0..30).map(|number| series(&format!("m{number}"), 1, "step")).collect();
        let shown = charts(&json!(many));
        assert_eq!(shown["charts"].as_array().unwrap().len(), MOST_CHARTS);
        assert!(shown["notes"][0].as_str().unwrap().starts_with("6 more metrics"));
        let attempts: Vec<_> = (1..=30).map(|attempt| series("loss", attempt, "step")).collect();
        let shown = charts(&json!(attempts));
        assert_eq!(shown["charts"][0]["curves"][MOST_CURVES - 1]["name"], "attempt 30");
    }

    #[test]
    fn hostile_names_have_no_characters_that_turn_others_around() {
        let shown = charts(&json!([series("a\u{202e}\u{1b}<b>", 1, "step")]));
        assert_eq!(shown["charts"][0]["title"], "a\u{fffd}\u{fffd}<b>");
    }
}
