//! A frozen cluster: its login hosts accept connections but do not respond, and open sessions hang.

use std::time::Instant;

use serde_json::{Value, json};

use crate::{
    ending::{command, training},
    service::Service,
};

#[test]
#[expect(clippy::print_stdout, reason = "shows how long it took")]
fn a_frozen_cluster_delays_no_response_and_changes_no_job() {
    let service = Service::start_with(&[("TAO_SLURM_POLL_MAX", "2s")]);
    let id = service.submit(&training(40, &json!({"epoch_seconds": 1})));
    service.wait(&id, "an epoch", |s| s["progress"]["epoch"].is_u64());
    let frozen = service.sandbox.freeze_logins();
    let stale = service.wait(&id, "staleness", |s| s["stale"] == true);
    assert_eq!((&stale["status"], &stale["phase"]), (&json!("Running"), &json!("running")), "{stale}");

    let paths = [
        "/jobs".to_owned(),
        format!("/jobs/{id}"),
        format!("/jobs/{id}/status"),
        format!("/jobs/{id}/events"),
        format!("/jobs/{id}/attempts"),
        format!("/jobs/{id}/script"),
        "/clusters".to_owned(),
        "/clusters/sandbox".to_owned(),
        "/livez".to_owned(),
        "/readyz".to_owned(),
    ];
    for path in &paths {
        let began = Instant::now();
        let answer = service.get(path);
        // The duration is only printed, because it depends on the machine's load.
        println!("{path}: {:?}", began.elapsed());
        assert_eq!(answer.status, 200, "{path}: {}", answer.text);
    }
    let accepted = service.submit(&command("true"));
    assert_eq!(service.status(&accepted)["status"], "Pending", "a job submitted now stays pending");
    drop(frozen);

    service.wait(&id, "news", |s| s["stale"] == false && s["status"] == "Running");
    let ended: Value = service.wait(&accepted, "the end", |s| s["phase"] == "ended");
    assert_eq!(ended["status"], "Done", "{ended}");
    service.post(&format!("/jobs/{id}/cancel"), "");
    assert_eq!(service.wait_ended(&id)["status"], "Canceled");
}
