//! The submitted jobs: what each kind does, and how it must end.

use rand::{Rng, rngs::StdRng, seq::IndexedRandom};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::sandbox::run_dir;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// A command that succeeds quickly.
    Short,
    /// A command that fails because of its own error.
    Failing,
    /// A command whose first run fails with a hardware error.
    HardwareFailure,
    /// A command whose first run makes this program kill its node.
    NodeKilling,
    /// A command that runs for some time.
    Long,
    /// A command on a whole node, in a partition with preemptible jobs.
    Preemptible,
    /// A training in a container.
    Training,
    /// Two steps and a service beside them; the second step is a short command.
    Steps,
    /// An array of [`TASKS`] short commands. The first run of one of them fails with a hardware error.
    Sweep,
    /// A short command that needs the success of another job.
    Needing,
    /// An array of [`TASKS`] short commands. Each needs the task of the same number of another job, or that whole job.
    NeedingEach,
    /// A command whose first run ends with an exit code after which it goes on.
    GoingOn,
    /// A command whose first run lasts until its time limit. Each attempt queues the next one ahead.
    Chained,
}

/// The tasks of a sweep.
pub(crate) const TASKS: u32 = 4;
/// The one that fails first.
const UNLUCKY: u32 = 1;

/// The weight of each kind.
const WEIGHTS: [(Kind, u32); 13] = [
    (Kind::Short, 40),
    (Kind::Failing, 12),
    (Kind::HardwareFailure, 8),
    (Kind::NodeKilling, 4),
    (Kind::Long, 16),
    (Kind::Preemptible, 5),
    (Kind::Training, 15),
    (Kind::Steps, 10),
    (Kind::Sweep, 8),
    (Kind::Needing, 10),
    (Kind::NeedingEach, 6),
    (Kind::GoingOn, 6),
    (Kind::Chained, 8),
];

/// What its owner does with an active job.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum OwnerAction {
    Nothing,
    /// Canceled this many seconds after it was accepted.
    Cancel(f64),
    /// Paused after this many seconds, and resumed once it is paused.
    Pause(f64),
}

/// A job before its submission.
#[derive(Debug, Clone)]
pub(crate) struct Planned {
    pub(crate) id: Uuid,
    pub(crate) kind: Kind,
    pub(crate) action: OwnerAction,
    /// The job that it needs.
    pub(crate) needs: Option<Uuid>,
    pub(crate) body: Value,
}

impl Kind {
    /// Whether it ends as Done without external failures.
    pub(crate) fn succeeds(self) -> bool {
        self != Self::Failing
    }

    /// The numbers of its tasks; none without an array.
    pub(crate) fn tasks(self) -> Option<std::ops::Range<u32>> {
        matches!(self, Self::Sweep | Self::NeedingEach).then_some(0..TASKS)
    }

    /// What one of its tasks does.
    pub(crate) fn of_task(self, task: u32) -> Self {
        match self {
            Self::Sweep if task == UNLUCKY => Self::HardwareFailure,
            Self::Sweep => Self::Short,
            Self::NeedingEach => Self::Needing,
            other => other,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Short => "short",
            Self::Failing => "failing",
            Self::HardwareFailure => "hardware-failure",
            Self::NodeKilling => "node-killing",
            Self::Long => "long",
            Self::Preemptible => "preemptible",
            Self::Training => "training",
            Self::Steps => "steps",
            Self::Sweep => "sweep",
            Self::Needing => "needing",
            Self::NeedingEach => "needing-each",
            Self::GoingOn => "going-on",
            Self::Chained => "chained",
        }
    }
}

/// Writes what a node's kernel writes when a GPU fails.
const XID: &str = "echo 'NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.' >&2";

/// `before`: a job that was planned before.
pub(crate) fn plan(rng: &mut StdRng, run: &str, before: Option<Uuid>) -> Planned {
    // Not the seed's: the cluster remembers the jobs of an earlier run, and does not run one again.
    let id = Uuid::new_v4();
    let kind = WEIGHTS.choose_weighted(rng, |(_, weight)| *weight).map_or(Kind::Short, |(kind, _)| *kind);
    let action = match rng.random_range(0..100) {
        0..20 => OwnerAction::Cancel(rng.random_range(0.0..20.0)),
        20..32 => OwnerAction::Pause(rng.random_range(0.0..12.0)),
        _ => OwnerAction::Nothing,
    };
    let mut body = body(rng, id, kind, &format!("{}/{id}", run_dir(run)), &format!("{}/kill", run_dir(run)));
    let when = match kind {
        Kind::Needing => Some("succeeded"),
        Kind::NeedingEach => Some("each"),
        _ => None,
    };
    let needs = before.filter(|_| when.is_some());
    if let (Some(other), Some(when)) = (needs, when) {
        body["needs"] = json!([{"job": other, "when": when}]);
    }
    Planned { id, kind, action, needs, body }
}

