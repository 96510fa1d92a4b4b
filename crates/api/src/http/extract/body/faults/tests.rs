use domain::JobRequest;
use serde_json::json;

use super::*;

fn faults(document: &Value) -> Vec<(String, &'static str)> {
    match read::<JobRequest>(document) {
        Ok(_) => Vec::new(),
        Err(found) => found.into_iter().map(|fault| (fault.pointer, fault.code)).collect(),
    }
}

#[test]
fn every_fault_is_found_in_one_go() {
    let document = json!({
        "comand": "true",
        "command": 1,
        "resources": {"num_gpus": "four", "gpus": 4},
        "backend_details": {"backend_type": "lepton", "slurm_metadata": {}},
    });
    assert_eq!(
        faults(&document),
        [
            ("/comand".to_owned(), "unknown_field"),
            ("/command".to_owned(), "wrong_type"),
            ("/resources/num_gpus".to_owned(), "wrong_type"),
            ("/resources/gpus".to_owned(), "unknown_field"),
            ("/backend_details/backend_type".to_owned(), "invalid"),
            ("/backend_details/slurm_metadata".to_owned(), "unknown_field"),
        ]
    );
}

#[test]
fn an_unknown_field_is_answered_with_the_known_ones() {
    let found = read::<JobRequest>(&json!({"backend_details": {"colour": "x"}})).unwrap_err();
    assert_eq!(found[0].pointer, "/backend_details/colour");
    assert!(
        found[0].detail.contains("`partition`") && found[0].detail.contains("`cluster_name`"),
        "{found:?}"
    );
}

#[test]
fn a_misspelled_field_is_answered_with_the_one_that_was_meant() {
    for (document, pointer, meant) in [
        (json!({"comand": "true"}), "/comand", "command"),
        (json!({"resources": {"num_gpu": 1}}), "/resources/num_gpu", "num_gpus"),
        (json!({"backend_details": {"partitions": "x"}}), "/backend_details/partitions", "partition"),
    ] {
        let found = read::<JobRequest>(&document).unwrap_err();
        assert_eq!((found[0].pointer.as_str(), found[0].code), (pointer, "unknown_field"));
        assert_eq!(found[0].detail, format!("is not a known field (did you mean `{meant}`?)"));
    }
}

#[test]
fn a_fault_never_repeats_a_value() {
    let document = json!({
        "secret_env_vars": {"HF_TOKEN": 12_345_678, "OTHER": ["hunter2"]},
        "cloud_metadata": "hunter2",
        "id": "hunter2",
        "resources": "hunter2",
    });
    let found = read::<JobRequest>(&document).unwrap_err();
    assert_eq!(found.len(), 5, "{found:?}");
    let shown = format!("{found:?}");
    assert!(!shown.contains("hunter2") && !shown.contains("12345678"), "{shown}");
}

#[test]
fn a_key_with_slashes_is_escaped_in_its_pointer() {
    assert_eq!(faults(&json!({"labels": {"a/b~c": 1}})), [("/labels/a~1b~0c".to_owned(), "wrong_type")]);
}

#[test]
fn a_body_that_is_not_an_object_is_one_fault() {
    for document in [json!([]), json!("x"), json!(null), json!(3)] {
        assert_eq!(faults(&document).len(), 1, "{document}");
    }
}

#[test]
fn nul_is_found_at_any_depth() {
    let found = in_text(&json!({"specs": {"a": ["x\u{0}y"], "b\u{0}": 1}}));
    let pointers: Vec<_> = found.iter().map(|fault| fault.pointer.as_str()).collect();
    assert_eq!(pointers, ["/specs/a/0", "/specs/b\u{0}"]);
}

#[test]
fn a_whole_number_may_be_written_with_a_point() {
    let job: JobRequest =
        read(&json!({"num_gpu": 2.0, "resources": {"num_nodes": 1.0, "time_hours": 2}})).unwrap();
    assert_eq!((job.num_gpu, job.resources.num_nodes), (Some(2), Some(1)));
    let job: JobRequest = read(&json!({"backend_details": {"nice": -5.0}})).unwrap();
    assert_eq!(job.backend_details.nice, Some(-5));
    let found = faults(
        &json!({"num_gpu": 2.5, "timeout_minutes": -1.0, "resources": {"num_nodes": 1e300, "num_gpus": 4.0}}),
    );
    let wrong = ["/num_gpu", "/timeout_minutes", "/resources/num_nodes"];
    assert_eq!(found, wrong.map(|at| (at.to_owned(), "wrong_type")));
}

#[test]
fn a_specification_keeps_its_numbers_as_they_were_written() {
    let job: JobRequest = read(&json!({"num_gpu": 1.0, "specs": {"num_gpu": 1.0}})).unwrap();
    assert_eq!(serde_json::to_string(&job.specs).unwrap(), r#"{"num_gpu":1.0}"#);
}
