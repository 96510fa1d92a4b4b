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

/// The first driver of a node waits for a process per CPU, and forever if one of them is not ready within a minute (Ray's issue 40131),
/// which takes nodes with many CPUs or a slow disk longer. So processes start when there is work for them.
const ON_DEMAND: &str = "export RAY_prestart_worker_first_driver=${RAY_prestart_worker_first_driver:-0}\n";

/// Starts Ray. $1: the file that Ray writes when it has started, $2: the seconds for which it must live, the rest: the command. Paths of
/// sockets have at most 107 bytes, so Ray's directory has a short one.
///
/// Ray gives up on a raylet that is not ready within 30 s (`Node.__init__`), and no setting changes that. A busy node may be ready the
/// next time, so it has as long as the others wait for it. What fails sooner is tried three times.
const BEGIN: &str = r#"dir=/tmp/tao-ray-$SLURM_JOB_ID-$RAY_HEAD_PORT
clean() { for try in 1 2 3; do rm -rf -- "$dir" 2>/dev/null && return; sleep 1; done; }
begin() {
  local few=0 since
  while ((few < 3)); do
    since=$SECONDS
    clean
    mkdir -m 700 -- "$dir" || return
    tell_port &
    "${@:3}"
    code=$?
    if [ -e "$1" ] && ((SECONDS - since >= $2)) || ((SECONDS >= RAY_PATIENCE)); then break; fi
    if [ -e "$1" ] || ((SECONDS - since < 30)); then ((few += 1)); fi
  done
  return "$code"
}
trap clean EXIT
"#;

