//! Ray: a head, workers, and the command as the driver of both.

use super::{Launcher, Nodes, Site, Start, Value};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A Ray cluster on the component's nodes. The command runs on the first of them, with `RAY_ADDRESS`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ray {
    /// What makes the cluster.
    #[serde(default)]
    pub bootstrap: Bootstrap,
    /// Further words of `ray start`.
    #[serde(default)]
    pub args: Vec<String>,
}

/// What makes a Ray cluster.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Bootstrap {
    /// The service: a head, workers, and the command as three steps of Slurm, with ports of their own.
    #[default]
    Steps,
    /// `ray symmetric-run` of Ray 2.54 or later. It stops every Ray of the user on its nodes, so it needs exclusive nodes.
    SymmetricRun,
}

/// The address of the head. gRPC asks a name server for a name, also for one that only the nodes' file of hosts has.
const ADDRESS: &str = r#"
read -r head _ < <(getent ahostsv4 "$RAY_HEAD_HOST")
case $head in "" | 127.*) head=$RAY_HEAD_HOST ;; esac
"#;

/// What the head and the workers have in common. Paths of sockets have at most 107 bytes, so the directory has a short one. Ray's
/// own choice of ports could be that of another Ray; workers let the kernel choose theirs. Ray gives up on a node that is not ready
/// within 30 s, which a busy one may be the next time. Slurm may kill all of it soon after SIGTERM, and srun does if one task fails.
const START: &str = r#"dir=/tmp/tao-ray-$SLURM_JOB_ID-$RAY_HEAD_PORT
clean() { for try in 1 2 3; do rm -rf -- "$dir" 2>/dev/null && return; sleep 1; done; }
begin() {
  for try in 1 2 3; do
    SECONDS=0
    clean
    mkdir -m 700 -- "$dir" || return
    ray start --block "--temp-dir=$dir" "$@" &
    wait $!
    code=$?
    if ((SECONDS > 60)); then break; fi
  done
  return "$code"
}
trap "exit 0" TERM
trap clean EXIT
ulimit -Sn 65535 2>/dev/null
set -- "--min-worker-port=0" "--max-worker-port=0" "--metrics-export-port=$((RAY_PORTS + 5))" "$@"
set -- "--dashboard-agent-grpc-port=$((RAY_PORTS + 3))" "--runtime-env-agent-port=$((RAY_PORTS + 4))" "$@"
set -- "--object-manager-port=$((RAY_PORTS + 1))" "--dashboard-agent-listen-port=$((RAY_PORTS + 2))" "$@"
set -- "--num-cpus=${SLURM_CPUS_ON_NODE:-1}" "--num-gpus=$RAY_GPUS" "--node-manager-port=$RAY_PORTS" "$@"
"#;

/// Other nodes reach the head by its address, and not by one that Ray finds.
const HEAD: &str = r#"if [ "$head" != "$RAY_HEAD_HOST" ]; then set -- "--node-ip-address=$head" "$@"; fi
# Without gRPC the option is an error.
if python3 -c "import grpc" 2>/dev/null; then set -- "--ray-client-server-port=$((RAY_PORTS + 7))" "$@"; fi
set -- "--dashboard-port=$((RAY_PORTS + 6))" "$@"
begin --head "--port=$RAY_HEAD_PORT" "$@"
"#;

const WORKER: &str = r#"for ((try = 0; try < RAY_PATIENCE; try++)); do
  if (: <>"/dev/tcp/$head/$RAY_HEAD_PORT") 2>/dev/null; then break; fi
  sleep 1
done
begin "--address=$head:$RAY_HEAD_PORT" "$@"
"#;

/// $1: the program that waits, the rest: the command.
const DRIVER: &str = r#"export RAY_ADDRESS=$head:$RAY_HEAD_PORT
python3 -c "$1" || exit
exec "${@:2}"
"#;

const WAIT: &str = r#"
import os, sys, time
import ray

end = time.monotonic() + int(os.environ["RAY_PATIENCE"])
nodes, alive, error = int(os.environ["RAY_NODES"]), 0, ""
while alive < nodes:
    try:
        ray.init(log_to_driver=False, logging_level="ERROR", ignore_reinit_error=True)
        alive = sum(node["Alive"] for node in ray.nodes())
    except Exception as failure:
        error = failure
    if alive < nodes:
        if time.monotonic() > end:
            sys.exit(f"tao-slurm: Ray has {alive} of {nodes} nodes, so the command does not start. {error}")
        time.sleep(0.5)
