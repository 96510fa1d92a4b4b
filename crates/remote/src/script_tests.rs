use std::{
    collections::BTreeMap,
    io::Write as _,
    process::{Command, Stdio},
};

use test_case::test_case;

use super::*;
use slurm::{CudaVersion, EnvKey, GpuRequest, SubmitOptions, WallTime};

fn base() -> BatchScript {
    BatchScript {
        directives: Directives {
            job_name: "tao-job-1".parse().unwrap(),
            partitions: Some("polar,polar3".parse().unwrap()),
            nodes: 1,
            tasks_per_node: 1,
            gpus_per_node: 4,
            gpu_request: GpuRequest::Gres,
            cpus_per_task: 16,
            time: WallTime::from_minutes(240).unwrap(),
            requeue: true,
            exclusive: false,
            all_memory: false,
            exclude: vec![],
            begin: None,
            deadline: None,
            options: SubmitOptions { account: Some("edgeai".parse().unwrap()), ..SubmitOptions::default() },
            mail: None,
            trace: None,
            login_environment: true,
            warning_seconds: 120,
        },
        state_dir: "/lustre/u/state/1/1".parse().unwrap(),
        log_root: "/lustre/u/slurm-logs".parse().unwrap(),
        results_dir: "/lustre/u/results/1".parse().unwrap(),
        env_file: "/lustre/u/env/1.sh".parse().unwrap(),
        soft_timeout: Some(RunTime::from_hours(3.8).unwrap()),
        max_requeues: 10,
        master_port: 29500,
        task: TaskSetup { lightning_safe: true, on_warning: OnWarning::Ignore, ..TaskSetup::default() },
        launch: Launch::Container(Container {
            image: "nvcr.io#nvidia/tao:6".to_owned(),
            mounts: vec!["/lustre".to_owned(), "/data:/data:ro".to_owned()],
            hook_env: BTreeMap::new(),
            argv: vec!["python".to_owned(), "-c".to_owned(), "print('a b')".to_owned()],
        }),
    }
}

fn on_two_hosts() -> BatchScript {
    let directives = Directives {
        partitions: None,
        options: SubmitOptions::default(),
        nodes: 2,
        gpus_per_node: 0,
        requeue: false,
        exclusive: true,
        exclude: vec!["node07".parse().unwrap(), "node09".parse().unwrap()],
        ..base().directives
    };
    let launch = Launch::Host { argv: vec!["./train.sh".to_owned()] };
    let task = TaskSetup::default();
    BatchScript { directives, launch, task, soft_timeout: None, ..base() }
}

/// The fixed parts are in files of their own.
fn rendered(script: &BatchScript) -> String {
    let fixed = [
        (CLAIM, "[claim]\n"),
        (MARKS, "[marks]\n"),
        (OWN_SCANCEL, "[its own scancel]\n"),
        (RENDEZVOUS, "[rendezvous]\n"),
        (WAIT, "[wait]\n"),
        (LIMIT, "[limit]\n"),
        (REQUEUE, "[requeue]\n"),
        (launch::ROLES, "[roles]\n"),
    ];
    fixed.iter().fold(script.render().unwrap(), |text, (part, name)| text.replace(part, name))
}

#[path = "script_cosmos_tests.rs"]
mod roles;

