//! Jobs of Slurm that run without a process: a thousand batch scripts with their steps are more than two processors bear, while for
//! who asks the queue there is no difference.

use std::fmt::Write as _;

use anyhow::{Context, ensure};

use crate::sandbox::Sandbox;

/// Each processor of it is given to eight jobs at a time, so 3072 fit; a job that asks for no memory would get all of its node.
const PARTITION: [&str; 6] = [
    "partitionname=bench-crowd",
    "nodes=all",
    "oversubscribe=force:8",
    "defmempercpu=100",
    "lln=yes",
    "maxtime=60",
];

/// They end when this is dropped.
#[derive(Debug)]
pub(crate) struct Allocations<'a> {
    sandbox: &'a Sandbox,
    /// Name and id of each.
    pub(crate) jobs: Vec<(String, u64)>,
}

impl<'a> Allocations<'a> {
    /// One of each name, which must hold nothing that a shell would read otherwise.
    pub(crate) fn of(sandbox: &'a Sandbox, names: &[&str]) -> anyhow::Result<Self> {
        let mut allocations = Self { sandbox, jobs: Vec::new() };
        sandbox.admin(&[&["scontrol", "create"], &PARTITION[..]].concat())?;
        let allocate = "salloc --no-shell --quiet -p bench-crowd -n 1 -c 1 -t 60 -J";
        // A text of some hundred names is as long as one word of a command may be.
        for some in names.chunks(500) {
            sandbox.login(&format!(
                "printf '%s\\n' {} | xargs -P 4 -n 1 {allocate} >/dev/null 2>&1",
                some.join(" ")
            ))?;
        }
        let running =
            sandbox.admin(&["squeue", "-h", "-t", "running", "-p", "bench-crowd", "-o", "%A %j"])?;
        for line in running.lines() {
            let (id, name) = line.split_once(' ').context("a row of the queue")?;
            allocations.jobs.push((name.to_owned(), id.parse()?));
        }
        ensure!(allocations.jobs.len() == names.len(), "{} of {} run", allocations.jobs.len(), names.len());
        Ok(allocations)
    }

    /// The rows of a `values` list of SQL.
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
