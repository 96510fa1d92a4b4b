//! Who has worked how much on this machine, by the names of programs. What begins and ends in between counts for whoever waited
//! for it.

use std::{fs, time::Duration};

use crate::process::{Times, Usage};

/// Daemons of the sandbox's cluster; the last is the database of its accounting.
const OF_SLURM: [&str; 5] = ["slurmctld", "slurmscriptd", "slurmdbd", "munged", "mariadbd"];

/// Processor time since each of them began.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Shares {
    /// The service's database.
    pub(crate) postgres: Duration,
    /// sshd and all that it was told to run: our programs, and the commands of Slurm in them.
    pub(crate) login: Duration,
    pub(crate) slurm: Duration,
    /// This program, which makes the load.
    pub(crate) load: Duration,
}

impl Shares {
    pub(crate) fn take() -> anyhow::Result<Self> {
        let mut shares = Self { load: Usage::own()?.cpu, ..Self::default() };
        for process in fs::read_dir("/proc")?.flatten() {
            // One that has ended meanwhile has been counted by whoever waited for it.
            let Some((name, times)) =
                fs::read_to_string(process.path().join("stat")).ok().and_then(|stat| Times::parse(&stat))
            else {
                continue;
            };
            match name.as_str() {
                // A connection's process that has ended is with the first of them, which waited for it.
                "postgres" => shares.postgres += times.own + times.of_ended_children,
                // A session's children are others of this name.
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
