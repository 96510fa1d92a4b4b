//! Why a job failed: the cause, the rule, the last lines and what to do next, each on lines of its own.

use domain::JobId;
use serde::Deserialize;

use crate::client::{Client, on_one_line, printable, with_query};

/// The lines of the log below the cause.
const LAST_LINES: u32 = 5;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Diagnosis {
    task: u32,
    rule: String,
    category: String,
    why: String,
    advice: String,
    node: Option<String>,
    rank: Option<u32>,
    first: Option<Line>,
}

#[derive(Deserialize)]
struct Line {
    log: String,
    offset: u64,
    #[serde(rename = "line")]
    text: String,
}

/// Empty if the service cannot say now.
pub(super) fn why(client: &Client, id: JobId) -> String {
    let Ok(found) = client.get(&format!("/jobs/{id}/diagnosis")).and_then(|answer| answer.document()) else {
        return String::new();
    };
    let found: Diagnosis = found;
    let stream = found.first.as_ref().and_then(stream).unwrap_or("err");
    let tail = [("stream", Some(stream.to_owned())), ("tail", Some(LAST_LINES.to_string()))];
    // A job may have failed before it had a log.
    let last = client
        .get(&with_query(&format!("/jobs/{id}/logs"), tail))
        .map(|answer| answer.body)
        .unwrap_or_default();
    written(id, &found, stream, &printable(&last))
}

/// The stream of the job's own log; none for the log of a role.
fn stream(line: &Line) -> Option<&'static str> {
    match line.log.rsplit_once('.')? {
        (name, "out") if !name.contains('/') => Some("out"),
        (name, "err") if !name.contains('/') => Some("err"),
        _ => None,
    }
}

fn written(id: JobId, found: &Diagnosis, stream: &str, last: &str) -> String {
    let mut lines = vec![format!("cause:  {}", found.why)];
    if let Some(Line { log, offset, text }) = &found.first {
        let rank = found.rank.map(|rank| format!(", rank {rank}")).unwrap_or_default();
        let node = found.node.as_ref().map(|node| format!(" on {node}")).unwrap_or_default();
        lines.push(format!("line:   {text}"));
        lines.push(format!("where:  {log} at byte {offset}{rank}{node}"));
    }
    lines.push(format!("rule:   {} ({})", found.rule, found.category));
    if !found.advice.is_empty() {
        lines.push(format!("advice: {}", found.advice));
    }
    if !last.trim().is_empty() {
        lines.push(format!("last lines of standard {}:", if stream == "out" { "output" } else { "error" }));
        lines.extend(last.lines().map(|line| format!("  {line}")));
    }
    let task = if found.task > 0 { format!(" --task {}", found.task) } else { String::new() };
    lines.push(format!("next:   tao-slurm logs {id}{task} --tail 100"));
    lines.iter().map(|line| on_one_line(line) + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "01a21687-3d58-727b-af43-d5f40bfcf423";

    #[test]
    fn each_part_has_a_line_of_its_own() {
        let json = r#"{"job_id": "x", "attempt": 1, "task": 3, "rule": "cuda-out-of-memory", "category": "gpu_memory",
            "why": "The GPU has no memory left.", "advice": "Make the batch smaller.", "node": "node02", "rank": 5,
            "first": {"log": "main.err", "offset": 812, "line": "torch.OutOfMemoryError\u001b[2J"}, "followed": [], "has_gaps": false}"#;
        let found: Diagnosis = serde_json::from_str(json).unwrap();
        assert_eq!(found.first.as_ref().and_then(stream), Some("err"));
        let expected = format!(
            "cause:  The GPU has no memory left.
line:   torch.OutOfMemoryError\u{241b}[2J
where:  main.err at byte 812, rank 5 on node02
rule:   cuda-out-of-memory (gpu_memory)
advice: Make the batch smaller.
last lines of standard error:
  one
  two
next:   tao-slurm logs {ID} --task 3 --tail 100
"
        );
        assert_eq!(written(ID.parse().unwrap(), &found, "err", "one\ntwo\n"), expected);
    }

    #[test]
    fn a_failure_that_nothing_explains_leads_to_the_log() {
        let found = Diagnosis {
            why: "Nothing explains it.".to_owned(),
            rule: "unknown".to_owned(),
            category: "unknown".to_owned(),
            ..Diagnosis::default()
        };
        let expected = format!(
            "cause:  Nothing explains it.\nrule:   unknown (unknown)\nnext:   tao-slurm logs {ID} --tail 100\n"
        );
        assert_eq!(written(ID.parse().unwrap(), &found, "err", "\n"), expected);
    }
}
