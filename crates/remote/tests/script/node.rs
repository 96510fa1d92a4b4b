//! A compute node with fakes of Slurm's programs.

#[path = "../fixtures/plain.rs"]
mod plain;

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    process::{Command, Output},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use remote::{BatchScript, Component, Directives, launcher::PerNode, script::env_text};
use slurm::{EnvKey, RemotePath, RunTime};

use plain::{plain_directives, plain_script};

/// Keeps what it was called with and what it inherited, runs what stands after `--`, and treats signals as the real one does:
/// it passes SIGUSR1 on to every process of its tasks, and on SIGTERM it kills them. A signal ends a task that is set up.
const SRUN: &str = r#"#!/bin/bash
printf '%s\0' "$@" >>"$SITE/srun.args"
env -0 >>"$SITE/srun.env"
out=/dev/stdout err=/dev/stderr tasks=1
while [ "$1" != -- ]; do
  case $1 in
  --output=*) out=${1#*=} ;;
  --error=*) err=${1#*=} ;;
  --ntasks=*) tasks=${1#*=} ;;
  esac
  shift
done
shift
export BATCH=$PPID
if [ -e "$SITE/setup" ]; then
  trap 'echo "pyxis: container exited too soon" >&2; exit 1' USR1
  until [ -e "$SITE/set_up" ]; do sleep 0.1; done
fi
for ((step = 0; ; step++)); do if mkdir "$SITE/step.$step" 2>/dev/null; then break; fi; done
export SLURM_STEP_ID=$step
# A process group, for a signal reaches every process of a step.
set -m
children=()
for ((task = 0; task < tasks; task++)); do
  SLURM_NODEID=$((tasks == 1 ? 1 : task)) SLURM_PROCID=$task "$@" <&0 >>"${out/\%t/$task}" 2>>"${err/\%t/$task}" &
  children+=("$!")
  echo "$!" >>"$SITE/tasks"
  echo "$!" >>"$SITE/step.$step/tasks"
done
trap 'seen=1; kill -USR1 -- "${children[@]/#/-}"' USR1
trap 'seen=1; kill -KILL -- "${children[@]/#/-}"' TERM
highest=0
for child in "${children[@]}"; do
  while :; do
    seen=0
    wait "$child"
    code=$?
    if ((!seen)); then break; fi
  done
  if ((code > highest)); then highest=$code; fi
done
if ((highest)) && [ -e "$SITE/highest" ]; then highest=$(cat "$SITE/highest"); fi
exit "$highest"
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
if [ "$1" = --signal=TERM ]; then
  for id in "${@:2}"; do
    case $id in *.*) tasks=$SITE/step.${id#*.}/tasks ;; *) tasks=$SITE/tasks ;; esac
    kill -TERM -- $(sed s/^/-/ "$tasks") 2>/dev/null
  done
fi
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
        fs::write(node.file("env"), "").unwrap();
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

    /// Waits until a file is there.
    pub(crate) fn wait_for(&self, name: &str) {
        let begun = Instant::now();
        while !self.has(name) {
            assert!(begun.elapsed() < Duration::from_mins(2), "{name} is not there");
            thread::yield_now();
        }
    }

    pub(crate) fn script(&self, argv: &[&str]) -> BatchScript {
        BatchScript {
            log_root: self.path("logs"),
            results_dir: self.path("results"),
            env_file: self.path("env"),
            soft_timeout: RunTime::from_seconds(300),
            max_requeues: 2,
            usage_seconds: 0,
            ..plain_script(plain_directives("job-1", 10), self.path("state"), component(argv))
        }
    }

    /// The job's own variables, in the file that its tasks read.
    pub(crate) fn give(&self, vars: &[(&str, &str)]) {
        let vars: Vec<(EnvKey, &str)> =
            vars.iter().map(|(key, value)| (key.parse().unwrap(), *value)).collect();
        let text = env_text(vars.iter().map(|(key, value)| (key, *value))).unwrap();
        fs::write(self.file("env"), text).unwrap();
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

/// A step on one node.
pub(crate) fn component(argv: &[&str]) -> Component {
    let argv = argv.iter().map(|word| (*word).to_owned()).collect();
    Component::step("main".parse().unwrap(), 1, Arc::new(PerNode), argv)
}

/// The same on so many nodes.
pub(crate) fn on_nodes(mut script: BatchScript, nodes: u32) -> BatchScript {
    script.directives.nodes = nodes;
    for component in &mut script.components {
        component.nodes.count = nodes;
    }
    script
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
