//! CPU time on this machine by program name. A process that starts and ends between two measurements counts for its parent, which
//! waited for it.

use std::{fs, time::Duration};

use crate::process::{Times, Usage};

/// Daemons of the sandbox's cluster; the last is the accounting database.
const OF_SLURM: [&str; 5] = ["slurmctld", "slurmscriptd", "slurmdbd", "munged", "mariadbd"];

/// CPU time since each program started.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Shares {
    /// The service's database.
    pub(crate) postgres: Duration,
    /// sshd and what it runs: our programs and their Slurm commands.
    pub(crate) login: Duration,
    pub(crate) slurm: Duration,
    /// This program, the load generator.
    pub(crate) load: Duration,
}

impl Shares {
    pub(crate) fn take() -> anyhow::Result<Self> {
        let mut shares = Self { load: Usage::own()?.cpu, ..Self::default() };
        for process in fs::read_dir("/proc")?.flatten() {
            // A process that has ended meanwhile is counted for its parent.
            let Some((name, times)) =
                fs::read_to_string(process.path().join("stat")).ok().and_then(|stat| Times::parse(&stat))
            else {
                continue;
            };
            match name.as_str() {
                // The process of an ended connection is counted for the first one, its parent.
                "postgres" => shares.postgres += times.own + times.of_ended_children,
                // The children of a session have the same name.
                "sshd" | "sshd-session" => shares.login += times.own + times.of_ended_children,
                name if OF_SLURM.contains(&name) => shares.slurm += times.own,
                _ => {}
            }
        }
        Ok(shares)
    }

    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            postgres: self.postgres.saturating_sub(before.postgres),
            login: self.login.saturating_sub(before.login),
            slurm: self.slurm.saturating_sub(before.slurm),
            load: self.load.saturating_sub(before.load),
        }
    }
}