fn body(rng: &mut StdRng, id: Uuid, kind: Kind, notes: &str, kill: &str) -> Value {
    let short = format!("work {}", rng.random_range(1..40_u32));
    let long = format!("work {}", rng.random_range(12..35_u32) * 10);
    let first = format!("if [ ! -e {notes}.first ]; then touch {notes}.first; ");
    let (work, code) = match kind {
        Kind::Short | Kind::Steps | Kind::Needing | Kind::NeedingEach => (short, 0),
        Kind::GoingOn => (format!("{first}exit 75; fi; {short}"), 0),
        Kind::Chained => (format!("{first}work 600; fi; {short}"), 0),
        Kind::Failing => (format!("{short}; echo 'ValueError: num_classes must be 20' >&2"), 3),
        Kind::HardwareFailure => (format!("{first}{XID}; exit 1; fi; {short}"), 0),
        Kind::Sweep => {
            (format!("if [ $TAO_TASK = {UNLUCKY} ]; then {first}{XID}; exit 1; fi; fi; {short}"), 0)
        }
        Kind::NodeKilling => (format!("{first}touch {kill}/$(hostname); work 250; fi; {short}"), 0),
        Kind::Long | Kind::Preemptible => (long, 0),
        Kind::Training => return training(rng, id, notes),
    };
    let me = "${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID} ${SLURM_RESTART_COUNT:-0}";
    // Each task of an array has notes of its own.
    let notes = if kind.tasks().is_some() { format!("{notes}.$TAO_TASK") } else { notes.to_owned() };
    // Tenths of a second.
    let work_by_beats = format!(
        "work() {{ for ((left = $1; left > 0; left -= 5)); do\n\
         echo \"beat {me} $EPOCHREALTIME\" >>{notes}\n\
         sleep 0.$((left < 5 ? left : 5)); done; }}\n"
    );
    let command = format!(
        "{work_by_beats}echo \"begin {me} $(date +%s.%N)\" >>{notes}\n{work}\necho \"end {me} {code} $(date +%s.%N)\" >>{notes}\nexit {code}\n"
    );
    let mut body = json!({
        "id": id, "command": command, "use_requeue": rng.random_bool(0.7),
        "resources": {"num_gpus": 0, "cpus_per_task": 1, "time_hours": 0.1},
    });
    if kind.tasks().is_some() {
        body["array"] = json!({"indices": format!("0-{}", TASKS - 1), "max_parallel": 2});
    }
    let restart = match kind {
        Kind::GoingOn => Some(json!({"exit_codes": [75]})),
        Kind::Chained => {
            body["resources"]["time_hours"] = 0.005.into();
            Some(
                json!({"on": ["timeout", "node_failure", "boot_failure", "launch_failure", "infrastructure"], "prequeue": true}),
            )
        }
        _ => None,
    };
    if let Some(restart) = restart {
        body["restart"] = restart;
        // Slurm does not requeue it.
        body.as_object_mut().and_then(|body| body.remove("use_requeue"));
    }
    if kind == Kind::Steps {
        let command = body.as_object_mut().and_then(|body| body.remove("command"));
        body["services"] = json!([{"name": "beside", "command": "exec sleep 3600"}]);
        body["steps"] =
            json!([{"name": "prepare", "command": "sleep 0.2"}, {"name": "work", "command": command}]);
    }
    if kind == Kind::Preemptible {
        body["use_requeue"] = true.into();
        body["resources"] =
            json!({"num_gpus": 8, "max_num_gpus_per_node": 8, "cpus_per_task": 64, "time_hours": 0.2});
        body["backend_details"] = json!({"backend_type": "slurm", "partition": "scavenge"});
    }
    body
}

fn training(rng: &mut StdRng, id: Uuid, notes: &str) -> Value {
    json!({
        "id": id, "image": "/lustre/images/tao-toolkit.sqsh", "network_arch": "classification_pyt", "action": "train",
        "specs": {
            "train": {"num_epochs": rng.random_range(2..8)},
            "sandbox": {"epoch_seconds": rng.random_range(5..20_u32).div_euclid(10).max(1), "notes": notes},
        },
        "container": {"mounts": ["/lustre", "/home/tao/chaos"]},
        "use_requeue": rng.random_bool(0.7),
        "resources": {"num_gpus": 1, "cpus_per_task": 1, "time_hours": 0.2},
    })
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;

    use super::*;

    #[test]
    fn a_second_run_of_a_seed_has_the_same_jobs_with_other_ids() {
        let jobs = || {
            let mut rng = StdRng::seed_from_u64(7);
            (0..50).map(|_| plan(&mut rng, "run", None)).collect::<Vec<_>>()
        };
        for (one, other) in jobs().iter().zip(jobs()) {
            assert_ne!(one.id, other.id);
            assert_eq!((one.kind, one.action), (other.kind, other.action));
        }
    }
}
