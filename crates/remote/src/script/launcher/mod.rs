//! How a component becomes processes. Each launcher is a file here.

mod accelerate;
mod deepspeed;
mod mpi;
mod per_node;
mod plain;
mod ray;
mod torchrun;

use std::fmt::Debug;

use slurm::EnvKey;

use super::parts::{Nodes, Value};

pub use accelerate::Accelerate;
pub use deepspeed::DeepSpeed;
pub use mpi::Mpi;
pub use per_node::PerNode;
pub use plain::Plain;
pub use ray::{Bootstrap, Ray};
pub use torchrun::{Rendezvous, Torchrun};

/// Makes processes of a component.
pub trait Launcher: Debug + Send + Sync {
    /// The steps of Slurm that it needs: one, unless its parts end apart.
    fn starts(&self, site: &Site<'_>) -> Vec<Start>;

    /// Whether a program of its own stands between Slurm and the command. The warning must not end that.
    fn stands_between(&self) -> bool {
        false
    }

    /// Whether a program may not know that it is one of Slurm's tasks: the launcher tells it which of its processes it is.
    fn hides_slurm(&self) -> bool {
        true
    }
}

/// Runs a process of a launcher that would return a code of its own. The first process to fail leaves its code, before those that
/// fail because they miss it. A launcher may signal only this shell.
///
/// `PyTorch` 1 waits five minutes for the other nodes after a failure, and hears no signal meanwhile. If it does not start processes again,
/// it is ended after ten seconds, in which a newer one has ended with its own summary.
const RECORD: &str = r#"
file=$_tao_failed last=$_tao_last
unset _tao_failed _tao_last
trap : INT HUP
"$@" &
trap "kill -s TERM $!" TERM
wait $!
code=$?
while kill -0 $! 2>/dev/null; do
  wait $!
  code=$?
done
set -C
if ((code)); then
  echo "$code" 2>/dev/null >"$file"
  # PyTorch reads its options from variables, too.
  if [ "$last-${PET_MAX_RESTARTS:-0}" = 1-0 ]; then { sleep 10; kill "$PPID"; sleep 5; kill -9 "$PPID"; } >/dev/null 2>&1 & fi
fi
exit "$code"
"#;

/// What a component has.
#[derive(Debug, Clone)]
pub struct Site<'a> {
    /// Its command.
    pub argv: &'a [String],
    /// Its nodes.
    pub nodes: Nodes,
    /// The tasks of each node that were asked for.
    pub tasks_per_node: u32,
    /// The GPUs of each node.
    pub gpus_per_node: u32,
    /// The nodes of the whole job.
    pub job_nodes: u32,
    /// A port on its first node.
    pub port: Value,
    /// The first of ten further ports, on all of its nodes.
    pub more_ports: Value,
    /// A name that no other attempt has.
    pub run: &'a str,
}

impl Site<'_> {
    /// The processes on each node: so many, or one for each GPU, and one on a node without.
    fn processes(&self, asked: Option<u32>) -> u32 {
        asked.unwrap_or(self.gpus_per_node.max(1))
    }
}

/// One step of Slurm.
#[derive(Debug, Clone)]
pub struct Start {
    /// What its name has after that of the component.
    pub suffix: &'static str,
    /// Whether it only serves the component's last step: it must not end before that, and is ended after it.
    pub aids: bool,
    /// Its nodes.
    pub nodes: Nodes,
    /// Its tasks on each node.
    pub tasks_per_node: u32,
    /// Further options of srun.
    pub options: Vec<String>,
    /// The words of the entry shell that give a task its numbers: `--node-rank`, `--task-rank`.
    pub ranks: Vec<&'static str>,
    /// The variables of its tasks.
    pub variables: Vec<(EnvKey, Value)>,
    /// Whether its processes write down their codes themselves.
    pub records: bool,
    /// Whether the launcher may start them again.
    pub restarts: bool,
    /// What each task runs.
    pub program: Vec<String>,
}

impl Start {
    /// The component's command, on all of its nodes.
    fn of(site: &Site<'_>) -> Self {
        Self {
            suffix: "",
            aids: false,
            nodes: site.nodes,
            tasks_per_node: site.tasks_per_node,
            options: Vec::new(),
            ranks: Vec::new(),
            variables: Vec::new(),
            records: false,
            restarts: false,
            program: site.argv.to_vec(),
        }
    }

    /// A launcher on each node, which makes the processes there. `text`: its command, for bash; the words after it come last.
    fn of_launcher(site: &Site<'_>, processes: Option<u32>, text: &str, args: &[String]) -> Self {
        let mut start = Self { tasks_per_node: 1, records: true, ..Self::of(site) };
        let restarts = |arg: &String| arg.replace('_', "-").starts_with("--max-restarts");
        start.restarts = args.iter().any(restarts);
        start.ranks.push("--node-rank");
        start.set("NNODES", Value::Text(site.nodes.count.to_string()));
        start.set("NPROC_PER_NODE", Value::Text(site.processes(processes).to_string()));
        start.meet(site);
        start.program = ["bash", "-c", text, "launch"].map(str::to_owned).to_vec();
        start.program.extend_from_slice(args);
        start.program.extend(["bash", "-c", RECORD, "process"].map(str::to_owned));
        start.program.extend_from_slice(site.argv);
        start
    }

    /// Where its processes meet.
    fn meet(&mut self, site: &Site<'_>) {
        self.set("MASTER_ADDR", Value::Hosts(Nodes { count: 1, ..site.nodes }));
        self.set("MASTER_PORT", site.port.clone());
    }

    fn set(&mut self, key: &str, value: Value) {
        if let Ok(key) = key.parse() {
            self.variables.push((key, value));
        }
    }
}
