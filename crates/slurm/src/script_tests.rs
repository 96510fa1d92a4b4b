use std::{
    io::Write as _,
    process::{Command, Stdio},
};

use test_case::test_case;

use super::*;

fn base() -> BatchScript {
    BatchScript {
        directives: Directives {
            job_name: "tao-job-1".parse().unwrap(),
            partitions: Some("polar,polar3".parse().unwrap()),
            account: Some("edgeai".parse().unwrap()),
            nodes: 1,
            gpus_per_node: 4,
            cpus_per_task: 16,
            time: WallTime::from_minutes(240).unwrap(),
            requeue: true,
            exclusive: false,
            exclude: vec![],
        },
        state_dir: "/lustre/u/state/1/1".parse().unwrap(),
        log_root: "/lustre/u/slurm-logs".parse().unwrap(),
        env_file: Some("/lustre/u/env/1".parse().unwrap()),
        exports: vec![("WANDB_PROJECT".parse().unwrap(), "it's $HOME".to_owned())],
        soft_timeout: Some(WallTime::from_hours(3.8).unwrap()),
        launch: Launch::Container {
            image: "nvcr.io#nvidia/tao:6".to_owned(),
            mounts: vec!["/lustre".to_owned(), "/data:/data:ro".to_owned()],
            forward_env: vec!["WANDB_PROJECT".parse().unwrap()],
            argv: vec!["python".to_owned(), "-c".to_owned(), "print('a b')".to_owned()],
        },
    }
}

fn on_two_hosts() -> BatchScript {
    let directives = Directives {
        partitions: None,
        account: None,
        nodes: 2,
        gpus_per_node: 0,
        requeue: false,
        exclusive: true,
        exclude: vec!["node07".parse().unwrap(), "node09".parse().unwrap()],
        ..base().directives
    };
    let launch = Launch::Host { argv: vec!["./train.sh".to_owned()] };
    BatchScript { directives, launch, env_file: None, exports: vec![], soft_timeout: None, ..base() }
}

/// The fixed part is in a file of its own, and shown whole in one snapshot only.
fn rendered(script: &BatchScript) -> String {
    script.render().unwrap().replace(CLAIM, "[claim]\n").replace(RENDEZVOUS, "[rendezvous]\n")
}

