use chrono::DateTime;
use remote::Submission;
use serde_json::json;

use super::*;
use crate::{
    cluster::{
        policy::{BatchSettings, ImageSettings, RetrySettings, SubmitSettings},
        resources::Resources,
    },
    fixtures::command_job,
    request::files::JobFile,
};

mod directives;
mod tao;

fn cluster() -> Cluster {
    Cluster {
        name: "dgx".parse().unwrap(),
        user: "tao".parse().unwrap(),
        hosts: vec![],
        base_dir: "/lustre/tao".parse().unwrap(),
        account: None,
        partitions: None,
        mounts: vec![],
        node_local: Vec::new(),
        resources: Resources::packaged().unwrap(),
        max_time_hours: 4.0,
        images: ImageSettings::packaged(&"/lustre/tao".parse().unwrap()).unwrap(),
        retries: RetrySettings::default(),
        batch: BatchSettings::default(),
        submit: SubmitSettings::default(),
        rpc_budget: None,
    }
}

fn submission(job: &Job, cluster: &Cluster) -> Submission {
    let attempt = job.new_attempt(cluster.base_dir.clone(), DateTime::UNIX_EPOCH).unwrap();
    plan_submission(job, &attempt, cluster, &Secrets::default()).unwrap()
}

fn file<'a>(submission: &'a Submission, end: &str) -> &'a StagedFile {
    submission.files.iter().find(|file| file.path.as_str().ends_with(end)).unwrap()
}

fn script(job: &Job, cluster: &Cluster) -> String {
    // Words of a row as if on one line.
    let text = String::from_utf8(file(&submission(job, cluster), ".sbatch").bytes.clone()).unwrap();
    text.replace(" \\\n    ", " ")
}

/// What the tasks read before their program starts.
fn env_file(job: &Job) -> String {
    String::from_utf8(file(&submission(job, &cluster()), ".sh").bytes.clone()).unwrap()
}

#[test]
fn what_only_the_nodes_have_is_not_looked_for_on_the_login_host() {
    let mut job = command_job();
    job.spec.required_paths = ["/raid", "/raid/x.sqsh", "/raid2/x.sqsh", "/lustre/raid/x"]
        .map(|path| path.parse().unwrap())
        .to_vec();
    let inputs = |cluster: &Cluster| submission(&job, cluster).inputs;
    assert_eq!(inputs(&cluster()), job.spec.required_paths);
    let local = Cluster { node_local: vec!["/raid".parse().unwrap()], ..cluster() };
    assert_eq!(inputs(&local), job.spec.required_paths[2..]);
}

#[test]
fn all_variables_of_a_job_are_in_one_private_file() {
    let mut job = command_job();
    job.spec.env.insert("DOTENV".parse().unwrap(), "A=1\nPATH=/nowhere".to_owned());
    let mut secrets = Secrets::default();
    secrets.env.insert("HF_TOKEN".parse().unwrap(), "it's".to_owned().into());
    let attempt = job.new_attempt("/lustre/tao".parse().unwrap(), DateTime::UNIX_EPOCH).unwrap();
    let submission = plan_submission(&job, &attempt, &cluster(), &secrets).unwrap();
    let env = file(&submission, "/env/00000000-0000-0000-0000-000000000001.sh");
    assert_eq!(env.mode, 0o600);
    let text = String::from_utf8(env.bytes.clone()).unwrap();
    assert!(text.contains("export DOTENV='A=1\nPATH=/nowhere'\n"), "{text}");
    assert!(text.contains("export HF_TOKEN=\"it's\"\n"), "{text}");
    for other in submission.files.iter().filter(|other| other.path != env.path) {
        let text = String::from_utf8_lossy(&other.bytes);
        assert!(!text.contains("nowhere") && !text.contains("HF_TOKEN"), "{}: {text}", other.path);
    }
}

#[test]
fn a_command_on_the_node_keeps_its_lines_and_meets_our_scancel() {
    let submission = submission(&command_job(), &cluster());
    let text = String::from_utf8(file(&submission, "/command.sh").bytes.clone()).unwrap();
    assert_eq!(text, format!("trap '' USR1; {}; true", remote::script::BEGIN_MARK));
    assert!(script(&command_job(), &cluster()).contains("\n_tao_add_scancel\n"));
}

#[test]
fn a_command_in_a_container_hides_slurm_from_lightning() {
    let mut job = command_job();
    assert!(!script(&job, &cluster()).contains(" --hide-tasks "), "on the node it is a program of Slurm's");
    job.spec.image = Some("ubuntu:22.04".parse().unwrap());
    let text = script(&job, &cluster());
    assert!(text.contains(" --hide-tasks "), "{text}");
    assert!(!text.contains("_tao_add_scancel"), "Slurm's commands are not in there");
}

#[test]
fn another_port_is_passed_on() {
    let mut job = command_job();
    job.spec.resources.nodes = 2;
    job.spec.master_port = Some(31_000);
    assert!(script(&job, &cluster()).contains("\n_tao_port=31000\n"));
}

