//! A secret reaches the job, and nothing else.

use serde_json::json;

use crate::{
    cluster::sql,
    ending::{command, training},
    service::Service,
};

const SECRET: &str = "hunter2-';$(touch /tmp/owned)\"";

#[test]
fn a_secret_reaches_the_job_and_is_nowhere_else() {
    let service = Service::start();
    let mut job =
        command("test \"$HF_TOKEN\" = \"$(cat <<'END'\nhunter2-';$(touch /tmp/owned)\"\nEND\n)\" && sleep 3");
    job["secret_env_vars"] = json!({"HF_TOKEN": SECRET});
    job["cloud_metadata"] = json!({"aws": {"bucket": {"secret_key": SECRET}}});
    let id = service.submit(&job);
    service.wait(&id, "running", |s| s["status"] == "Running");

    let base = service.sandbox.var("SLURM_BASE_RESULTS_DIR").to_owned();
    let mode = service.sandbox.login(&format!("stat -c %a {base}/env/{id}.sh"));
    assert_eq!(mode, "600");
    let script =
        service.sandbox.login(&format!("scontrol write batch_script $(squeue -h -o %A -n tao-job-{id}) -"));
    assert!(!script.contains("hunter2") && script.contains("SBATCH"), "{script}");

    let ended = service.wait_ended(&id);
    assert_eq!(ended["status"], "Done", "the job saw another value: {ended}");
    let left = service
        .sandbox
        .login(&format!("grep -rlF hunter2- {base} || true; ls {base}/env | grep {id} || true"));
    // The command's own text holds the value that it compares with; nothing else may.
    let left: Vec<_> = left.lines().filter(|line| !line.ends_with("command.sh")).collect();
    assert!(left.is_empty(), "{left:?}");
    assert!(!service.log_text().contains("hunter2"), "the service's log");
    let answers = [format!("/jobs/{id}"), format!("/jobs/{id}/status"), "/jobs".to_owned()];
    for path in answers {
        let text = service.get(&path).text;
        // `command` comes back as it was written; the secret fields do not.
        assert!(!text.contains("\"secret_key\""), "{path}: {text}");
    }
    let stored = sql(&service.database_url, "select count(*) from jobs where secrets is not null");
    assert_eq!(stored, "0");
}

#[test]
fn the_container_gets_its_files_and_they_are_gone_at_the_end() {
    let service = Service::start();
    // Longer than the longest time between two polls, so that one of them sees it run.
    let mut job = training(2, &json!({"epoch_seconds": 4}));
    job["secret_env_vars"] = json!({"HF_TOKEN": SECRET});
    let id = service.submit(&job);
    service.wait(&id, "running", |s| s["status"] == "Running");
    let base = service.sandbox.var("SLURM_BASE_RESULTS_DIR").to_owned();
    let modes = service.sandbox.login(&format!("stat -c '%a' {base}/env/{id}.json {base}/meta/{id}.json"));
    assert_eq!(modes, "600\n600");
    let specs = service.sandbox.login(&format!("cat {base}/specs/{id}.json"));
    assert!(specs.contains(&format!("\"results_dir\":\"{base}/results/{id}\"")), "{specs}");
    assert_eq!(service.wait_ended(&id)["status"], "Done");
    let left = service.sandbox.login(&format!("ls {base}/env {base}/meta | grep {id} || true"));
    assert_eq!(left, "");
}