"#;

/// $1: the shell of the command, $2: the number of words for `ray start`, then these, then the command. The workers of a head that has
/// gone would wait for it for a minute. Ray's own patience is 30 s, and it returns 0 if Ray does not start.
const SYMMETRIC: &str = r#"IFS=" ." read -r _ _ major minor _ < <(ray --version)
if ((major * 1000 + minor < 2054)); then
  echo "tao-slurm: ray symmetric-run needs Ray 2.54 or later" >&2
  exit 1
fi
export RAY_TMPDIR=/tmp/tao-ray-$SLURM_JOB_ID-$RAY_HEAD_PORT RAY_gcs_rpc_server_reconnect_timeout_s=10
export RAY_SYMMETRIC_RUN_CLUSTER_WAIT_TIMEOUT=${RAY_SYMMETRIC_RUN_CLUSTER_WAIT_TIMEOUT:-$RAY_PATIENCE}
rm -rf -- "$RAY_TMPDIR"
mkdir -m 700 -- "$RAY_TMPDIR" || exit
trap : TERM
address=$head:$RAY_HEAD_PORT
start=("--num-cpus=${SLURM_CPUS_ON_NODE:-1}" "--num-gpus=$RAY_GPUS" "${@:3:$2}")
ray symmetric-run "--address=$address" "--min-nodes=$RAY_NODES" "${start[@]}" -- bash -c "$1" "$address" "${@:3+$2}"
code=$?
if [ -s "$RAY_TMPDIR/code" ]; then
  read -r code <"$RAY_TMPDIR/code"
elif ((SLURM_PROCID == 0)) && [ ! -e "$RAY_TMPDIR/code" ]; then
  echo "tao-slurm: ray symmetric-run did not start Ray, so the command did not run" >&2
  code=1
fi
rm -rf -- "$RAY_TMPDIR"
exit "$code"
"#;

/// What symmetric-run returns is not the command's code. The empty file says that the command has begun: it may be killed.
const RECORD: &str =
    r#": >"$RAY_TMPDIR/code"; RAY_ADDRESS=$0 "$@"; code=$?; echo "$code" >"$RAY_TMPDIR/code"; exit "$code""#;

impl Launcher for Ray {
    fn starts(&self, site: &Site<'_>) -> Vec<Start> {
        let Nodes { first, count } = site.nodes;
        let bash = |suffix, aids, nodes, words: &[&str]| {
            let mut start = Start { suffix, aids, nodes, tasks_per_node: 1, ..Start::of(site) };
            start.set("RAY_HEAD_HOST", Value::Hosts(Nodes { first, count: 1 }));
            start.set("RAY_HEAD_PORT", site.port.clone());
            start.set("RAY_PORTS", site.more_ports.clone());
            start.set("RAY_GPUS", Value::Text(site.gpus_per_node.to_string()));
            start.set("RAY_NODES", Value::Text(count.to_string()));
            start.set("RAY_PATIENCE", Value::Text((600 + 5 * count).to_string()));
            start.set("RAY_USAGE_STATS_ENABLED", Value::Text("0".to_owned()));
            start.program = ["bash", "-c"].iter().chain(words).map(|word| (*word).to_owned()).collect();
            start
        };
        let head = Nodes { first, count: 1 };
        if self.bootstrap == Bootstrap::SymmetricRun {
            let args = self.args.len().to_string();
            let mut start =
                bash("", false, site.nodes, &[&format!("{ADDRESS}{SYMMETRIC}"), "ray", RECORD, &args]);
            start.program.extend(self.args.iter().chain(site.argv).cloned());
            return vec![start];
        }
        let mut starts = vec![bash("-head", true, head, &[&format!("{ADDRESS}{START}{HEAD}"), "ray"])];
        if count > 1 {
            let others = Nodes { first: first + 1, count: count - 1 };
            starts.push(bash("-worker", true, others, &[&format!("{ADDRESS}{START}{WORKER}"), "ray"]));
        }
        for start in &mut starts {
            start.program.extend_from_slice(&self.args);
        }
        let mut driver = bash("", false, head, &[&format!("{ADDRESS}{DRIVER}"), "ray", WAIT]);
        driver.program.extend_from_slice(site.argv);
        starts.push(driver);
        starts
    }

    fn stands_between(&self) -> bool {
        self.bootstrap == Bootstrap::SymmetricRun
    }
}