#[test]
fn a_launcher_starts_the_command_and_is_never_ended_by_a_warning() {
    let mut job = command_job();
    job.spec.resources.nodes = 2;
    let body = json!({"kind": "torchrun", "nproc_per_node": 3, "args": ["--max-restarts=2"]});
    job.spec.program.launcher = Some(serde_json::from_value(body).unwrap());
    let text = script(&job, &cluster());
    for part in [
        " NNODES=2 NPROC_PER_NODE=3 ",
        " --begun ",
        "--rdzv_id=\"tao-job-00000000-0000-0000-0000-000000000001.${SLURM_RESTART_COUNT:-0}\" ",
        " launch '--max-restarts=2' bash -c ",
        " process bash -euo pipefail /lustre/tao/state/",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_shared_node_gets_its_own_port_and_an_exclusive_one_the_usual() {
    let port = |asked: Option<u16>, exclusive: bool| {
        let mut job = command_job();
        job.spec.master_port = asked;
        job.spec.resources.exclusive = exclusive;
        let text = script(&job, &cluster());
        text.lines().find_map(|line| line.strip_prefix("_tao_port=")).unwrap().to_owned()
    };
    assert_eq!(port(None, true), "29500");
    assert_eq!(port(None, false), "0", "the job looks for one");
    assert_eq!(port(Some(31_000), false), "31000");
}

#[test]
fn files_and_setup_are_staged_with_the_attempt() {
    let mut job = command_job();
    let bytes = JobFile { base64: "AAH/".to_owned(), mode: 0o755 };
    job.spec.program.files.insert("a/b.bin".to_owned(), bytes);
    job.spec.program.setup = vec!["module load cuda/12.4".to_owned(), "x=1\ny=2".to_owned()];
    job.spec.program.workdir = Some("/lustre/w d".parse().unwrap());
    let submission = submission(&job, &cluster());
    let staged = file(&submission, "/1/files/a/b.bin");
    assert_eq!((staged.bytes.as_slice(), staged.mode), (&[0_u8, 1, 255][..], 0o755));
    assert_eq!(file(&submission, "/1/setup").bytes, b"module load cuda/12.4\0x=1\ny=2\0");
    let dir = "export TAO_JOB_FILES=/lustre/tao/state/00000000-0000-0000-0000-000000000001/1/files\n";
    let env = &file(&submission, "/env/00000000-0000-0000-0000-000000000001.sh").bytes;
    assert!(String::from_utf8_lossy(env).contains(dir));
    let text = script(&job, &cluster());
    assert!(text.contains("/1/setup ") && text.contains(" --cd='/lustre/w d'"), "{text}");
    assert!(!text.contains("cuda/12.4"), "no text of the caller in the script");
}

#[test]
fn all_programs_have_the_addresses_of_the_copies_and_of_haproxy() {
    let variables = |balance: Value| {
        let body = json!({
            "command": null, "resources": {"num_nodes": 3, "gpus_per_node": 2},
            "services": [{"name": "model", "replicas": 2, "balance": balance, "port": 0, "command": "serve"}],
            "steps": [{"name": "score", "command": "score"}],
        });
        let (cluster, request) = (cluster(), serde_json::from_value(body).unwrap());
        let (spec, ..) = JobSpec::from_request(request, std::slice::from_ref(&cluster)).unwrap();
        let text = script(&Job { spec, ..command_job() }, &cluster).replace("\\\n    ", "");
        let row = text.lines().find(|line| line.contains("_tao_component score ")).unwrap().to_owned();
        move |name: &str| {
            let at = row.find(&format!(" MODEL_{name}=")).unwrap_or_else(|| panic!("{name}: {row}"));
            let value = row[at..].split_once('=').unwrap().1.split(" MODEL_").next().unwrap();
            assert_eq!(row.matches(&format!(" MODEL_{name}=")).count(), 1, "{row}");
            value.split(" --mark").next().unwrap().to_owned()
        }
    };
    let both = "http://\"${_tao_hosts[0]}\":\"$((_tao_port + 24))\",http://\"${_tao_hosts[1]}\":\"$((_tao_port + 25))\"";
    let without = variables(Value::Null);
    assert_eq!(without("URL"), "http://\"${_tao_hosts[0]}\":\"$((_tao_port + 24))\"", "of the first");
    assert_eq!((without("URLS").as_str(), without("1_HOST").as_str()), (both, "\"$(_tao_slice 1 1 ' ')\""));
    let balanced = variables(json!({}));
    assert_eq!(balanced("URL"), "http://\"${_tao_hosts[0]}\":\"$((_tao_port + 26))\"", "of HAProxy");
    assert_eq!((balanced("URLS").as_str(), balanced("0_PORT").as_str()), (both, "\"$((_tao_port + 24))\""));
}

#[test]
fn steps_and_services_are_rows_of_the_table_in_order() {
    let body = json!({
        "command": null, "resources": {"num_nodes": 3, "gpus_per_node": 2},
        "services": [{"name": "model", "nodes": 2, "command": "serve", "launcher": "torchrun"}],
        "steps": [
            {"name": "score", "command": "score $MODEL_HOST", "timeout_minutes": 5},
            {"name": "report", "command": "report", "with_previous": true},
        ],
    });
    let cluster = cluster();
    let clusters = [cluster.clone()];
    let request = serde_json::from_value(body).unwrap();
    let (spec, _, _) = JobSpec::from_request(request, &clusters).unwrap();
    assert!(spec.has_component_logs());
    let job = Job { spec, ..command_job() };
    let text = script(&job, &cluster);
    for part in [
        "  _tao_component model service 2 0 ",
        "  _tao_component score step 1 300 ",
        "  _tao_component report with 1 0 ",
        "--nodelist=\"$(_tao_slice 2 1 ,)\" ",
        " MODEL_HOST=\"$(_tao_slice 0 1 ' ')\" MODEL_NODES=\"$(_tao_slice 0 2 ' ')\" ",
        " NNODES=2 NPROC_PER_NODE=2 ",
        "--output=\"$_tao_logs\"/score/%t.out ",
        "/1/command-score.sh\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let staged = file(&submission(&job, &cluster), "/1/command-score.sh").bytes.clone();
    assert!(text.contains(" --mark "), "{text}");
    assert!(String::from_utf8(staged).unwrap().ends_with("; score $MODEL_HOST"));
}
