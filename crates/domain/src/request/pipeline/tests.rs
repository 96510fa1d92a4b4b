use serde_json::{Value, json};

use super::*;
use crate::request::needs::NeedWhen;

fn jobs(document: Value) -> Result<Vec<PipelineJob>, Vec<(String, String)>> {
    let request: PipelineRequest = serde_json::from_value(document).unwrap();
    let mut last = 0;
    let ids = move || {
        last += 1;
        Uuid::from_u128(last)
    };
    let told = |fault: Violation| (fault.pointer, fault.detail);
    request.into_jobs(ids).map_err(|faults| faults.into_iter().map(told).collect())
}

fn needing(names: &[&str]) -> Value {
    json!({"command": "true", "needs": names.iter().map(|name| json!({"job": name})).collect::<Vec<_>>()})
}

#[test]
fn each_job_comes_after_those_that_it_needs_by_their_ids() {
    let pipeline = json!({
        "labels": {"team": "vision", "step": "all"},
        "webhook": {"url": "https://example.org/hook", "secret": "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"},
        "jobs": {
            "a-clean": {"command": "true", "needs": [{"job": "train", "when": "finished"}]},
            "prep": {"command": "true", "labels": {"step": "first"}},
            "train": needing(&["prep"]),
            "evaluate": needing(&["train", "00000000-0000-0000-0000-0000000000ff"]),
        }
    });
    let jobs = jobs(pipeline).unwrap();
    let names: Vec<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names, ["prep", "train", "a-clean", "evaluate"]);
    let id = |at: usize| jobs[at].request.id.unwrap().to_string();
    let clean = &jobs[2].request.needs[0];
    assert_eq!((&clean.job, clean.name.as_deref(), clean.when), (&id(1), Some("train"), NeedWhen::Finished));
    assert_eq!(jobs[3].request.needs[1].job, "00000000-0000-0000-0000-0000000000ff", "of another job");
    assert_eq!(jobs[0].request.labels["step"], "first");
    assert_eq!(jobs[1].request.labels["step"], "all");
    assert!(jobs.iter().all(|job| job.request.webhook.is_some() && job.request.labels["team"] == "vision"));
}

#[test]
fn a_cycle_is_told_from_end_to_end() {
    let pipeline = json!({"jobs": {
        "a": needing(&["b"]), "b": needing(&["d", "c"]), "c": needing(&["b"]), "d": needing(&[])
    }});
    let faults = jobs(pipeline).unwrap_err();
    let [(pointer, detail)] = faults.as_slice() else { panic!("{faults:?}") };
    assert_eq!(
        (pointer.as_str(), detail.as_str()),
        ("/jobs/b/needs/1/job", "needs itself in the end: b needs c needs b")
    );
    let ids = ["01A21687-3D58-727B-AF43-D5F40BFCF423", "01a216873d58727baf43d5f40bfcf424"];
    let by_id = jobs(json!({"jobs": {
        "a": {"id": ids[0], "command": "true", "needs": [{"job": ids[1]}]},
        "b": {"id": ids[1], "command": "true", "needs": [{"job": ids[0]}]},
    }}));
    assert_eq!(by_id.unwrap_err()[0].1, "needs itself in the end: a needs b needs a", "in any spelling");
    let itself = jobs(json!({"jobs": {"a": needing(&["a"])}})).unwrap_err();
    assert_eq!(itself[0].1, "needs itself in the end: a needs a");
}

#[test]
fn what_makes_no_pipeline_is_told_with_its_place() {
    let pointers = |document| -> Vec<String> {
        jobs(document).unwrap_err().into_iter().map(|(pointer, _)| pointer).collect()
    };
    assert_eq!(pointers(json!({"jobs": {}})), ["/jobs"]);
    assert_eq!(pointers(json!({"jobs": {"a b": {"command": "true"}}})), ["/jobs/a b"]);
    assert_eq!(pointers(json!({"jobs": {"a": needing(&["nobody"])}})), ["/jobs/a/needs/0/job"]);
    let many: BTreeMap<String, Value> = (0..=MAX_JOBS).map(|n| (format!("j{n}"), needing(&[]))).collect();
    assert_eq!(pointers(json!({"jobs": many})), ["/jobs"]);
    let one = json!({"id": "01a21687-3d58-727b-af43-d5f40bfcf423", "command": "true"});
    assert_eq!(pointers(json!({"jobs": {"a": one, "b": one}})), ["/jobs/b/id"]);
    assert_eq!(pointers(json!({"labels": {"": "x"}, "jobs": {"a": one}})), ["/labels/"]);
    assert_eq!(pointers(json!({"name": "a\nb", "jobs": {"a": needing(&[])}})), ["/name"]);
}

#[test]
fn a_thousand_jobs_in_a_row_are_in_order() {
    let needs = |n: usize| if n == 0 { needing(&[]) } else { needing(&[&format!("j{}", n - 1)]) };
    let many: BTreeMap<String, Value> = (0..MAX_JOBS).map(|n| (format!("j{n}"), needs(n))).collect();
    let jobs = jobs(json!({"jobs": many})).unwrap();
    assert!(jobs.iter().enumerate().all(|(at, job)| job.name.as_str() == format!("j{at}")));
}
