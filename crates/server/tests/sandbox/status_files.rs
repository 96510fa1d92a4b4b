//! Status files on a real cluster: each line becomes one event, and the final status is correct.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{
    bars::size,
    ending::command,
    service::{Service, fresh_id, until},
    states::slurm_id,
    timeline::timeline,
};

/// A job whose script can use `$results`, its results directory.
fn writer(service: &Service, id: &str, text: &str) -> Value {
    let base = service.sandbox.var("SLURM_BASE_RESULTS_DIR");
    let mut job = command(&format!("results={base}/results/{id}; mkdir -p \"$results\"\n{text}"));
    job["id"] = id.into();
    job
}

/// All events of a job, by pages.
fn events(service: &Service, id: &str, kind: &str) -> Vec<Value> {
    let (mut all, mut after) = (Vec::new(), json!(0));
    loop {
        let page = service.get(&format!("/jobs/{id}/events?limit=1000&after={after}&kind={kind}")).json();
        let events = page["events"].as_array().unwrap();
        if events.is_empty() {
            return all;
        }
        all.extend(events.iter().cloned());
        after = page["next_after"].clone();
    }
}

#[test]
fn a_thousand_lines_written_at_once_are_a_thousand_events_in_order() {
    let service = Service::start();
    let id = fresh_id();
    let text = r#"for n in $(seq 1000); do
  echo "{\"status\":\"RUNNING\",\"message\":\"$n\",\"epoch\":$n,\"max_epoch\":1000}" >>"$results/status.json"
  [ $((n % 250)) != 0 ] || sleep 1.5
done"#;
    service.submit(&writer(&service, &id, text));
    let ended = service.wait_ended(&id);
    assert_eq!((&ended["status"], &ended["progress"]["epoch"]), (&json!("Done"), &json!(1000)), "{ended}");
    let lines: Vec<u64> = events(&service, &id, "status")
        .iter()
        .map(|event| event["data"]["epoch"].as_u64().unwrap())
        .collect();
    assert_eq!(lines, (1..=1000).collect::<Vec<_>>());
    let all = service.get(&format!("/jobs/{id}/events?limit=1000&after=900")).json();
    let numbers: Vec<u64> =
        all["events"].as_array().unwrap().iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (901..901 + numbers.len() as u64).collect::<Vec<_>>());
    let shown = service.run(&["events", &id, "--kind", "transition"]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("Pending queued") && shown.contains("Done ended"), "{shown}");
    let script = service.run(&["script", &id]);
    assert!(String::from_utf8_lossy(&script.stdout).starts_with("#!/bin/bash\n#SBATCH "));
    let attempts = service.run(&["attempts", &id]);
    assert!(String::from_utf8_lossy(&attempts.stdout).contains("COMPLETED  code 0"));
}

#[test]
fn a_status_file_of_many_megabytes_is_read_completely_without_delaying_other_jobs() {
    let service = Service::start();
    let id = fresh_id();
    // 21 MB, or 100 MB.
    let lines = size(150_000, 700_000);
    let text = r#"awk 'BEGIN {
  for (n = 1; n <= LINES; n++)
    printf "{\"status\":\"RUNNING\",\"epoch\":%d,\"max_epoch\":LINES,\"message\":\"%s\",\"kpi\":{\"loss\":0.5}}\n", n, \
      "a line that is as long as lines of real trainings are, more or less, or longer"
}' >"$results/status.json"
sleep 6
echo '{"status":"SUCCESS","message":"read to the end"}' >>"$results/status.json""#;
    service.submit(&writer(&service, &id, &text.replace("LINES", &lines.to_string())));
    service.wait(&id, "lines", |status| status["progress"]["epoch"].is_u64());
    let began = Instant::now();
    let small = service.submit(&command("true"));
    assert_eq!(service.wait_ended(&small)["status"], "Done");
    assert!(began.elapsed() < Duration::from_mins(5), "the other job took {:?}", began.elapsed());
    let mut ended = Value::Null;
    until("the end of the big one", Duration::from_mins(4), || {
        ended = service.status(&id);
        ended["phase"] == "ended"
    });
    assert_eq!((&ended["status"], &ended["progress"]["epoch"]), (&json!("Done"), &json!(lines)), "{ended}");
    assert_eq!(ended["progress"]["message"], "read to the end");
    let kept = events(&service, &id, "status").len();
    assert_eq!((kept, events(&service, &id, "events_truncated").len()), (100_000, 1));
}

