//! Slurm jobs that run without a process. A thousand batch scripts with their steps would overload two cores; `squeue` shows no
//! difference.

use std::fmt::Write as _;

use anyhow::{Context, ensure};

use crate::sandbox::Sandbox;

/// Each CPU is shared by eight jobs, so 3072 jobs fit. Without a memory limit a job would get all memory of its node.
const PARTITION: [&str; 6] = [
    "partitionname=bench-crowd",
    "nodes=all",
    "oversubscribe=force:8",
    "defmempercpu=100",
    "lln=yes",
    "maxtime=60",
];

/// Running allocations; dropping this ends them.
#[derive(Debug)]
pub(crate) struct Allocations<'a> {
    sandbox: &'a Sandbox,
    /// The name and id of each job.
    pub(crate) jobs: Vec<(String, u64)>,
}

impl<'a> Allocations<'a> {
    /// Starts one allocation per name. The names must need no shell quoting.
    pub(crate) fn of(sandbox: &'a Sandbox, names: &[&str]) -> anyhow::Result<Self> {
        let mut allocations = Self { sandbox, jobs: Vec::new() };
        sandbox.admin(&[&["scontrol", "create"], &PARTITION[..]].concat())?;
        let allocate = "salloc --no-shell --quiet -p bench-crowd -n 1 -c 1 -t 60 -J";
        // One argument of a command is limited to some hundred names.
        for some in names.chunks(500) {
            sandbox.login(&format!(
                "printf '%s\\n' {} | xargs -P 4 -n 1 {allocate} >/dev/null 2>&1",
                some.join(" ")
            ))?;
        }
        let running =
            sandbox.admin(&["squeue", "-h", "-t", "running", "-p", "bench-crowd", "-o", "%A %j"])?;
        for line in running.lines() {
            let (id, name) = line.split_once(' ').context("cannot parse a row of squeue")?;
            allocations.jobs.push((name.to_owned(), id.parse()?));
        }
        ensure!(
            allocations.jobs.len() == names.len(),
            "{} of {} allocations run",
            allocations.jobs.len(),
            names.len()
        );
        Ok(allocations)
    }

    /// The allocations as a `values` list for SQL.
    pub(crate) fn values(&self) -> String {
        let mut values = String::new();
        for (name, id) in &self.jobs {
            // Writing to a String does not fail.
            let _ = write!(values, "{}('{name}', {id})", if values.is_empty() { "" } else { ", " });
        }
        values
    }
}

impl Drop for Allocations<'_> {
    fn drop(&mut self) {
        let _ = self.sandbox.clear();
        let _ = self.sandbox.admin(&["scontrol", "delete", PARTITION[0]]);
    }
}
