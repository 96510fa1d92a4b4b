//! One job as squeue and sacct print it.

use crate::{ExitCode, SlurmJobId, SlurmState, time::timestamp::parse as time};

/// The longest text of a column, in characters: reasons and node lists are untrusted.
const COLUMN: usize = 1000;

/// A job in the queue: `squeue -o '%A|%T|%j|%V|%S|%e|%P|%N|%r'`. A malformed or missing column is `None` or empty. The id,
/// the state and the name come first, so that they are complete in a cut row.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct QueueRow {
    /// Its id.
    pub id: SlurmJobId,
    /// Its state.
    pub state: SlurmState,
    /// Slurm's reason why it is pending or failed, with spaces, commas and colons.
    pub reason: String,
    /// Its nodes, as a range: `node[01-04]`. After a node failure, the nodes that it had.
    pub nodes: String,
    /// When it was submitted or requeued, in seconds since 1970. Malformed times are `None`.
    pub submit: Option<i64>,
    /// When it started or is expected to start. `None` for a job that ended without a node: Slurm then prints the time of
    /// its end (22.05, and 24.11 in some cases).
    pub start: Option<i64>,
    /// When it ended, or will end at the latest.
    pub end: Option<i64>,
    /// Its partition, or all that it may run in.
    pub partition: String,
    /// Its name. Another user's name may be cut, and has `?` instead of `|`.
    pub name: String,
}

/// The latest run of a job in accounting: `sacct -X -o JobIDRaw,State,ExitCode,JobName,Start,End,NodeList,Reason`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountingRow {
    /// Its id.
    pub id: SlurmJobId,
    /// Its state. After a requeue this may be the end of the run before (22.05).
    pub state: SlurmState,
    /// The exit code of the batch script, if it is known.
    pub exit_code: Option<ExitCode>,
    /// The last pending reason.
    pub reason: String,
    /// When it started, in seconds since 1970. `None` for a job that never had a node, although 22.05 prints a time.
    pub start: Option<i64>,
    /// When it ended.
    pub end: Option<i64>,
    /// Its nodes; empty if it never had any, which sacct prints as `None assigned`.
    pub nodes: String,
    /// Its name.
    pub name: String,
    /// The id of the user who canceled it; `None` if it was Slurm, or if it was not canceled.
    pub canceled_by: Option<u32>,
    /// The run before, if Slurm has requeued the job.
    pub before: Option<PastRun>,
}

/// An earlier run of a job in accounting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PastRun {
    /// Whether it ended because of a requeue (state `REQUEUED`).
    pub was_requeued: bool,
    /// When it started, in seconds since 1970.
    pub start: Option<i64>,
    /// When it ended.
    pub end: Option<i64>,
}

impl QueueRow {
    /// The signal that ended it, if the reason names it: `RaisedSignal:9(Killed)` (24.11).
    pub fn raised_signal(&self) -> Option<ExitCode> {
        let (signal, _) = self.reason.strip_prefix("RaisedSignal:")?.split_once('(')?;
        Some(ExitCode { code: 0, signal: signal.parse().ok()? })
    }

    /// Parses a row with at least the id, the state and the name.
    pub fn read(row: &str) -> Option<Self> {
        let mut fields = row.splitn(9, '|');
        let id = fields.next()?.parse().ok()?;
        let Ok(state) = fields.next()?.parse::<SlurmState>();
        let name = column(fields.next()?);
        let mut next = || fields.next().unwrap_or_default();
        let (submit, start, end) = (time(next()), time(next()), time(next()));
        let (partition, nodes, reason) = (column(next()), column(next()), column(next()));
        let start = start.filter(|_| !nodes.is_empty() || state.is_active());
        Some(Self { id, state, reason, nodes, submit, start, end, partition, name })
    }
}

impl AccountingRow {
    /// Parses a row with at least the first four columns, separated by the control character US.
    pub fn read(row: &str) -> Option<Self> {
        let mut fields = row.splitn(8, '\u{1f}');
        let id = fields.next()?.parse().ok()?;
        let state = fields.next()?;
        let canceled_by = state.strip_prefix("CANCELLED by ").and_then(|user| user.trim().parse().ok());
        let Ok(state) = state.parse::<SlurmState>();
        let exit_code = ExitCode::from_column(fields.next()?).ok().flatten();
        let name = column(fields.next()?);
        let mut next = || fields.next().unwrap_or_default();
        let (start, end) = (time(next()), time(next()));
        let nodes = next();
        let nodes = column(if nodes == "None assigned" { "" } else { nodes });
        let start = start.filter(|_| !nodes.is_empty());
        let reason = column(next());
        Some(Self { id, state, exit_code, reason, start, end, nodes, name, canceled_by, before: None })
    }

    /// The same run, as an earlier one.
    pub fn as_past_run(&self) -> PastRun {
        PastRun { was_requeued: self.state == SlurmState::Requeued, start: self.start, end: self.end }
    }
}

fn column(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(COLUMN).collect()
}

#[cfg(test)]
#[path = "rows_tests.rs"]
mod tests;
