use chrono::{DateTime, TimeDelta};
use serde_json::json;

use super::*;
use crate::progress::status_file::{Text, read_line};

fn collected(most: usize, lines: &[(u32, Value)]) -> MetricCollector {
    let mut collector = MetricCollector::new(BTreeSet::new(), most);
    for (second, (attempt, line)) in (0..).zip(lines) {
        collector.take(*attempt, DateTime::UNIX_EPOCH + TimeDelta::seconds(second), line);
    }
    collector
}

/// Name, attempt, axis, and the points.
type Shown = (String, u32, MetricAxis, Vec<(f64, f64)>);

fn shown(collector: MetricCollector) -> Vec<Shown> {
    let points = |series: &MetricSeries| series.points.iter().map(|point| (point.x, point.value)).collect();
    let series = collector.series();
    series.iter().map(|series| (series.name.clone(), series.attempt, series.axis, points(series))).collect()
}

#[test]
fn each_metric_of_each_attempt_is_a_series() {
    let lines = [
        (
            1,
            json!({"epoch": 1, "kpi": {"loss": 0.5, "acc": "0.25"}, "graphical": {"loss": 9, "lr": {"value": 1e-4}}}),
        ),
        (1, json!({"epoch": 2, "kpi": {"loss": 0.25}})),
        (2, json!({"epoch": 1, "kpi": {"loss": 0.75}, "key_metric": 0.75})),
    ];
    let expected = [
        ("acc".to_owned(), 1, MetricAxis::Epoch, vec![(1.0, 0.25)]),
        ("key_metric".to_owned(), 2, MetricAxis::Epoch, vec![(1.0, 0.75)]),
        ("loss".to_owned(), 1, MetricAxis::Epoch, vec![(1.0, 0.5), (2.0, 0.25)]),
        ("loss".to_owned(), 2, MetricAxis::Epoch, vec![(1.0, 0.75)]),
        ("lr".to_owned(), 1, MetricAxis::Epoch, vec![(1.0, 1e-4)]),
    ];
    assert_eq!(shown(collected(500, &lines)), expected);
}

#[test]
fn the_axis_is_the_finest_that_all_lines_have() {
    let axes = |lines: [Value; 2]| shown(collected(500, &lines.map(|line| (1, line)))).remove(0);
    let line = |place: Value| {
        let mut line = place;
        line["kpi"] = json!({"loss": 1});
        line
    };
    let both = axes([
        line(json!({"step": 50, "epoch": 0.33})),
        line(json!({"cur_iter": 100, "step": 1, "epoch": 0.67})),
    ]);
    assert_eq!((both.2, both.3), (MetricAxis::Step, vec![(50.0, 1.0), (100.0, 1.0)]));
    let epochs = axes([line(json!({"step": 50, "epoch": 0.33})), line(json!({"epoch": 0.67}))]);
    assert_eq!((epochs.2, epochs.3), (MetricAxis::Epoch, vec![(0.33, 1.0), (0.67, 1.0)]));
    let none = axes([line(json!({"step": 50})), line(json!({"epoch": "inf"}))]);
    assert_eq!((none.2, none.3), (MetricAxis::Time, vec![(0.0, 1.0), (1.0, 1.0)]));
}

#[test]
fn values_that_are_no_finite_numbers_are_counted_or_left_out() {
    // As a line becomes an event.
    let event = |line: &str| read_line(Text::Whole(line.as_bytes())).unwrap().1;
    let lines = [
        (
            1,
            event(
                r#"{"step":1,"kpi":{"loss":NaN,"a":null,"b":"inf","v":{"value":NaN},"table":{"car":1},"list":[1],"why":"x"},"key_metric":-Infinity}"#,
            ),
        ),
        (1, event(r#"{"step":2,"kpi":{"loss":0.5,"deep":{"value":{"value":2}},"yes":true,"big":1e300}}"#)),
        (1, json!("no object")),
        (1, json!({"kpi": [1], "graphical": 7, "key_metric": {}})),
    ];
    let series = collected(500, &lines).series();
    let counts: Vec<_> = series.iter().map(|one| (one.name.as_str(), one.count, one.not_finite)).collect();
    let expected = [
        ("a", 0, 1),
        ("b", 0, 1),
        ("big", 1, 0),
        ("deep", 1, 0),
        ("key_metric", 0, 1),
        ("loss", 1, 1),
        ("v", 0, 1),
        ("yes", 1, 0),
    ];
    assert_eq!(counts, expected);
}

#[test]
fn names_are_what_the_progress_takes_for_names() {
    let long = "é".repeat(100);
    let lines = [(
        1,
        json!({"kpi": {"": 1, "a\u{1b}[31m": 1, (long.clone() + "x"): 1, (long.clone()): 1, "<b>\u{202e}": 1}}),
    )];
    let names: Vec<_> = shown(collected(500, &lines)).into_iter().map(|series| series.0).collect();
    assert_eq!(names, [String::new(), "<b>\u{202e}".to_owned(), long]);
}

#[test]
fn only_the_named_metrics_are_collected() {
    let mut collector = MetricCollector::new(BTreeSet::from(["loss".to_owned(), "none".to_owned()]), 500);
    collector.take(1, DateTime::UNIX_EPOCH, &json!({"kpi": {"loss": 1, "acc": 2}}));
    assert_eq!(shown(collector).len(), 1);
}

#[test]
fn a_job_with_new_names_at_each_step_keeps_a_bounded_number_and_says_so() {
    let lines: Vec<_> = (0..300).map(|step| (1, json!({"kpi": {format!("loss_{step:03}"): 1}}))).collect();
    let collector = collected(500, &lines);
    assert!(collector.has_left_out());
    assert_eq!(shown(collector).len(), MOST_METRICS);
    let attempts: Vec<_> = (1..=2000).map(|attempt| (attempt, json!({"kpi": {"loss": 1}}))).collect();
    let collector = collected(500, &attempts);
    assert!(collector.has_left_out());
    assert_eq!(shown(collector).len(), MOST_SERIES);
    assert!(!collected(500, &lines[..200]).has_left_out());
}

#[test]
fn many_values_become_few_points_and_their_number_is_known() {
    let line = |step: u32| {
        (1, json!({"step": step, "kpi": {"loss": if step == 777 { 1000.0 } else { f64::from(step % 10) }}}))
    };
    let series = collected(50, &(0..10_000).map(line).collect::<Vec<_>>()).series().remove(0);
    assert_eq!(series.count, 10_000);
    assert!((45..=50).contains(&series.points.len()), "{}", series.points.len());
    let peak = series.points.iter().max_by(|a, b| a.value.total_cmp(&b.value));
    assert_eq!(peak.map(|peak| (peak.x, peak.value)), Some((777.0, 1000.0)));
    assert_eq!((series.points[0].x, series.points[series.points.len() - 1].x), (0.0, 9999.0));
}

#[test]
fn memory_is_bounded_however_many_values_there_are() {
    let mut collector = MetricCollector::new(BTreeSet::new(), 5000);
    let names: Map<String, Value> = (0..200).map(|name| (format!("metric {name}"), json!(name))).collect();
    for step in 0..3000 {
        collector.take(1, DateTime::UNIX_EPOCH, &json!({"step": step, "kpi": names}));
        assert!(collector.kept <= MOST_KEPT);
    }
    let series = collector.series();
    assert_eq!(series.len(), 200);
    assert!(series.iter().map(|one| one.points.len()).sum::<usize>() <= MOST_POINTS);
    assert!(series.iter().all(|one| one.count == 3000 && one.points.len() >= 240));
}
