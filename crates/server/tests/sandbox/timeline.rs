//! The timeline of remote commands on a real cluster.

use serde_json::{Value, json};

use crate::{
    cluster::sql,
    ending::{command, held},
    service::{Service, until},
};

const SECRET: &str = "hunter2-of-the-timeline";

/// All entries of the job's timeline, from all pages.
pub(crate) fn timeline(service: &Service, id: &str) -> Vec<Value> {
    let (mut entries, mut token) = (Vec::new(), String::new());
    loop {
        let page = service.get(&format!("/jobs/{id}/timeline?limit=3{token}")).json();
        entries.extend(page["entries"].as_array().unwrap().iter().cloned());
        match page["next_page_token"].as_str() {
            Some(next) => token = format!("&page_token={next}"),
            None => return entries,
        }
    }
}

#[test]
fn the_timeline_of_a_job_has_its_remote_commands_and_no_secret() {
    let service = Service::start();
    let mut job = held("echo $HF_TOKEN | md5sum");
    job["secret_env_vars"] = json!({"HF_TOKEN": SECRET});
    job["name"] = json!("named-by-its-owner");
    let id = service.submit(&job);
    service.wait(&id, "running", |s| s["status"] == "Running");
    assert_eq!(service.get(&format!("/jobs/{id}/logs")).status, 200);
    service.let_go(&id);
    let ended = service.wait_ended(&id);
    assert_eq!(ended["status"], "Done", "{ended}");
    let classes = |entries: &[Value]| -> Vec<String> {
        entries.iter().map(|entry| entry["class"].as_str().unwrap().to_owned()).collect()
    };
    let mut entries = Vec::new();
    until("the conclusion to be noted", std::time::Duration::from_secs(10), || {
        entries = timeline(&service, &id);
        classes(&entries).contains(&"conclude".to_owned())
    });

    let seen = classes(&entries);
    let place =
        |class: &str| seen.iter().position(|seen| seen == class).unwrap_or_else(|| panic!("{seen:?}"));
    assert_eq!(place("submit"), 0, "{seen:?}");
    assert!(place("submit") < place("poll") && place("poll") < place("conclude"), "{seen:?}");
    assert!(place("read_logs") < place("conclude"), "{seen:?}");
    let began = |entry: &Value| {
        entry["started_on"].as_str().unwrap().parse::<chrono::DateTime<chrono::Utc>>().unwrap()
    };
    assert!(entries.is_sorted_by_key(began), "{entries:?}");
    for entry in &entries {
        assert_eq!((&entry["result"], &entry["exit_code"]), (&json!("ok"), &json!(0)), "{entry}");
        assert!(entry["host"].as_str().unwrap().starts_with("127.77."), "{entry}");
        assert!(entry["duration_ms"].as_u64().unwrap() < 30_000, "{entry}");
        assert!(entry["bytes"].as_u64().unwrap() > 0, "{entry}");
    }
    let submit = &entries[0];
    assert!(submit["duration_ms"].as_u64().unwrap() >= 2, "sbatch in less than 2 ms: {submit}");
    let slurm_id = ended["slurm_job_id"].as_str().unwrap();
    assert_eq!(submit["outcome"], format!("submitted as {slurm_id}"));
    let conclude = &entries[place("conclude")];
    assert_eq!(conclude["outcome"], "read, files with secrets are gone");
    let ran = began(conclude) - began(submit);
    assert!(ran.num_milliseconds() >= 3000, "{ran}");

    let text = Value::from(entries).to_string();
    assert!(!text.contains(SECRET) && !text.contains("md5sum") && !text.contains("named-by"), "{text}");
    let stored = sql(&service.database_url, "select t::text from timeline t");
    assert!(!stored.contains(SECRET) && stored.contains("submitted as"), "{stored}");
    assert!(service.metric("tao_slurm_timeline_commands_lost_total", "") < 1.0);
    assert_eq!(service.get("/jobs/0f8fad5b-d9cb-469f-a165-70867728950e/timeline").status, 404);
    assert_eq!(service.delete(&format!("/jobs/{id}")).status, 204);
    let left = sql(&service.database_url, &format!("select count(*) from timeline where job_id = '{id}'"));
    assert_eq!(left, "0");
}

#[test]
fn commands_that_did_not_reach_the_cluster_are_in_the_timeline_with_their_failure_class() {
    let service = Service::start();
    let first = service.sandbox.fault("login1-stopped");
    let other = service.sandbox.fault("login2-stopped");
    let id = service.submit(&command("true"));
    until("a submission that was not sent", std::time::Duration::from_mins(1), || {
        timeline(&service, &id)
            .iter()
            .any(|entry| entry["class"] == "submit" && entry["result"] == "not_sent")
    });
    drop((first, other));
    assert_eq!(service.wait_ended(&id)["status"], "Done");
    let entries = timeline(&service, &id);
    let last = entries.iter().rfind(|entry| entry["class"] == "submit").unwrap();
    assert_eq!(last["result"], "ok", "{entries:?}");
    let unsent = &entries[0];
    assert_eq!(
        (&unsent["host"], &unsent["exit_code"], &unsent["bytes"]),
        (&Value::Null, &Value::Null, &Value::Null)
    );
}