#[test]
fn a_container_on_one_node() {
    insta::assert_snapshot!(rendered(&base()), @r##"
    #!/bin/bash
    #SBATCH --job-name=tao-job-1
    #SBATCH --account=edgeai
    #SBATCH --partition=polar,polar3
    #SBATCH --nodes=1
    #SBATCH --ntasks-per-node=1
    #SBATCH --gres=gpu:4
    #SBATCH --cpus-per-task=16
    #SBATCH --time=04:00:00
    #SBATCH --output=/lustre/u/state/1/1/main.out
    #SBATCH --error=/lustre/u/state/1/1/main.err
    #SBATCH --open-mode=append
    #SBATCH --wait-all-nodes=1
    #SBATCH --export=ALL
    #SBATCH --signal=B:USR1@120
    #SBATCH --requeue
    # Written by tao-slurm for one attempt of one job. Changes after the submission have no effect.

    readonly _tao_name=tao-job-1
    readonly _tao_state=/lustre/u/state/1/1
    readonly _tao_logs=/lustre/u/slurm-logs/tao-job-1-"$SLURM_JOB_ID"
    readonly _tao_results=/lustre/u/results/1
    [claim]
    [marks]
    export SRUN_CPUS_PER_TASK=16
    [wait]

    readonly _tao_limit=13680
    [limit]

    readonly _tao_task='trap "" USR1
    export SLURM_JOB_NAME=bash
    unset SLURM_NTASKS SLURM_NNODES SLURM_PROCID SLURM_LOCALID SLURM_NTASKS_PER_NODE RANK LOCAL_RANK GROUP_RANK WORLD_SIZE NODE_RANK NUM_GPU_PER_NODE MASTER_ADDR MASTER_PORT NNODES NPROC_PER_NODE
    if [ ! -r /lustre/u/env/1.sh ]; then
      echo "tao-slurm: the environment file of this job is not there:" /lustre/u/env/1.sh >&2
      exit 121
    fi
    . /lustre/u/env/1.sh
    true 2>/dev/null >/lustre/u/state/1/1/begun"${1:+_$1}.${SLURM_NODEID-}"
    exec "${@:2}"'
    srun --container-image='nvcr.io#nvidia/tao:6' --container-mounts='/lustre,/data:/data:ro' --export=ALL --kill-on-bad-exit=1 -- bash -c "$_tao_task" task '' python -c "print('a b')" </dev/null &
    _tao_programs+=("$!") _tao_roles+=('') _tao_tasks+=(1)
    _tao_run_clock 13680 120 &
    _tao_clock=$!
    _tao_warnable=1
    if ((_tao_warned)); then _tao_pass_warning_on; fi
    _tao_wait "${_tao_programs[0]}"
    _tao_programs=()
    if ((_tao_ended)); then exit "$_tao_ended"; fi
    [requeue]
    if ((_tao_limited)); then _tao_requeue 10; fi
    if ((_tao_limited)); then exit 124; fi
    if ((_tao_code == 0)); then _tao_check_success; fi
    exit "$_tao_code"
    "##);
}

#[test]
fn a_command_on_two_hosts() {
    insta::assert_snapshot!(rendered(&on_two_hosts()), @r##"
    #!/bin/bash
    #SBATCH --job-name=tao-job-1
    #SBATCH --nodes=2
    #SBATCH --ntasks-per-node=1
    #SBATCH --ntasks=2
    #SBATCH --cpus-per-task=16
    #SBATCH --time=04:00:00
    #SBATCH --output=/lustre/u/state/1/1/main.out
    #SBATCH --error=/lustre/u/state/1/1/main.err
    #SBATCH --open-mode=append
    #SBATCH --wait-all-nodes=1
    #SBATCH --export=ALL
    #SBATCH --signal=B:USR1@120
    #SBATCH --exclude=node07,node09
    #SBATCH --no-requeue
    #SBATCH --exclusive
    # Written by tao-slurm for one attempt of one job. Changes after the submission have no effect.

    readonly _tao_name=tao-job-1
    readonly _tao_state=/lustre/u/state/1/1
    readonly _tao_logs=/lustre/u/slurm-logs/tao-job-1-"$SLURM_JOB_ID"
    readonly _tao_results=/lustre/u/results/1
    [claim]
    [marks]
    export SRUN_CPUS_PER_TASK=16
    [its own scancel]

    export WORLD_SIZE=2 NUM_GPU_PER_NODE=0 MASTER_PORT=29500
    [rendezvous]
    [wait]

    readonly _tao_task='trap : TERM INT HUP USR1
    _tao_leave() {
      set -C
      if (($2)); then echo "$2" 2>/dev/null >/lustre/u/state/1/1/failed"${1:+_$1}"; fi
      exit "$2"
    }
    if [ ! -r /lustre/u/env/1.sh ]; then
      echo "tao-slurm: the environment file of this job is not there:" /lustre/u/env/1.sh >&2
      _tao_leave "$1" 121
    fi
    . /lustre/u/env/1.sh
    export PATH=/lustre/u/state/1/1/bin:"$PATH"
    export NODE_RANK="${SLURM_NODEID:?}"
    "${@:2}"
    _tao_leave "$1" "$?"'
    srun --export=ALL --kill-on-bad-exit=1 -- bash -c "$_tao_task" task '' ./train.sh </dev/null &
    _tao_programs+=("$!") _tao_roles+=('') _tao_tasks+=(2)
    _tao_warnable=1
    if ((_tao_warned)); then _tao_pass_warning_on; fi
    _tao_wait "${_tao_programs[0]}"
    _tao_first_code "$_tao_state/failed"
    _tao_programs=()
    if ((_tao_ended)); then exit "$_tao_ended"; fi
    if ((_tao_code == 0)); then _tao_check_success; fi
    exit "$_tao_code"
    "##);
}

#[test]
fn a_container_on_two_nodes_sees_the_rendezvous_whatever_its_image_says() {
    let mut script = base();
    script.directives.nodes = 2;
    let text = rendered(&script);
    assert!(text.contains("--container-env=WORLD_SIZE,NUM_GPU_PER_NODE,MASTER_ADDR,MASTER_PORT "), "{text}");
    assert!(text.contains("export WORLD_SIZE=2 NUM_GPU_PER_NODE=4 MASTER_PORT=29500"), "{text}");
}

#[test]
fn what_a_cluster_asks_for_is_in_the_directives() {
    let mut script = base();
    script.directives.mail = Some("ops@example.org".parse().unwrap());
    script.directives.warning_seconds = 300;
    let text = rendered(&script);
    for line in ["mail-type=ALL", "mail-user=ops@example.org", "signal=B:USR1@300"] {
        assert!(text.contains(&format!("#SBATCH --{line}\n")), "{line}: {text}");
    }
}

#[test]
fn without_a_wish_there_is_no_warning_and_no_mail() {
    let mut script = base();
    script.directives.warning_seconds = 0;
    let text = rendered(&script);
    assert!(!text.contains("--signal") && !text.contains("--mail"), "{text}");
    assert!(text.contains("\n_tao_run_clock 13680 0 &\n"), "{text}");
}

#[test]
fn a_warning_leaves_half_of_a_short_time() {
    assert_eq!(warning_before(36, 120), 18);
    assert_eq!(warning_before(13_680, 120), 120);
    assert_eq!(warning_before(1_000_000, u32::MAX), 65_535);
}

#[test]
fn a_job_that_may_not_requeue_never_asks_for_it() {
    let mut script = base();
    script.directives.requeue = false;
    let text = script.render().unwrap();
    assert!(text.contains("#SBATCH --no-requeue\n") && !text.contains("scontrol requeue"), "{text}");
}

#[test]
fn another_port_is_rendered() {
    let script = BatchScript { master_port: 31_000, ..on_two_hosts() };
    assert!(rendered(&script).contains("MASTER_PORT=31000\n"));
}

#[test]
fn bash_and_shellcheck_accept_every_script() {
    let hostile = Launch::Host { argv: vec!["a'b\"c$(x)`y`\n\\".to_owned(), String::new()] };
    let with_space = "/lustre/a b/'c\"d/state".parse::<RemotePath>().unwrap();
    for script in [
        base(),
        on_two_hosts(),
        roles::cosmos(),
        BatchScript { launch: hostile, ..base() },
        BatchScript { log_root: with_space.clone(), env_file: with_space, ..base() },
    ] {
        let text = script.render().unwrap();
        let mut bash = Command::new("bash").arg("-n").stdin(Stdio::piped()).spawn().unwrap();
        bash.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        assert!(bash.wait().unwrap().success(), "{text}");
        assert_eq!(shellcheck(&text), "", "{text}");
        let entry = script.entry().unwrap();
        assert_eq!(shellcheck(&entry), "", "{entry}");
        assert!(!text.contains("set -x") && !text.contains("-euxo"));
    }
}

/// What shellcheck has against a script; nothing when it is clean.
fn shellcheck(text: &str) -> String {
    // SC1091: the environment file exists on the cluster only. SC2016: a caller's text may hold anything. SC2317: a function
    // that only a trap calls. SC2140: words that shlex quoted, joined.
    let mut check = Command::new("shellcheck");
    check
        .args(["--shell=bash", "--exclude=SC1091,SC2016,SC2317,SC2140", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut check = check.spawn().expect("shellcheck is installed: apt-get install shellcheck");
    check.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    String::from_utf8(check.wait_with_output().unwrap().stdout).unwrap()
}

#[test]
fn what_cannot_be_passed_on_is_refused() {
    let host = |argv: &[&str]| Launch::Host { argv: argv.iter().map(|word| (*word).to_owned()).collect() };
    let container = |image: &str, mount: &str| {
        Launch::Container(Container {
            image: image.to_owned(),
            mounts: vec![mount.to_owned()],
            hook_env: BTreeMap::new(),
            argv: vec!["x".to_owned()],
        })
    };
    let render = |launch: Launch| BatchScript { launch, ..base() }.render();
    assert_eq!(render(host(&[])), Err(ScriptError::EmptyCommand));
    assert!(matches!(render(host(&["a\0b"])), Err(ScriptError::Forbidden { .. })));
    assert!(matches!(render(container("a\nb", "/x")), Err(ScriptError::Forbidden { what: "the image", .. })));
    assert!(matches!(render(container("", "/x")), Err(ScriptError::Forbidden { what: "the image", .. })));
    assert!(matches!(render(container("a", "/x,/y")), Err(ScriptError::Forbidden { what: "a mount", .. })));
    let hooks = |key: &str, value: &str| {
        let Launch::Container(container) = base().launch else { unreachable!() };
        let hook_env = BTreeMap::from([(key.parse().unwrap(), value.to_owned())]);
        render(Launch::Container(Container { hook_env, ..container }))
    };
    for (key, value) in [("NVIDIA_VISIBLE_DEVICES", "all\nPATH=/x"), ("HOME", "/x")] {
        assert!(matches!(hooks(key, value), Err(ScriptError::Forbidden { .. })), "{key}");
    }
    let key: EnvKey = "A".parse().unwrap();
    assert!(matches!(base().env_text([(&key, "a\0b")]), Err(ScriptError::Forbidden { .. })));
}

#[test_case(|d| d.nodes = 0; "nodes")]
#[test_case(|d| d.cpus_per_task = 0; "cpus")]
fn a_count_of_zero_is_refused(change: fn(&mut Directives)) {
    let mut script = base();
    change(&mut script.directives);
    assert!(matches!(script.render(), Err(ScriptError::Zero { .. })));
}