#[test]
fn a_status_file_that_is_a_hole_of_a_terabyte_costs_a_few_commands() {
    let service = Service::start();
    let id = fresh_id();
    let text = r#"echo '{"status":"STARTED","message":"first","epoch":1.0,"max_epoch":3.0}' >>"$results/status.json"
until [ -e "$results/go" ]; do sleep 0.1; done
truncate -s 1T "$results/status.json" "$results/other"
mkdir "$results/late"
echo '{"status":"RUNNING","message":"last","kpi":{"loss":NaN}}' >>"$results/status.json"
mv "$results/other" "$results/late/status.json""#;
    service.submit(&writer(&service, &id, text));
    let base = service.sandbox.var("SLURM_BASE_RESULTS_DIR");
    service.wait(&id, "its first line", |status| status["progress"]["message"] == "first");
    service.sandbox.login(&format!("touch {base}/results/{id}/go"));
    let ended = service.wait_ended(&id);
    service.sandbox.login(&format!("rm -r {base}/results/{id}"));
    assert_eq!(
        (&ended["status"], &ended["progress"]["message"]),
        (&json!("Done"), &json!("last")),
        "{ended}"
    );
    assert_eq!(ended["progress"]["metrics"], json!({"loss": null}));
    let is_skip = |event: &Value| event["data"]["skipped_bytes"].as_u64() > Some(1 << 39);
    assert_eq!(events(&service, &id, "status").iter().filter(|event| is_skip(event)).count(), 2);
    let conclusions = timeline(&service, &id).iter().filter(|entry| entry["class"] == "conclude").count();
    assert!(conclusions < 10, "{conclusions} conclusions");
}

#[test]
fn a_failure_reported_before_a_requeue_does_not_end_the_next_run() {
    let service = Service::start_with(&[("TAO_SLURM_RELEASE_GRACE", "20s")]);
    let id = fresh_id();
    let text = r#"if [ ! -e "$results/ran" ]; then
  touch "$results/ran"
  echo '{"status":"FAILURE","message":"of the first run"}' >>"$results/status.json"
  exec sleep 600
fi
sleep 26
echo '{"status":"SUCCESS","message":"of the second run"}' >>"$results/status.json""#;
    service.submit(&writer(&service, &id, text));
    let failed =
        service.wait(&id, "its failure", |status| status["progress"]["message"] == "of the first run");
    service.sandbox.admin(&["scontrol", "requeue", &slurm_id(&failed)]);
    let ended = service.wait_ended(&id);
    assert_eq!((&ended["status"], &ended["slurm_state"]), (&json!("Done"), &json!("COMPLETED")), "{ended}");
    let statuses: Vec<Value> =
        events(&service, &id, "status").iter().map(|event| event["data"]["status"].clone()).collect();
    assert_eq!(statuses, ["FAILURE", "SUCCESS"]);
    assert_eq!(service.get(&format!("/jobs/{id}/attempts")).json()["attempts"][0]["requeues"], 1);
}

#[test]
fn no_remaining_line_is_lost_when_a_status_file_is_truncated_or_replaced() {
    let service = Service::start();
    let id = fresh_id();
    let text = r#"say() { echo "{\"status\":\"$1\",\"message\":\"$2\"}"; }
seen() { until [ -e "$results/seen-$1" ]; do sleep 0.1; done; }
mkdir -p "$results/train"
say STARTED 1 >"$results/train/status.json"; say RUNNING 2 >>"$results/train/status.json"; seen 2
say RUNNING 3 >"$results/train/status.json"; say RUNNING 4 >>"$results/train/status.json"; seen 4
say RUNNING 5 >"$results/new"; say RUNNING 6 >>"$results/new"; mv "$results/new" "$results/train/status.json"; seen 6
printf '{"status":"RUNNING","message":NaN,"kpi":{"loss":Infinity}}\nno JSON\n' >>"$results/train/status.json"
say SUCCESS 7 >"$results/status.json"
printf '{"status":"SUCCESS","message":"8"}' >>"$results/train/status.json""#;
    service.submit(&writer(&service, &id, text));
    let base = service.sandbox.var("SLURM_BASE_RESULTS_DIR");
    for message in ["2", "4", "6"] {
        service.wait(&id, "a line", |status| status["progress"]["message"] == message);
        service.sandbox.login(&format!("touch {base}/results/{id}/seen-{message}"));
    }
    assert_eq!(service.wait_ended(&id)["status"], "Done");
    let events = events(&service, &id, "status");
    let mut said: Vec<&str> = events.iter().filter_map(|event| event["data"]["message"].as_str()).collect();
    said.sort_unstable();
    assert_eq!(said, ["1", "2", "3", "4", "5", "6", "7", "8"]);
    assert!(events.iter().any(|event| event["data"]["unreadable"] == "no JSON"));
    assert!(events.iter().any(|event| event["data"]["kpi"] == json!({"loss": null})));
    assert!(events.iter().any(|event| event["file"] == "train/status.json"));
}

