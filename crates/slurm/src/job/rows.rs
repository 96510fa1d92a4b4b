//! One job as squeue and sacct print it.

use crate::{ExitCode, SlurmJobId, SlurmState, time::timestamp::parse as time};

/// The longest text kept of a column, in characters: reasons and node lists are people's text, and hostile.
const COLUMN: usize = 1000;

/// A job in the queue: `squeue -o '%A|%T|%j|%V|%S|%e|%P|%N|%r'`. What was not understood, or was cut off, is `None` or
/// empty: the id, the state and the name come first.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct QueueRow {
    /// Its id.
    pub id: SlurmJobId,
    /// Its state.
    pub state: SlurmState,
    /// Why it waits or how it failed, as Slurm says it: with spaces, commas and colons.
    pub reason: String,
    /// Its nodes, as a range: `node[01-04]`. After a node failure, those it had.
    pub nodes: String,
    /// When it was submitted, or requeued, in seconds since 1970. Times that were not understood are `None` too.
    pub submit: Option<i64>,
    /// When it started or is expected to. `None` for what ended without ever having had a node: what is printed then is
    /// the time of its end (22.05, and 24.11 for some).
    pub start: Option<i64>,
    /// When it ended, or will at the latest.
    pub end: Option<i64>,
    /// Its partition, or all it may run in.
    pub partition: String,
    /// Its name. One that is not ours may be cut, and has `?` where `|` was.
    pub name: String,
}

/// A job in the accounting: `sacct -X -o JobIDRaw,State,ExitCode,JobName,Start,End,NodeList,Reason`, its latest run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountingRow {
    /// Its id.
    pub id: SlurmJobId,
    /// Its state. After a requeue this may be the end of the run before (22.05).
    pub state: SlurmState,
    /// What the batch script returned, if it came to that and was understood.
    pub exit_code: Option<ExitCode>,
    /// The last reason it had to wait for.
    pub reason: String,
    /// When it started, in seconds since 1970. `None` for what never had a node, though 22.05 prints a time.
    pub start: Option<i64>,
    /// When it ended.
    pub end: Option<i64>,
    /// Its nodes; empty if it never had any, which is printed as `None assigned`.
    pub nodes: String,
    /// Its name.
    pub name: String,
    /// The user id of whoever canceled it; none if that was Slurm itself, or if nobody did.
    pub canceled_by: Option<u32>,
    /// The run before, if Slurm has put the job back into its queue.
    pub before: Option<PastRun>,
}

/// A run that was not a job's last, in the accounting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PastRun {
    /// Whether it ended because the job was put back into the queue, and for no other reason that has a name.
    pub was_requeued: bool,
    /// When it started, in seconds since 1970.
    pub start: Option<i64>,
    /// When it ended.
    pub end: Option<i64>,
}

impl QueueRow {
    /// The signal that ended it, where the reason says so: `RaisedSignal:9(Killed)` (24.11).
    pub fn raised_signal(&self) -> Option<ExitCode> {
        let (signal, _) = self.reason.strip_prefix("RaisedSignal:")?.split_once('(')?;
        Some(ExitCode { code: 0, signal: signal.parse().ok()? })
    }

    /// Reads a row of which at least id, state and name are there.
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
    /// Reads a row whose columns are separated by the control character US, and of which at least the first four are
    /// there.
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

    /// What is left of it once the job has another.
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
