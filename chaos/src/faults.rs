//! The catalogue of faults: each with its group, its duration and its weight.

use std::ops::Range;

use anyhow::bail;

/// What a fault does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Act {
    /// Turns faults of the sandbox on for some time.
    Sandbox(&'static [&'static str]),
    /// Kills a process of the service with SIGKILL and restarts it after some time.
    Kill(usize),
    /// Suspends a process of the service with SIGSTOP for some time.
    Freeze(usize),
    /// Requeues one of our Slurm jobs.
    Requeue,
    /// Submits a job of higher priority that takes all nodes for a moment.
    Preempt,
    /// Truncates a status.json that is being written.
    TruncateStatus,
}

#[derive(Debug, Clone)]
pub(crate) struct Fault {
    pub(crate) name: &'static str,
    pub(crate) act: Act,
    /// Two faults of one group are never on at the same time: one would undo the other.
    pub(crate) group: &'static str,
    pub(crate) seconds: Range<f64>,
    pub(crate) weight: u32,
}

const fn fault(name: &'static str, act: Act, group: &'static str, seconds: Range<f64>, weight: u32) -> Fault {
    Fault { name, act, group, seconds, weight }
}

/// All faults. Workers are suspended for longer than their leases last.
const ALL: [Fault; 35] = [
    fault("kill API", Act::Kill(0), "api", 0.1..4.0, 3),
    fault("freeze API", Act::Freeze(0), "api", 3.0..12.0, 1),
    fault("kill worker 1", Act::Kill(1), "worker 1", 0.1..8.0, 4),
    fault("kill worker 2", Act::Kill(2), "worker 2", 0.1..8.0, 4),
    fault("freeze worker 1", Act::Freeze(1), "worker 1", 11.0..18.0, 3),
    fault("freeze worker 2", Act::Freeze(2), "worker 2", 11.0..18.0, 3),
    fault("cut login1", Act::Sandbox(&["login1-cut"]), "login", 0.0..0.1, 3),
    fault("cut login2", Act::Sandbox(&["login2-cut"]), "login", 0.0..0.1, 2),
    fault("login1 down", Act::Sandbox(&["login1-stopped"]), "login", 2.0..15.0, 2),
    fault("login2 down", Act::Sandbox(&["login2-stopped"]), "login", 2.0..15.0, 1),
    fault("login1 frozen", Act::Sandbox(&["login1-frozen"]), "login", 3.0..20.0, 2),
    fault("login2 frozen", Act::Sandbox(&["login2-frozen"]), "login", 3.0..20.0, 1),
    fault("both logins down", Act::Sandbox(&["login1-stopped", "login2-stopped"]), "login", 2.0..10.0, 1),
    fault("both logins frozen", Act::Sandbox(&["login1-frozen", "login2-frozen"]), "login", 3.0..15.0, 1),
    fault("few sessions", Act::Sandbox(&["sshd-few-sessions"]), "login", 5.0..20.0, 1),
    fault("noisy login", Act::Sandbox(&["login-noise"]), "login", 5.0..20.0, 1),
    fault("files late", Act::Sandbox(&["files-late"]), "login", 10.0..30.0, 2),
    fault("slurmctld stopped", Act::Sandbox(&["slurmctld-stopped"]), "slurm", 1.0..15.0, 2),
    fault("slurmctld killed", Act::Sandbox(&["slurmctld-killed"]), "slurm", 0.1..10.0, 2),
    fault("slurmctld frozen", Act::Sandbox(&["slurmctld-frozen"]), "slurm", 3.0..25.0, 3),
    fault("slurmctld slow", Act::Sandbox(&["slurmctld-slow"]), "slurm", 5.0..25.0, 2),
    fault("node killed", Act::Sandbox(&["node01-dead"]), "slurm", 0.5..20.0, 2),
    fault("two nodes killed", Act::Sandbox(&["node02-dead", "node03-dead"]), "slurm", 0.5..20.0, 1),
    fault("requeue", Act::Requeue, "slurm", 0.0..0.1, 4),
    fault("preemption", Act::Preempt, "slurm", 0.0..0.1, 3),
    fault("slurmdbd down", Act::Sandbox(&["slurmdbd-stopped"]), "accounting", 2.0..20.0, 1),
    fault("slurmdbd killed", Act::Sandbox(&["slurmdbd-killed"]), "accounting", 0.5..10.0, 1),
    fault("slurmdbd frozen", Act::Sandbox(&["slurmdbd-frozen"]), "accounting", 3.0..20.0, 1),
    fault("slurmdbd slow", Act::Sandbox(&["slurmdbd-slow"]), "accounting", 5.0..25.0, 1),
    fault("sbatch killed", Act::Sandbox(&["sbatch-killed"]), "sbatch", 1.0..6.0, 4),
    fault("sbatch slow", Act::Sandbox(&["sbatch-slow"]), "sbatch", 3.0..15.0, 2),
    fault("sbatch rate-limited", Act::Sandbox(&["sbatch-rate-limited"]), "sbatch", 2.0..12.0, 2),
    fault("disk full", Act::Sandbox(&["job-dir-full"]), "disk", 2.0..10.0, 2),
    fault("Postgres restarted", Act::Sandbox(&["postgres-killed"]), "postgres", 0.1..8.0, 2),
    fault("status.json truncated", Act::TruncateStatus, "status", 0.0..0.1, 3),
];

/// The faults with these names, or all faults.
pub(crate) fn chosen(names: &[String]) -> anyhow::Result<Vec<Fault>> {
    if let Some(unknown) = names.iter().find(|name| ALL.iter().all(|fault| fault.name != name.as_str())) {
        let known: Vec<&str> = ALL.iter().map(|fault| fault.name).collect();
        bail!("unknown fault {unknown:?}; the faults are: {}", known.join(", "));
    }
    Ok(ALL
        .iter()
        .filter(|fault| names.is_empty() || names.iter().any(|name| name == fault.name))
        .cloned()
        .collect())
}
