//! Jobs with an array, on a real Slurm.

use serde_json::{Value, json};

use crate::{ending::command, service::Service};

fn array(text: &str, array: &Value) -> Value {
    let mut job = command(text);
    job["array"] = array.clone();
    job
}

#[test]
fn the_tasks_of_an_array_run_with_their_parameters_and_one_that_fails_fails_alone() {
    let service = Service::start();
    let text = r#"
        grep -q "\"n\":$n," "$TAO_TASK_FILE"
        echo "task $TAO_TASK of $TAO_TASK_COUNT has $n and $word"
        mkdir -p "$TAO_API_RESULTS_DIR"; echo "$word" >"$TAO_API_RESULTS_DIR/word"
        if [ "$n" = 17 ]; then exit 7; fi
    "#;
    let values: Vec<Value> = (0..40).map(|n| json!({"n": n, "word": format!("a 'b'\n{n}")})).collect();
    let id = service.submit(&array(text, &json!({"values": values, "max_parallel": 5})));
    let ended = service.wait_ended(&id);
    assert_eq!(ended["status"], "Error", "{ended}");
    assert_eq!(ended["message"], "39 of 40 tasks done, 1 failed.", "{ended}");
    let name = format!("tao-job-{id}");
    let slurm =
        service.sandbox.login(&format!("sacct -X -n -P -o JobID,State,ExitCode -S now-1hours --name {name}"));
    assert_eq!(slurm.lines().count(), 40, "{slurm}");
    assert_eq!(slurm.lines().filter(|row| row.contains("FAILED|7:0")).count(), 1, "{slurm}");
    let base = "/lustre/fsw/portfolios/edgeai/users/tao";
    let word = service.sandbox.login(&format!("cat {base}/results/{id}/23/word"));
    assert_eq!(word.trim_end(), "a 'b'\n23");
    let logs = service.sandbox.login(&format!("cat {base}/slurm-logs/{name}-*_23/main.out"));
    assert!(logs.contains("task 23 of 40 has 23 and a 'b'"), "{logs}");
}

#[test]
fn an_array_is_canceled_with_the_tasks_that_run_and_those_that_wait() {
    let service = Service::start();
    let id = service.submit(&array("sleep 300", &json!({"indices": "0-29", "max_parallel": 2})));
    service.wait(&id, "two running tasks", |s| {
        s["message"].as_str().is_some_and(|text| text.contains("2 running"))
    });
    assert_eq!(service.post(&format!("/jobs/{id}/cancel"), "").status, 202);
    let ended = service.wait_ended(&id);
    assert_eq!(
        (&ended["status"], &ended["message"]),
        (&json!("Canceled"), &json!("0 of 30 tasks done, 30 canceled."))
    );
    let queue = service.sandbox.login(&format!("squeue --me -h -n tao-job-{id} -o %A"));
    assert_eq!(queue, "");
}