/// What all nodes have in common. Ray's own choice of ports could be that of another Ray. Workers let the kernel choose theirs.
///
/// A raylet waits 15 s for each port of its agents that it was not given, then ends (Ray's issue 65983). On a slow node that happens at
/// every try. `ray start` gives it all ports but the one of the dashboard's agent. So `tell_port` writes that port where the agent would.
const PORTS: &str = r#"ports=(
  "--node-manager-port=$RAY_PORTS"
  "--object-manager-port=$((RAY_PORTS + 1))"
  "--dashboard-agent-listen-port=$((RAY_PORTS + 2))"
  "--dashboard-agent-grpc-port=$((RAY_PORTS + 3))"
  "--runtime-env-agent-port=$((RAY_PORTS + 4))"
  "--metrics-export-port=$((RAY_PORTS + 5))"
  "--min-worker-port=0"
  "--max-worker-port=0"
)
resources=("--num-cpus=${SLURM_CPUS_ON_NODE:-1}" "--num-gpus=$RAY_GPUS")
tell_port() {
  local file words word session
  while [ -d "$dir" ]; do
    for file in /proc/[0-9]*/cmdline; do
      mapfile -d "" -t words <"$file"
      if [[ ${words[1]} != "--raylet_socket_name=$dir/"*/sockets/* ]]; then continue; fi
      session=${words[1]#*=}
      session=${session%/sockets/*}
      for word in "${words[@]}"; do
        if [[ $word != --node_id=* ]]; then continue; fi
        echo "$((RAY_PORTS + 2))" >"$dir/port"
        mv -- "$dir/port" "$session/dashboard_agent_listen_port_${word#*=}"
        return
      done
    done 2>/dev/null
    sleep 0.5
  done
}
"#;

/// What the head and the workers have in common. A worker that has joined a head which then starts again has to join that one. Slurm may
/// kill all of it soon after SIGTERM, and srun does if one task fails.
const START: &str = r#"trap "exit 0" TERM
ulimit -Sn 65535 2>/dev/null
block() { ray start --block "--temp-dir=$dir" "${resources[@]}" "${ports[@]}" "$@" & wait $!; }
start() { begin "$dir/ray_current_cluster" 120 block "$@"; }
"#;

/// Other nodes reach the head by its address, and not by one that Ray finds.
const HEAD: &str = r#"if [ "$head" != "$RAY_HEAD_HOST" ]; then set -- "--node-ip-address=$head" "$@"; fi
# Without gRPC the option is an error.
if python3 -c "import grpc" 2>/dev/null; then set -- "--ray-client-server-port=$((RAY_PORTS + 7))" "$@"; fi
set -- "--dashboard-port=$((RAY_PORTS + 6))" "$@"
start --head "--port=$RAY_HEAD_PORT" "$@"
"#;

const WORKER: &str = r#"for ((try = 0; try < RAY_PATIENCE; try++)); do
  if (: <>"/dev/tcp/$head/$RAY_HEAD_PORT") 2>/dev/null; then break; fi
  sleep 1
done
start "--address=$head:$RAY_HEAD_PORT" "$@"
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

/// What the nodes have in common. The workers of a head that has gone would wait for it for a minute. Ray's own patience is 30 s.
///
/// Not with `--min-nodes`: that waits until Ray knows so many nodes, dead ones included, and no more (`check_cluster_ready`). A node
/// that has started again would be one too many.
const SYMMETRIC: &str = r#"IFS=" ." read -r _ _ major minor _ < <(ray --version)
if ((major * 1000 + minor < 2054)); then
  echo "tao-slurm: ray symmetric-run needs Ray 2.54 or later" >&2
  exit 1
fi
export RAY_TMPDIR=$dir RAY_gcs_rpc_server_reconnect_timeout_s=10
export RAY_SYMMETRIC_RUN_CLUSTER_WAIT_TIMEOUT=${RAY_SYMMETRIC_RUN_CLUSTER_WAIT_TIMEOUT:-$RAY_PATIENCE}
address=$head:$RAY_HEAD_PORT
run=(ray symmetric-run "--address=$address" "${resources[@]}" "${ports[@]}")
"#;

/// $1: the shell of the command, $2: the program that waits, $3: the number of words for `ray start`, then these, then the command. The
/// file that says that Ray has started is [`RECORD`]'s, so the command runs once. After SIGTERM nothing starts again, and Ray ends, which
/// is no child of symmetric-run: for `ray stop` Slurm may leave too little time.
const SYMMETRIC_HEAD: &str = r#"trap 'RAY_PATIENCE=0; pkill -KILL -f -- "$dir/"' TERM
export RAY_WAIT=$2
begin "$dir/code" 0 "${run[@]}" "${@:4:$3}" -- bash -c "$1" "$address" "${@:4+$3}"
if [ -s "$dir/code" ]; then
  read -r code <"$dir/code"
elif [ ! -e "$dir/code" ]; then
  echo "tao-slurm: ray symmetric-run did not start Ray, so the command did not run" >&2
  code=1
fi
exit "$code"
"#;

/// $0: Ray's address, the rest: the command. What symmetric-run returns is not the command's code. The empty file says that the command
/// has begun: it may be killed. symmetric-run prints this text.
const RECORD: &str = r#"export RAY_ADDRESS=$0
python3 -c "$RAY_WAIT" || exit
: >"$RAY_TMPDIR/code"
"$@"
code=$?
echo "$code" >"$RAY_TMPDIR/code"
exit "$code"
"#;

/// The words for `ray start`. symmetric-run returns 0 if Ray does not start; `ray start --block` begins a log when it has. A worker that
/// has joined a head which then starts again has to join that one.
const SYMMETRIC_WORKER: &str = r#"trap "exit 0" TERM
join() { "${run[@]}" "$@" -- true & wait $!; }
log=$dir/ray/session_latest/logs/ray_process_exit.log
while begin "$log" 0 join "$@"; [ -e "$log" ]; do SECONDS=0; done
echo "tao-slurm: ray symmetric-run did not start Ray on $HOSTNAME" >&2
exit 1
"#;

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
        let script = |parts: &[&str]| [&[ADDRESS, ON_DEMAND, BEGIN, PORTS], parts].concat().concat();
        let head = Nodes { first, count: 1 };
        let words = self.args.len().to_string();
        let (mut aids, worker, mut driver) = match self.bootstrap {
            Bootstrap::Steps => (
                vec![bash("-head", true, head, &[&script(&[START, HEAD]), "ray"])],
                script(&[START, WORKER]),
                bash("", false, head, &[&format!("{ADDRESS}{DRIVER}"), "ray", WAIT]),
            ),
            Bootstrap::SymmetricRun => {
                let program = script(&[SYMMETRIC, SYMMETRIC_HEAD]);
                let mut driver = bash("", false, head, &[&program, "ray", RECORD, WAIT, &words]);
                driver.program.extend_from_slice(&self.args);
                (vec![], script(&[SYMMETRIC, SYMMETRIC_WORKER]), driver)
            }
        };
        if count > 1 {
            let others = Nodes { first: first + 1, count: count - 1 };
            aids.push(bash("-worker", true, others, &[&worker, "ray"]));
        }
        for aid in &mut aids {
            aid.program.extend_from_slice(&self.args);
        }
        driver.program.extend_from_slice(site.argv);
        aids.push(driver);
        aids
    }

    fn stands_between(&self) -> bool {
        self.bootstrap == Bootstrap::SymmetricRun
    }
}