#[test]
fn a_job_without_status_lines_is_ended_and_an_active_one_is_not() {
    let service = Service::start();
    let limited = |text: &str| {
        let mut job = command(text);
        job["timeout_minutes"] = 1.into();
        service.submit(&job)
    };
    let dead = limited("echo alive once; exec sleep 600");
    let alive = limited("for n in $(seq 20); do echo $n; sleep 5; done");
    let mut ended = Value::Null;
    until("the end of the dead one", Duration::from_mins(4), || {
        ended = service.status(&dead);
        ended["phase"] == "ended"
    });
    assert_eq!((&ended["status"], &ended["slurm_state"]), (&json!("Error"), &json!("CANCELLED")), "{ended}");
    let message = ended["message"].as_str().unwrap();
    assert!(message.starts_with("No activity for 1 minute: no new status line"), "{message}");
    until("the end of the other", Duration::from_mins(3), || service.status(&alive)["phase"] == "ended");
    assert_eq!(service.status(&alive)["status"], "Done");
}

#[test]
fn a_failure_that_was_not_read_before_a_requeue_does_not_affect_the_next_run() {
    let service = Service::start_with(&[("TAO_SLURM_RELEASE_GRACE", "1s")]);
    let id = fresh_id();
    let text = r#"if [ ! -e "$results/ran" ]; then
  touch "$results/ran"
  echo '{"status":"STARTED","message":"of the first run"}' >>"$results/status.json"
  until [ -e "$results/fail" ]; do sleep 0.1; done
  echo '{"status":"FAILURE","message":"unread"}' >>"$results/status.json"
  scontrol requeue "$SLURM_JOB_ID"
  exec sleep 600
fi
touch "$results/again"
until [ -e "$results/go" ]; do sleep 0.1; done
echo '{"status":"RUNNING","message":"of the second run"}' >>"$results/status.json"
until [ -e "$results/done" ]; do sleep 0.1; done"#;
    service.submit(&writer(&service, &id, text));
    let base = service.sandbox.var("SLURM_BASE_RESULTS_DIR");
    service.wait(&id, "its first line", |status| status["progress"]["message"] == "of the first run");
    // Had it read the failure in time, it would have ended the job.
    service.signal("STOP");
    service.sandbox.login(&format!("touch {base}/results/{id}/fail"));
    let again = format!("ls {base}/results/{id}");
    until("the second run", Duration::from_secs(90), || service.sandbox.login(&again).contains("again"));
    service.signal("CONT");
    until("the failure", Duration::from_secs(90), || events(&service, &id, "status").len() == 2);
    service.let_go(&id);
    service.wait(&id, "its second run", |status| status["progress"]["message"] == "of the second run");
    service.sandbox.login(&format!("touch {base}/results/{id}/done"));
    assert_eq!(service.wait_ended(&id)["status"], "Done");
    let said = events(&service, &id, "status");
    let words: Vec<_> = said.iter().map(|event| (&event["data"]["status"], &event["earlier_run"])).collect();
    let expected = [("STARTED", false), ("FAILURE", true), ("RUNNING", false)]
        .map(|(word, is)| (json!(word), json!(is)));
    assert_eq!(words, expected.iter().map(|(word, is)| (word, is)).collect::<Vec<_>>());
}
