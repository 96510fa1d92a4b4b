//! A compute node with fakes of Slurm's programs.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    process::{Command, Output},
};

use remote::{BatchScript, Directives, Launch, TaskSetup};
use slurm::{RemotePath, RunTime, WallTime};

/// Keeps what it was called with, runs what stands after `--`, and passes signals on as the real one does.
const SRUN: &str = r#"#!/bin/bash
printf '%s\0' "$@" >>"$SITE/srun.args"
out=/dev/stdout err=/dev/stderr
while [ "$1" != -- ]; do
  case $1 in
  --output=*) out=${1#*=} ;;
  --error=*) err=${1#*=} ;;
  esac
  shift
done
shift
# A process group, for a signal reaches every process of a step.
set -m
export BATCH=$PPID
SLURM_NODEID=1 "$@" <&0 >>"${out/\%t/0}" 2>>"${err/\%t/0}" &
child=$!
echo "$child" >>"$SITE/tasks"
trap 'seen=1; kill -USR1 -- "-$child"' USR1
trap 'seen=1; kill -KILL -- "-$child"' TERM
while :; do
  seen=0
  wait "$child"
  code=$?
  if ((!seen)); then
    if ((code)) && [ -e "$SITE/highest" ]; then code=$(cat "$SITE/highest"); fi
    exit "$code"
  fi
done
"#;

const SCONTROL: &str = r#"#!/bin/bash
echo "$@" >>"$SITE/scontrol.calls"
case $1 in
-o) cat "$SITE/told" ;;
show) cat "$SITE/hosts" ;;
requeue)
  if [ -e "$SITE/refuse" ]; then exit 1; fi
  # Slurm ends the batch script, which has called this by way of timeout.
  kill -TERM "$(ps -o ppid= -p "$PPID")"
  ;;
esac
"#;

const SCANCEL: &str = r#"#!/bin/bash
echo "$@" >>"$SITE/scancel.calls"
if [ "$1" = --signal=TERM ]; then kill -TERM -- $(sed s/^/-/ "$SITE/tasks"); fi
exit 0
"#;

pub(crate) struct Node {
    pub(crate) dir: tempfile::TempDir,
}

impl Node {
    pub(crate) fn new() -> Self {
        let node = Self { dir: tempfile::tempdir().unwrap() };
        for name in ["bin", "state", "results"] {
            fs::create_dir(node.file(name)).unwrap();
        }
        let programs = [("bin/srun", SRUN), ("bin/scontrol", SCONTROL), ("bin/scancel", SCANCEL)];
        for (name, text) in programs {
            fs::write(node.file(name), text).unwrap();
            fs::set_permissions(node.file(name), fs::Permissions::from_mode(0o755)).unwrap();
        }
        // As the program does that submits it.
        fs::write(node.file("state/submit.1"), "").unwrap();
        // Slurm makes the log files before the script starts.
        fs::write(node.file("state/main.out"), "").unwrap();
        fs::write(node.file("state/main.err"), "").unwrap();
        fs::write(node.file("hosts"), "node03\nnode04\n").unwrap();
        fs::write(node.file("told"), "JobId=42 JobName=job-1 JobState=RUNNING PreemptTime=None \n").unwrap();
        node
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn path(&self, name: &str) -> RemotePath {
        self.file(name).to_str().unwrap().parse().unwrap()
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.file(name)).unwrap()
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.file(name).exists()
    }

    pub(crate) fn script(&self, argv: &[&str]) -> BatchScript {
        BatchScript {
            directives: Directives {
                job_name: "job-1".parse().unwrap(),
                partitions: None,
                account: None,
                nodes: 1,
                gpus_per_node: 0,
                cpus_per_task: 1,
                time: WallTime::from_minutes(10).unwrap(),
                requeue: true,
                exclusive: false,
                all_memory: false,
                exclude: vec![],
                mail: None,
                trace: None,
                login_environment: true,
                warning_seconds: 0,
            },
            state_dir: self.path("state"),
            log_root: self.path("logs"),
            results_dir: self.path("results"),
            env_file: None,
            exports: vec![],
            soft_timeout: RunTime::from_seconds(300),
            max_requeues: 2,
            master_port: 29500,
            task: TaskSetup::default(),
            launch: Launch::Host { argv: argv.iter().map(|word| (*word).to_owned()).collect() },
        }
    }

    pub(crate) fn command(&self, script: &BatchScript, job: u32, restart: u32) -> Command {
        let path = self.file("script.sh");
        fs::write(&path, script.render().unwrap()).unwrap();
        let mut command = Command::new("bash");
        command
            .arg(path)
            .env("PATH", format!("{}:/usr/bin:/bin", self.file("bin").display()))
            .env("SITE", self.dir.path())
            .env("SLURM_JOB_ID", job.to_string())
            .env("SLURM_JOB_NODELIST", "node[03-04]")
            .env("SLURM_RESTART_COUNT", restart.to_string())
            .env("SLURMD_NODENAME", "node01");
        command
    }

    pub(crate) fn run(&self, script: &BatchScript, job: u32, restart: u32) -> Output {
        self.command(script, job, restart).output().unwrap()
    }

    pub(crate) fn words(&self, name: &str) -> Vec<String> {
        self.read(name).split(['\n', ' ']).map(str::to_owned).collect()
    }
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