#[test]
fn a_container_on_one_node() {
    insta::assert_snapshot!(base().render().unwrap(), @r##"
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
    #SBATCH --requeue
    # Written by tao-slurm for one attempt of one job. It is not read again after it was submitted.

    readonly _tao_state=/lustre/u/state/1/1
    readonly _tao_logs=/lustre/u/slurm-logs/tao-job-1-"$SLURM_JOB_ID"
    readonly _tao_id=${SLURM_JOB_ID:?} _tao_restart=${SLURM_RESTART_COUNT:-0}

    # An attempt belongs to one job. Making a symbolic link either succeeds or does not, and the link says who made it, so
    # there is no moment at which the claim has no owner. After a requeue the owner is this same job.
    if ! ln -sT -- "$_tao_id" "$_tao_state/run" 2>/dev/null; then
      _tao_owner=$(readlink -- "$_tao_state/run")
      if [ "$_tao_owner" != "$_tao_id" ]; then
        echo "tao-slurm: job $_tao_id stops here: the attempt belongs to job ${_tao_owner:-(its claim cannot be made)}" >&2
        exit 120
      fi
    fi

    # Slurm before 23 makes no directories for logs, so it writes them where they were sure to exist.
    mkdir -p -- "$_tao_logs"
    for _tao_stream in out err; do
      if [ ! -e "$_tao_logs/main.$_tao_stream" ]; then
        ln -- "$_tao_state/main.$_tao_stream" "$_tao_logs/main.$_tao_stream" 2>/dev/null \
          || ln -s -- "$_tao_state/main.$_tao_stream" "$_tao_logs/main.$_tao_stream"
      fi
    done

    # Writes a mark in one step. $1: its name, the rest: what it says.
    _tao_mark() {
      local name=$1
      shift
      echo "$_tao_id $_tao_restart $*" >"$_tao_state/.$name.$_tao_id" \
        && mv -f -- "$_tao_state/.$name.$_tao_id" "$_tao_state/$name"
    }
    _tao_finish() {
      local code=$?
      _tao_mark exit "$code" "$(date +%s)"
      exit "$code"
    }
    rm -f -- "$_tao_state/exit"
    _tao_mark started "$(date +%s)" "${SLURMD_NODENAME:-$(hostname)}"
    trap _tao_finish EXIT
    # Without these a signal would end the script with the code of whatever came before it.
    trap 'exit 129' HUP
    trap 'exit 130' INT
    trap 'exit 143' TERM

    export WANDB_PROJECT="it's "'$HOME'

    if [ ! -r /lustre/u/env/1 ]; then
      echo "tao-slurm: the environment file of this job is not there:" /lustre/u/env/1 >&2
      exit 121
    fi
    set -a
    . /lustre/u/env/1
    set +a

    timeout --kill-after=60 228m srun --container-image='nvcr.io#nvidia/tao:6' --container-mounts='/lustre,/data:/data:ro' --container-env=WANDB_PROJECT --export=ALL --kill-on-bad-exit=1 -- python -c "print('a b')" </dev/null
    code=$?
    exit "$code"
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
    #SBATCH --exclude=node07,node09
    #SBATCH --no-requeue
    #SBATCH --exclusive
    # Written by tao-slurm for one attempt of one job. It is not read again after it was submitted.

    readonly _tao_state=/lustre/u/state/1/1
    readonly _tao_logs=/lustre/u/slurm-logs/tao-job-1-"$SLURM_JOB_ID"
    [claim]

    export WORLD_SIZE=2 NUM_GPU_PER_NODE=0 MASTER_PORT=29500
    [rendezvous]

    srun --export=ALL --kill-on-bad-exit=1 -- bash -c 'export NODE_RANK=$SLURM_NODEID; exec "$@"' node-rank ./train.sh </dev/null
    code=$?
    exit "$code"
    "##);
}

#[test]
fn a_container_on_two_nodes_sees_the_rendezvous_whatever_its_image_says() {
    let mut script = base();
    script.directives.nodes = 2;
    let text = rendered(&script);
    assert!(
        text.contains("--container-env=WANDB_PROJECT,WORLD_SIZE,NUM_GPU_PER_NODE,MASTER_ADDR,MASTER_PORT "),
        "{text}"
    );
    assert!(text.contains("export WORLD_SIZE=2 NUM_GPU_PER_NODE=4 MASTER_PORT=29500"), "{text}");
}

#[test]
fn bash_and_shellcheck_accept_every_script() {
    let hostile = Launch::Host { argv: vec!["a'b\"c$(x)`y`\n\\".to_owned(), String::new()] };
    let with_space = "/lustre/a b/'c\"d/state".parse::<RemotePath>().unwrap();
    for script in [
        base(),
        on_two_hosts(),
        BatchScript { launch: hostile, ..base() },
        BatchScript { log_root: with_space.clone(), env_file: Some(with_space), ..base() },
    ] {
        let text = script.render().unwrap();
        let mut bash = Command::new("bash").arg("-n").stdin(Stdio::piped()).spawn().unwrap();
        bash.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        assert!(bash.wait().unwrap().success(), "{text}");
        assert_eq!(shellcheck(&text), "", "{text}");
        assert!(!text.contains("set -x") && !text.contains("-euxo"));
    }
}

/// What shellcheck has against a script; nothing when it is clean.
fn shellcheck(text: &str) -> String {
    // SC1090, SC1091: the environment file exists on the cluster only. SC2016: a caller's text may hold anything.
    // SC2317: a function that only a trap calls. SC2140: words that shlex quoted, joined.
    let mut check = Command::new("shellcheck");
    check
        .args(["--exclude=SC1090,SC1091,SC2016,SC2317,SC2140", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut check = check.spawn().expect("shellcheck is installed: apt-get install shellcheck");
    check.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    String::from_utf8(check.wait_with_output().unwrap().stdout).unwrap()
}

#[test]
fn what_cannot_be_passed_on_is_refused() {
    let host = |argv: &[&str]| Launch::Host { argv: argv.iter().map(|word| (*word).to_owned()).collect() };
    let container = |image: &str, mount: &str| Launch::Container {
        image: image.to_owned(),
        mounts: vec![mount.to_owned()],
        forward_env: vec![],
        argv: vec!["x".to_owned()],
    };
    let render = |launch: Launch| BatchScript { launch, ..base() }.render();
    assert_eq!(render(host(&[])), Err(ScriptError::EmptyCommand));
    assert!(matches!(render(host(&["a\0b"])), Err(ScriptError::Forbidden { .. })));
    assert!(matches!(render(container("a\nb", "/x")), Err(ScriptError::Forbidden { what: "the image", .. })));
    assert!(matches!(render(container("", "/x")), Err(ScriptError::Forbidden { what: "the image", .. })));
    assert!(matches!(render(container("a", "/x,/y")), Err(ScriptError::Forbidden { what: "a mount", .. })));
    let mut script = base();
    script.exports[0].1 = "a\0b".to_owned();
    assert!(matches!(script.render(), Err(ScriptError::Forbidden { .. })));
}

#[test_case(|d| d.nodes = 0; "nodes")]
#[test_case(|d| d.cpus_per_task = 0; "cpus")]
fn a_count_of_zero_is_refused(change: fn(&mut Directives)) {
    let mut script = base();
    change(&mut script.directives);
    assert!(matches!(script.render(), Err(ScriptError::Zero { .. })));
}
