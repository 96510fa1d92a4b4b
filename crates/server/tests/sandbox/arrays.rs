//! Jobs with an array, on a real Slurm.

use serde_json::{Value, json};

use crate::{
    ending::command,
    service::{Service, until},
};

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
    let records = || {
        service.sandbox.login(&format!("sacct -X -n -P -o JobID,State,ExitCode -S now-1hours --name {name}"))
    };
    until("accounting to know all tasks", std::time::Duration::from_mins(1), || {
        records().lines().filter(|row| row.contains("COMPLETED") || row.contains("FAILED")).count() == 40
    });
    let slurm = records();
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

#[test]
fn some_tasks_are_canceled_and_retried_and_each_has_its_logs() {
    let service = Service::start();
    let text = r#"
        echo "here is task $TAO_TASK"
        mkdir -p "$TAO_API_RESULTS_DIR"
        case $TAO_TASK in
        1) if mkdir "$TAO_API_RESULTS_DIR/first"; then exit 3; fi ;;
        2) exec sleep 300 ;;
        esac
    "#;
    let id = service.submit(&array(text, &json!({"indices": "0-2"})));
    service.wait(&id, "the other tasks to end", |s| s["tasks"]["error"] == 1 && s["tasks"]["done"] == 1);
    let tasks = service.get(&format!("/jobs/{id}/tasks")).json();
    let of = |field: &str| -> Vec<Value> {
        tasks["tasks"].as_array().unwrap().iter().map(|task| task[field].clone()).collect()
    };
    assert_eq!(of("status"), [json!("done"), json!("error"), json!("running")], "{tasks}");
    assert_eq!(of("exit_code")[1], json!(3), "{tasks}");
    assert_eq!(service.post(&format!("/jobs/{id}/cancel"), r#"{"tasks": "2"}"#).status, 202);
    let ended = service.wait_ended(&id);
    assert_eq!(ended["message"], "1 of 3 tasks done, 1 failed, 1 canceled.", "{ended}");
    for task in 0..3 {
        let log = service.get(&format!("/jobs/{id}/logs?task={task}&stream=out")).text;
        assert_eq!(log, format!("here is task {task}\n"));
    }
    assert!(service.run(&["retry", &id, "--tasks", "failed"]).status.success());
    let ended = service.wait_ended(&id);
    assert_eq!(
        (&ended["status"], &ended["message"]),
        (&json!("Canceled"), &json!("2 of 3 tasks done, 1 canceled."))
    );
    let again = service.get(&format!("/jobs/{id}/tasks/1")).json();
    assert_eq!((&again["status"], &again["attempt"]), (&json!("done"), &json!(2)), "{again}");
    let list = service.run(&["tasks", &id, "--status", "canceled"]);
    assert!(String::from_utf8_lossy(&list.stdout).contains("canceled"), "{list:?}");
}

#[test]
fn each_task_has_steps_and_results_of_its_own() {
    let service = Service::start();
    let score = r#"
        case $n in
        1) echo "SCORE {\"loss\": NaN, \"n\": $n}" ;;
        2) : ;;
        *) echo "SCORE {\"loss\": 0.$n, \"n\": $n}" ;;
        esac
        echo "[$n]" >"$TAO_API_RESULTS_DIR/files.json"
    "#;
    let id = service.submit(&json!({
        "steps": [{"name": "prepare", "command": "echo prepared $n"}, {"name": "score", "command": score}],
        "array": {"matrix": {"n": [0, 1, 2]}},
        "results": [
            {"name": "score", "json_line": "SCORE ", "component": "score", "required": true},
            {"name": "files", "json_file": "files.json"},
        ],
        "resources": {"gpus_per_node": 0, "cpus_per_task": 1, "time_hours": 0.1},
    }));
    let ended = service.wait_ended(&id);
    assert_eq!(ended["message"], "2 of 3 tasks done, 1 failed.", "{ended}");
    let results = service.get(&format!("/jobs/{id}/results")).json();
    let of = |task: u32, name: &str| {
        let rows = results.as_array().unwrap().iter();
        rows.filter(|row| row["task"] == task && row["name"] == name).collect::<Vec<_>>()[0].clone()
    };
    assert_eq!(of(0, "score")["value"], json!({"loss": 0.0, "n": 0}), "{results}");
    assert_eq!(of(1, "score")["value"], json!({"loss": "NaN", "n": 1}), "{results}");
    assert_eq!(of(2, "files")["value"], json!([2]), "{results}");
    let lacking = of(2, "score");
    assert_eq!(
        (&lacking["value"], &lacking["problem"]),
        (&json!(null), &json!("no line of score/0.out begins with \"SCORE \""))
    );
    let table = service.get(&format!("/jobs/{id}/results?format=csv")).text;
    assert!(table.starts_with("task,n,score,files\r\n0,0,"), "{table}");
    let tasks = service.get(&format!("/jobs/{id}/tasks")).json();
    let message = tasks["tasks"][2]["message"].as_str().unwrap();
    assert!(message.contains("required result `score` is missing"), "{tasks}");
    for task in 0..3 {
        let log = service.get(&format!("/jobs/{id}/logs?task={task}&role=prepare&stream=out")).text;
        assert_eq!(log, format!("prepared {task}\n"));
    }
}

#[test]
fn a_task_that_holds_its_nodes_for_nothing_is_ended() {
    let service = Service::start_with(&[("TAO_SLURM_RELEASE_GRACE", "2s")]);
    let text = r#"
        case $TAO_TASK in
        0) exit 0 ;;
        1) mkdir -p "$TAO_API_RESULTS_DIR"; echo '{"status":"SUCCESS","message":"trained"}' >"$TAO_API_RESULTS_DIR/status.json" ;;
        esac
        exec sleep 900
    "#;
    let mut job = array(text, &json!({"indices": "0-2"}));
    job["timeout_minutes"] = 1.into();
    let id = service.submit(&job);
    let ended = service.wait_ended(&id);
    assert_eq!(ended["message"], "2 of 3 tasks done, 1 failed.", "{ended}");
    let tasks = service.get(&format!("/jobs/{id}/tasks")).json();
    assert_eq!(tasks["tasks"][1]["status"], "done", "{tasks}");
    let message = tasks["tasks"][2]["message"].as_str().unwrap();
    assert!(message.starts_with("No activity for 1 minute: no new status line"), "{tasks}");
}
