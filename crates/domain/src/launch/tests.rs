use chrono::DateTime;
use remote::Submission;
use serde_json::{Value, json};
use test_case::test_case;

use super::*;
use crate::{
    cluster::{
        policy::{BatchSettings, ImageSettings, RetrySettings, SubmitSettings},
        resources::Resources,
    },
    fixtures::{as_tao, command_job},
    request::{files::JobFile, spec::CUDA_OVERRIDE},
};

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

fn tao_job(network_arch: &str, specs: Value) -> Job {
    let mut job = as_tao(command_job());
    job.spec.image = Some("nvcr.io/nvidia/tao/tao-toolkit:6".parse().unwrap());
    job.spec.work =
        Work::Tao { network_arch: network_arch.parse().unwrap(), action: "train".parse().unwrap(), specs };
    job
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
fn a_tao_job_is_told_where_it_runs() {
    let job = tao_job("classification_pyt", json!({}));
    let (text, script) = (env_file(&job), script(&job, &cluster()));
    for line in [
        "export ORCHESTRATION_API_NETWORK=classification_pyt",
        "export ORCHESTRATION_API_ACTION=train",
        "export TAO_EXECUTION_BACKEND=slurm",
        "export CLOUD_BASED=False",
        "export HF_HOME=/lustre/tao/.cache/huggingface",
        "export TAO_API_RESULTS_DIR=/lustre/tao/results",
    ] {
        assert!(text.contains(&format!("{line}\n")), "{line}: {text}");
    }
    assert!(!text.contains("COSMOS") && !text.contains("CUDA"), "{text}");
    assert!(!script.contains("ORCHESTRATION_API_NETWORK") && !script.contains("HF_HOME"), "{script}");
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
fn enroots_hooks_get_the_plain_variables_of_devices_and_no_secret() {
    let mut job = tao_job("cosmos-rl", json!({}));
    let vars = [
        ("NVIDIA_DRIVER_CAPABILITIES", "all"),
        ("NVIDIA_NOTES", "two\nlines"),
        ("MELLANOX_VISIBLE_DEVICES", "0"),
    ];
    job.spec.env.extend(vars.map(|(key, value)| (key.parse().unwrap(), value.to_owned())));
    let mut secrets = Secrets::default();
    secrets.env.insert("NVIDIA_API_KEY".parse().unwrap(), "hunter2".to_owned().into());
    let attempt = job.new_attempt("/lustre/tao".parse().unwrap(), DateTime::UNIX_EPOCH).unwrap();
    let submission = plan_submission(&job, &attempt, &cluster(), &secrets).unwrap();
    let text = String::from_utf8(file(&submission, ".sbatch").bytes.clone()).unwrap();
    let exports = "\nexport MELLANOX_VISIBLE_DEVICES=0\nexport NVIDIA_DRIVER_CAPABILITIES=all\n";
    assert!(text.contains(exports), "{text}");
    assert!(text.contains(" --container-env=MELLANOX_VISIBLE_DEVICES,NVIDIA_DRIVER_CAPABILITIES"), "{text}");
    assert!(!text.contains("NVIDIA_NOTES") && !text.contains("NVIDIA_API_KEY"), "{text}");
    let env = String::from_utf8(file(&submission, ".sh").bytes.clone()).unwrap();
    for (key, _) in vars {
        assert!(env.contains(&format!("export {key}=")), "{key}: {env}");
    }
    // Without a container there are no hooks.
    job = command_job();
    job.spec.env.insert("NVIDIA_VISIBLE_DEVICES".parse().unwrap(), "0".to_owned());
    assert!(job.spec.image.is_none() && !script(&job, &cluster()).contains("NVIDIA_VISIBLE_DEVICES"));
}

#[test]
fn a_cache_of_the_callers_own_is_kept() {
    let mut job = tao_job("classification_pyt", json!({}));
    job.spec.env.insert("HUGGINGFACE_HUB_CACHE".parse().unwrap(), "/lustre/hub".to_owned());
    assert!(!env_file(&job).contains("HF_HOME"));
    job.spec.env.clear();
    job.spec.env.insert("HF_HOME".parse().unwrap(), "/lustre/hf".to_owned());
    assert!(env_file(&job).contains("export HF_HOME=/lustre/hf\n"));
}

#[test]
fn another_cuda_is_put_before_the_images_own_inside_the_container() {
    let mut job = tao_job("classification_pyt", json!({}));
    job.spec.env.insert(CUDA_OVERRIDE.parse().unwrap(), "12.6".to_owned());
    let text = script(&job, &cluster());
    assert!(text.contains(" --cuda=/usr/local/cuda-12.6 "), "{text}");
    job.spec.env.insert(CUDA_OVERRIDE.parse().unwrap(), String::new());
    assert!(!script(&job, &cluster()).contains(" --cuda=/usr"), "an empty version is none");
}

#[test]
fn cosmos_on_one_node_has_its_caches_and_all_memory() {
    let job = tao_job("cosmos-rl", json!({}));
    let (text, env) = (script(&job, &cluster()), env_file(&job));
    for part in ["#SBATCH --mem=0\n", " --no-container-mount-home"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    for line in ["COSMOS_CACHE=/lustre/tao/.cache/cosmos\n", "CUDA_OVERRIDE_VERSION=12.8\n"] {
        assert!(env.contains(&format!("export {line}")), "{line}: {env}");
    }
    assert!(!text.contains("COSMOS_NODE_ROLE") && !text.contains(" --hide-tasks "), "{text}");
}

#[test]
fn cosmos_on_several_nodes_has_roles_and_tells_the_container_so() {
    let mut job = tao_job("cosmos-rl", json!({"policy": {"parallelism": {"tp_size": 16}}}));
    job.spec.resources.nodes = 3;
    job.spec.resources.gpus_per_node = 8;
    job.spec.env.insert("NUM_POLICY_NODES".parse().unwrap(), "7".to_owned());
    let text = script(&job, &cluster());
    for part in [
        "_tao_component controller step 1 0 ",
        "_tao_component policy with 2 0 ",
        "_tao_component rollout with 1 0 ",
        " COSMOS_CONTROLLER_HOST=\"${_tao_hosts[0]}\":8082 POLICY_NODES=\"$(_tao_slice 0 2 ' ')\" \
         ROLLOUT_NODES=\"$(_tao_slice 2 1 ' ')\" COSMOS_NODE_ROLE=policy ",
        " WORLD_SIZE=3 ",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let env: Value = serde_json::from_slice(
        &file(&submission(&job, &cluster()), "env/00000000-0000-0000-0000-000000000001.json").bytes,
    )
    .unwrap();
    assert_eq!((&env["COSMOS_RL_MULTINODE"], &env["NUM_POLICY_NODES"]), (&json!("1"), &json!("2")));
    let env = env_file(&job);
    assert!(
        env.contains("export NODE_LAUNCH_METADATA_POLICY=") && env.contains("NUM_POLICY_NODES=2\n"),
        "{env}"
    );
}

#[test]
fn a_plan_that_no_longer_fits_the_job_is_not_staged() {
    let mut job = tao_job("cosmos-rl", json!({}));
    job.spec.resources.nodes = 5;
    let attempt = job.new_attempt("/lustre/tao".parse().unwrap(), DateTime::UNIX_EPOCH).unwrap();
    let planned = plan_submission(&job, &attempt, &cluster(), &Secrets::default());
    assert!(matches!(planned, Err(StagingError::Program(ProgramError::Roles))));
}

#[test_case(true => true ; "as wanted")]
#[test_case(false => false ; "not at all")]
fn a_job_is_requeued(use_requeue: bool) -> bool {
    let mut job = command_job();
    job.spec.use_requeue = use_requeue;
    let text = script(&job, &cluster());
    assert_eq!(text.contains("#SBATCH --no-requeue\n"), !use_requeue);
    assert_eq!(text.contains("\nreadonly _tao_max_requeues=10\n"), use_requeue);
    text.contains("#SBATCH --requeue\n")
}

#[test]
fn what_a_cluster_wants_is_in_every_script() {
    let mut cluster = cluster();
    cluster.batch = BatchSettings {
        mail_user: Some("ops@example.org".parse().unwrap()),
        warning_seconds: 60,
        sbatch_export: SbatchExport::Nil,
    };
    cluster.retries.max_requeues = 3;
    let text = script(&command_job(), &cluster);
    for part in [
        "--mail-user=ops@example.org\n",
        "--signal=B:USR1@60\n",
        "--export=NIL\n",
        "\nreadonly _tao_max_requeues=3\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn the_trace_of_a_job_is_slurms_comment() {
    let mut job = command_job();
    assert!(!script(&job, &cluster()).contains("--comment"));
    job.spec.trace = Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".parse().unwrap());
    let line = "\n#SBATCH --comment=traceparent=00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\n";
    assert!(script(&job, &cluster()).contains(line));
}

#[test]
fn a_command_on_the_node_keeps_its_lines_and_meets_our_scancel() {
    let submission = submission(&command_job(), &cluster());
    let text = String::from_utf8(file(&submission, "/command.sh").bytes.clone()).unwrap();
    let begun = "true 2>/dev/null >/lustre/tao/state/00000000-0000-0000-0000-000000000001/1/begun.main.\"${SLURM_NODEID-}\" || :";
    assert_eq!(text, format!("trap '' USR1; {begun}; true"));
    assert!(script(&command_job(), &cluster()).contains("\nreadonly _tao_on_host=1\n"));
}

#[test]
fn a_command_in_a_container_hides_slurm_from_lightning() {
    let mut job = command_job();
    assert!(!script(&job, &cluster()).contains(" --hide-tasks "), "on the node it is a program of Slurm's");
    job.spec.image = Some("ubuntu:22.04".parse().unwrap());
    let text = script(&job, &cluster());
    assert!(text.contains(" --hide-tasks "), "{text}");
    assert!(text.contains("\nreadonly _tao_on_host=0\n"), "Slurm's commands are not in there");
}

#[test]
fn another_port_is_passed_on() {
    let mut job = command_job();
    job.spec.resources.nodes = 2;
    job.spec.master_port = Some(31_000);
    assert!(script(&job, &cluster()).contains("\n_tao_port=31000\n"));
}

/// The directives of a job, without their beginning.
fn directives_of(job: &Job, cluster: &Cluster) -> Vec<String> {
    let text = script(job, cluster);
    text.lines().filter_map(|line| line.strip_prefix("#SBATCH --")).map(str::to_owned).collect()
}

#[test]
fn a_job_of_an_earlier_release_is_charged_to_the_clusters_account() {
    let cluster = Cluster { account: Some("team".parse().unwrap()), ..cluster() };
    let mut job = command_job();
    assert!(directives_of(&job, &cluster).contains(&"account=team".to_owned()));
    job.spec.options.account = Some("other".parse().unwrap());
    assert!(directives_of(&job, &cluster).contains(&"account=other".to_owned()));
}

#[test]
fn the_cluster_says_how_gpus_are_asked_for() {
    let mut cluster = cluster();
    assert!(directives_of(&command_job(), &cluster).contains(&"gres=gpu:4".to_owned()));
    cluster.submit.gpu_request = slurm::GpuRequest::GpusPerNode;
    let lines = directives_of(&command_job(), &cluster);
    assert!(lines.contains(&"gpus-per-node=4".to_owned()), "{lines:?}");
    assert!(!lines.iter().any(|line| line.starts_with("gres")), "{lines:?}");
}

#[test]
fn a_later_attempt_begins_at_the_same_time_and_has_the_same_deadline() {
    let mut job = command_job();
    job.spec.begin = Some("now+1hour".parse().unwrap());
    job.spec.deadline = Some("now+2hours".parse().unwrap());
    let after = |minutes: i64| {
        let now = DateTime::UNIX_EPOCH + chrono::TimeDelta::minutes(minutes);
        let attempt = job.new_attempt("/lustre/tao".parse().unwrap(), now).unwrap();
        let submission = plan_submission(&job, &attempt, &cluster(), &Secrets::default()).unwrap();
        let text = String::from_utf8(file(&submission, ".sbatch").bytes.clone()).unwrap();
        let of = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(&format!("#SBATCH --{name}=")));
            line.map(str::to_owned)
        };
        (of("begin"), of("deadline"))
    };
    let seconds = |seconds: u32| Some(format!("now+{seconds}seconds"));
    assert_eq!(after(0), (seconds(3600), seconds(7200)));
    assert_eq!(after(30), (seconds(1800), seconds(5400)));
    assert_eq!(after(90), (None, seconds(1800)), "it may begin at once");
    assert_eq!(after(180), (None, seconds(1)), "Slurm refuses it, and says why");
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
    let begun = "trap '' USR1; true 2>/dev/null >/lustre/tao/state/00000000-0000-0000-0000-000000000001/1/begun.score.";
    let staged = String::from_utf8(staged).unwrap();
    assert!(staged.starts_with(begun) && staged.ends_with("; score $MODEL_HOST"), "{staged}");
}
