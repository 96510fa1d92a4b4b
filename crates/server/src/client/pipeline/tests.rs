use serde_json::{Value, json};

use super::*;

fn job(name: &str, status: &str, message: &str, needs: &[(&str, &str)]) -> Value {
    let needs: Vec<Value> = needs
        .iter()
        .map(|(job, when)| json!({"name": job, "job": format!("id-{job}"), "when": when}))
        .collect();
    json!({"name": name, "id": format!("id-{name}"), "status": status, "message": message, "needs": needs})
}

fn pipeline(status: &str, counts: &Value, jobs: &[Value]) -> PipelineDocument {
    let document = json!({"id": "p", "name": "nightly", "status": status, "jobs_by_status": counts, "jobs": jobs,
        "created_on": "2026-11-21T03:04:05.123Z"});
    serde_json::from_value(document).unwrap()
}

fn running() -> PipelineDocument {
    let mut skipped = job("undo", "Canceled", "Job `prep` did not fail.", &[("prep", "failed")]);
    skipped["skipped"] = json!(true);
    let jobs = [
        job("prep", "Done", "Ended with exit code 0.", &[]),
        job("train-a", "Running", "Epoch 3 of 6.", &[("prep", "succeeded")]),
        job("train-b", "Error", "Exit code 1.", &[("prep", "succeeded")]),
        skipped,
        job("report", "Pending", "Waits for 2 jobs.", &[("train-a", "succeeded"), ("train-b", "finished")]),
    ];
    let counts =
        json!({"total": 5, "pending": 1, "running": 1, "done": 1, "error": 1, "canceled": 0, "skipped": 1});
    pipeline("Running", &counts, &jobs)
}

#[test]
fn each_job_is_a_line_with_its_needs() {
    let expected = "\
JOB      ID          STATUS              NEEDS                          MESSAGE
prep     id-prep     Done
train-a  id-train-a  Running             ← prep
train-b  id-train-b  Error               ← prep                         Exit code 1.
undo     id-undo     Canceled (skipped)  ← prep (failed)                Job `prep` did not fail.
report   id-report   Pending             ← train-a, train-b (finished)  Waits for 2 jobs.
nightly: Running, 5 jobs: 1 done, 1 running, 1 pending, 1 failed, 1 skipped
";
    assert_eq!(strip_str(&running().drawing()).to_string(), expected);
}

#[test]
fn many_needs_and_jobs_of_other_pipelines_are_shown_short() {
    let needs: Vec<_> = ["a", "b", "c", "d", "e", "f", "g"].map(|name| (name, "succeeded")).to_vec();
    let found = pipeline("Pending", &json!({"total": 1, "pending": 1}), &[job("end", "Pending", "", &needs)]);
    let expected = "\
JOB  ID      STATUS   NEEDS                                   MESSAGE
end  id-end  Pending  ← id-a, id-b, id-c, id-d, id-e, 2 more
nightly: Pending, 1 job: 1 pending
";
    assert_eq!(strip_str(&found.drawing()).to_string(), expected);
}

#[test]
fn text_from_the_service_cannot_control_the_terminal() {
    let jobs = [job("a\u{1b}[2J", "Error", "b\n\u{1b}c", &[("d\u{9b}", "e\u{1b}")])];
    let found = pipeline("Error", &json!({"total": 1, "error": 1}), &jobs);
    let before = pipeline("Error", &json!({}), &[]);
    for shown in [strip_str(&found.drawing()).to_string(), found.live(80, 24), found.changes(&before)] {
        assert!(shown.chars().all(|c| !c.is_control() || c == '\n'), "{shown:?}");
        assert!(shown.lines().count() <= 3, "{shown:?}");
    }
}

#[test]
fn only_changed_lines_are_printed_again() {
    let (before, mut after) = (running(), running());
    assert_eq!(after.changes(&before), "");
    after.jobs[1].message = "Epoch 4 of 6.".to_owned();
    assert_eq!(after.changes(&before), "");
    after.jobs[1].status = Status::Done;
    after.jobs[4].message = "Waiting: Priority.".to_owned();
    after.summary.jobs_by_status.running = 0;
    after.summary.jobs_by_status.done = 2;
    let expected = "\
train-a Done
report Pending Waiting: Priority.
nightly: Running, 5 jobs: 2 done, 1 pending, 1 failed, 1 skipped
";
    assert_eq!(after.changes(&before), expected);
}

#[test]
fn a_live_drawing_fits_the_terminal() {
    let expected = "\
JOB      STATUS   NEEDS                …
train-a  Running  ← prep
report   Pending  ← train-a, train-b (f…
… and 3 more jobs
nightly: Running, 5 jobs: 1 done, 1 run…
";
    assert_eq!(running().live(41, 6), expected);
    assert_eq!(running().live(200, 24).lines().count(), 7);
    assert_eq!(running().live(200, 1).lines().count(), 4);
}

#[test]
fn a_pipeline_is_one_row_of_a_list() {
    let row = running().summary.row();
    let counts = "5 jobs: 1 done, 1 running, 1 pending, 1 failed, 1 skipped";
    assert_eq!(row, ["p", "Running", "2026-11-21 03:04:05", counts, "nightly"]);
}

#[test]
fn the_status_of_the_whole_decides_the_exit_code() {
    for (status, code) in
        [("Pending", None), ("Running", None), ("Done", Some(0)), ("Error", Some(1)), ("Canceled", Some(2))]
    {
        assert_eq!(pipeline(status, &json!({}), &[]).exit_code(), code, "{status}");
    }
}
