//! Our reader beside TAO's own, on the lines that TAO's code writes.

use serde::Deserialize;

use super::*;

/// A line, and what TAO's `StatusParser` reads from it. `tao_lines.py` has made them.
#[derive(Debug, Deserialize)]
struct Row {
    by: String,
    line: String,
    reads: Map<String, Value>,
}

fn rows() -> Vec<Row> {
    // The first line says how the file was made.
    let rows = include_str!("tao_lines.jsonl").lines().skip(1);
    rows.map(|row| serde_json::from_str(row).unwrap()).collect()
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The finite metrics that TAO reads. Where both groups have one, ours is that of `kpi`.
fn metrics(row: &Row) -> Map<String, Value> {
    let group = |name| row.reads.get(name).and_then(Value::as_object).cloned().unwrap_or_default();
    let mut metrics = group("graphical");
    metrics.append(&mut group("kpi"));
    metrics
}

#[test]
fn what_tao_reads_from_a_line_is_read() {
    let rows = rows();
    assert!(rows.len() >= 40);
    for row in &rows {
        let (lines, taken) = read_lines(format!("{}\n", row.line).as_bytes());
        let [line] = lines.as_slice() else { panic!("{row:?}") };
        assert_eq!(taken, row.line.len() + 1);
        let reads = |key: &str| row.reads.get(key);
        let word = shown(reads("status").unwrap()).parse().ok();
        assert_eq!(line.word, word, "{row:?}");
        assert_eq!(line.message, reads("message").map(|text| plain(&shown(text))), "{row:?}");
        for (ours, key) in [(line.epoch, "epoch"), (line.max_epoch, "max_epoch")] {
            assert_eq!(ours, reads(key).and_then(count), "{key}: {row:?}");
        }
        if let Some(iteration) = reads("cur_iter") {
            assert_eq!(line.cur_iter, count(iteration), "{row:?}");
        }
        let durations = [&line.eta, &line.time_per_epoch, &line.time_per_iter];
        for (ours, key) in durations.into_iter().zip(["eta", "time_per_epoch", "time_per_iter"]) {
            assert_eq!(ours.clone(), reads(key).map(shown), "{key}: {row:?}");
        }
        let key_metric = line.key_metric.as_ref().and_then(Value::as_f64);
        assert_eq!(key_metric, reads("key_metric").and_then(number), "{row:?}");
        // The tables of a data set are events only.
        if row.by == "analytics" {
            assert!(line.metrics.is_empty(), "{row:?}");
            continue;
        }
        for (key, value) in metrics(row) {
            assert_eq!(line.metrics.get(&key).and_then(Value::as_f64), value.as_f64(), "{key}: {row:?}");
        }
    }
}

#[test]
fn only_what_is_not_finite_and_metrics_of_a_training_step_are_read_beyond_that() {
    let mut beyond = Vec::new();
    for row in rows() {
        let (lines, _) = read_lines(format!("{}\n", row.line).as_bytes());
        let theirs = metrics(&row);
        let more = lines[0].metrics.iter().filter(|(key, _)| !theirs.contains_key(*key));
        beyond.extend(more.map(|(key, value)| format!("{}: {key} {value}", row.by)));
    }
    let callback = ["StatusCallback: loss null"; 2];
    let values = ["a", "b", "c", "d", "a", "b", "c", "f"].map(|key| format!("values: {key} null"));
    let expected: Vec<String> =
        callback.map(str::to_owned).into_iter().chain(["MMLab: loss 0.5".to_owned()]).chain(values).collect();
    assert_eq!(beyond, expected);
}
