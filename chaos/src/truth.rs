//! The truth table: compares the facts on the cluster with the service's report of one job. Pure: no clock, no cluster.

use crate::jobs::Kind;

/// One execution, as the job itself recorded it outside of its results.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Run {
    pub(crate) slurm_id: u64,
    /// The attempt; after the controller was killed, two attempts may have one Slurm id.
    pub(crate) attempt: u32,
    pub(crate) restart: u32,
    pub(crate) began: f64,
    /// Its last sign of life; a command writes one twice a second, a training at each epoch.
    pub(crate) beat: f64,
    /// Its exit code and the time, if it ran to its end.
    pub(crate) ended: Option<(i32, f64)>,
}

/// The exit record of an attempt, written by its batch script.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ExitRecord {
    pub(crate) attempt: u32,
    pub(crate) slurm_id: u64,
    pub(crate) restart: u32,
    pub(crate) code: i32,
    pub(crate) at: f64,
}

/// One row of accounting.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    pub(crate) slurm_id: u64,
    /// The attempt, from the job's name.
    pub(crate) attempt: u32,
    pub(crate) state: String,
    pub(crate) ended: Option<f64>,
    /// The script found that it must not start, so this is not the end of a run.
    pub(crate) stopped: bool,
}

/// The exit code of a script that was stopped by SIGTERM.
const STOPPED_BY_SIGTERM: i32 = 143;
/// The exit code of a script that has reached its own limit, whatever its program returns then.
const AT_OWN_LIMIT: i32 = 124;

/// All facts about one job.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) kind: Kind,
    pub(crate) cancel_sent: Option<f64>,
    /// `None` if the service does not know the job.
    pub(crate) reported: Option<Reported>,
    pub(crate) runs: Vec<Run>,
    pub(crate) rows: Vec<Row>,
    /// The exit records of its attempts.
    pub(crate) exit_records: Vec<ExitRecord>,
    /// Its Slurm jobs that are still in the queue.
    pub(crate) queued: Vec<u64>,
    /// The periods with a full disk, and whether the controller was ever killed and lost its state.
    pub(crate) disk_full: Vec<(f64, f64)>,
    pub(crate) controller_killed: bool,
    /// The job that it needs, if that is no array.
    pub(crate) needed: Option<Needed>,
}

/// A job that another one needs.
#[derive(Debug, Clone)]
pub(crate) struct Needed {
    status: String,
    /// When its work was done.
    done_at: Option<f64>,
}

impl Needed {
    pub(crate) fn of(case: &Case) -> Self {
        let ends =
            case.runs.iter().filter_map(|run| run.ended).filter(|(code, _)| *code == 0).map(|(_, at)| at);
        Self {
            status: case.reported.as_ref().map(|reported| reported.status.clone()).unwrap_or_default(),
            done_at: ends.reduce(f64::min),
        }
    }
}

/// What the service reports.
#[derive(Debug, Clone)]
pub(crate) struct Reported {
    pub(crate) status: String,
    pub(crate) message: String,
    pub(crate) finished: Option<f64>,
    /// The Slurm id of each attempt, if it has one.
    pub(crate) attempts: Vec<(u32, Option<u64>)>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Finding {
    /// The work was done or started twice without need.
    Duplicate(String),
    /// Accepted, but unknown to the service.
    Lost(String),
    Wrong(String),
    Stuck(String),
    /// On the cluster after its job had finished.
    Orphan(String),
    /// It failed because of the cluster, and the service reports that: not a defect of the service.
    GivenUp(String),
    /// Slurm had two copies of an attempt, and the second one did not run.
    SecondCopy(String),
}

/// Accounting has whole seconds.
const SLACK: f64 = 2.0;
/// Trainings and exit records round down to whole seconds.
const BEAT: f64 = 1.1;

impl Case {
    pub(crate) fn judge(&self) -> Vec<Finding> {
        let mut found = self.duplicates();
        if let Some(ending) = self.ending() {
            found.push(ending);
        }
        found.extend(self.too_early());
        if self.reported.as_ref().is_some_and(|reported| crate::ledger::is_final(&reported.status))
            && !self.queued.is_empty()
        {
            found.push(Finding::Orphan(format!("Slurm still has {:?}", self.queued)));
        }
        found
    }

    /// It began before the job that it needs was done.
    fn too_early(&self) -> Option<Finding> {
        let needed = self.needed.as_ref()?;
        let began = self.runs.iter().map(|run| run.began).reduce(f64::min)?;
        match needed.done_at {
            Some(at) if at <= began + SLACK => None,
            Some(_) => Some(Finding::Wrong("it began before the job that it needs was done".to_owned())),
            // Its end may be unrecorded, for instance on a full disk.
            None if needed.status == "Done" => None,
            None => Some(Finding::Wrong(format!("it began, and the job that it needs is {}", needed.status))),
        }
    }

    /// The time from the end on the cluster to the final status in the service.
    pub(crate) fn detection_delay(&self) -> Option<f64> {
        let finished = self.reported.as_ref()?.finished?;
        let recorded = self.runs.iter().filter_map(|run| Some(run.ended?.1));
        let accounted = self.rows.iter().filter_map(|row| row.ended);
        let truth = recorded.chain(accounted).fold(f64::MIN, f64::max);
        (truth > 0.0).then(|| (finished - truth).max(0.0))
    }

    /// The accounting row of a run. A job has one row per run, and one per ended wait in the queue: the first end after the run
    /// started belongs to it.
    fn row_of(&self, run: &Run) -> Option<&Row> {
        let rows = self.rows.iter().filter(|row| (row.slurm_id, row.attempt) == (run.slurm_id, run.attempt));
        let later =
            rows.filter_map(|row| Some((row.ended?, row)).filter(|(end, _)| *end + SLACK > run.began));
        later.min_by(|(one, _), (other, _)| one.total_cmp(other)).map(|(_, row)| row)
    }

    /// Runs that ended with this exit code, and that were not interrupted at that moment or, as Slurm reports, after it.
    fn completed(&self, code: i32) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(move |run| {
            run.ended.is_some_and(|(own, at)| own == code && !self.was_stopped_at(run, at))
                && match self.row_of(run) {
                    Some(row) => matches!(row.state.as_str(), "COMPLETED" | "FAILED"),
                    // A controller was killed and has forgotten the run. Before it ended the script, srun may wait for it.
                    None => !(self.controller_killed && self.stop_of(run).is_some()),
                }
        })
    }

    /// Whether the script was stopped when its program was about to end: then that end does not count.
    fn was_stopped_at(&self, run: &Run, ended: f64) -> bool {
        self.stop_of(run).is_some_and(|record| ended > record.at - BEAT)
    }

    /// The record of a script that a signal or its own limit stopped.
    fn stop_of(&self, run: &Run) -> Option<&ExitRecord> {
        self.exit_record(run).filter(|record| matches!(record.code, STOPPED_BY_SIGTERM | AT_OWN_LIMIT))
    }

    fn duplicates(&self) -> Vec<Finding> {
        let mut found = Vec::new();
        for (at, run) in self.runs.iter().enumerate() {
            for other in &self.runs[at + 1..] {
                let both = (run.slurm_id, other.slurm_id);
                if (run.slurm_id, run.attempt) == (other.slurm_id, other.attempt) {
                    let first = if run.began < other.began { run } else { other };
                    let second = if run.began < other.began { other } else { run };
                    if run.restart == other.restart || second.began + BEAT < self.last_sign(first) {
                        found.push(Finding::Duplicate(format!("Slurm job {} ran twice", run.slurm_id)));
                    }
                } else if run.attempt == other.attempt {
                    let attempt = run.attempt;
                    found.push(Finding::Duplicate(format!(
                        "attempt {attempt} ran as the Slurm jobs {both:?}"
                    )));
                } else if other.began + BEAT < self.last_sign(run) {
                    found.push(Finding::Duplicate(format!("two attempts ran at one time: {both:?}")));
                }
            }
            let done = self.completed(0).any(|done| done == run);
            if done
                && let Some(later) =
                    self.runs.iter().find(|other| other.attempt != run.attempt && other.began > run.began)
            {
                found.push(Finding::Duplicate(format!(
                    "done as Slurm job {}, then again as {}",
                    run.slurm_id, later.slurm_id
                )));
            }
        }
        for row in &self.rows {
            let copies = self
                .rows
                .iter()
                .filter(|other| other.attempt == row.attempt && other.slurm_id > row.slurm_id);
            found.extend(copies.map(|copy| {
                Finding::SecondCopy(format!(
                    "attempt {} is {} and {}",
                    row.attempt, row.slurm_id, copy.slurm_id
                ))
            }));
        }
        found
    }

    /// The last time at which a run certainly existed. Neither accounting nor the queue knows it: a killed controller restarts with
    /// an old state. It takes an ended run, or one that lost its node, for a live one, and ends or starts it again.
    fn last_sign(&self, run: &Run) -> f64 {
        let own = run.ended.map(|(_, at)| at).or_else(|| self.recorded_exit(run)).unwrap_or(run.began);
        own.max(run.beat)
    }

    fn exit_record(&self, run: &Run) -> Option<&ExitRecord> {
        let is_its = |record: &&ExitRecord| {
            (record.slurm_id, record.attempt, record.restart) == (run.slurm_id, run.attempt, run.restart)
        };
        self.exit_records.iter().find(is_its)
    }

    fn recorded_exit(&self, run: &Run) -> Option<f64> {
        self.exit_record(run).map(|record| record.at)
    }

    /// The latest possible end of a run.
    fn end_of(&self, run: &Run) -> Option<f64> {
        let row = || self.row_of(run).filter(|row| !row.stopped);
        run.ended.map(|(_, at)| at).or_else(|| self.recorded_exit(run)).or_else(|| row()?.ended)
    }

    fn ending(&self) -> Option<Finding> {
        let Some(reported) = &self.reported else {
            return Some(Finding::Lost("accepted, but the service does not know it".to_owned()));
        };
        match reported.status.as_str() {
            "Done" => self.done(),
            "Error" => self.error(&reported.message),
            "Canceled" => self.canceled(&reported.message),
            status => Some(Finding::Stuck(format!("{status}: {}", reported.message))),
        }
    }

    fn done(&self) -> Option<Finding> {
        if !self.runs.iter().any(|run| run.ended.is_some_and(|(code, _)| code == 0)) {
            return Some(Finding::Wrong("Done, but its work was never done".to_owned()));
        }
        let newest = self.reported.as_ref()?.attempts.iter().map(|(number, _)| *number).max();
        let last = self.exit_records.iter().find(|record| Some(record.attempt) == newest);
        // A script that is stopped by a signal records it, while its program may still reach its end and report SUCCESS.
        let was_done = |record: &&ExitRecord| {
            let is_its = |run: &&Run| {
                (run.slurm_id, run.attempt, run.restart) == (record.slurm_id, record.attempt, record.restart)
            };
            let mut its = self.runs.iter().filter(is_its);
            self.kind == Kind::Training
                && record.code == STOPPED_BY_SIGTERM
                && its.any(|run| run.ended.is_some_and(|(code, at)| code == 0 && at < record.at + 1.0))
        };
        let last = last.filter(|record| !was_done(record));
        let failed = last.map(|record| record.code).filter(|code| *code != 0);
        failed.map(|code| Finding::Wrong(format!("Done, but its exit record has code {code}")))
    }

    fn error(&self, message: &str) -> Option<Finding> {
        let first_line = message.lines().next().unwrap_or_default();
        if self.kind == Kind::Failing
            && self.runs.iter().any(|run| run.ended.is_some_and(|(code, _)| code != 0))
        {
            return None;
        }
        if self.kind.succeeds() && self.completed(0).next().is_some() {
            return Some(Finding::Wrong(format!("Error, but its work was done: {first_line}")));
        }
        // It did fail, and a canceled job is not retried.
        if self.cancel_sent.is_some()
            && self.rows.iter().any(|row| matches!(row.state.as_str(), "FAILED" | "NODE_FAIL"))
        {
            return None;
        }
        let lost_by_slurm = self.controller_killed && message.contains("no longer list the job");
        let worn_out = message.contains("different nodes") || message.contains("are used");
        let on_a_full_disk = self.runs.iter().any(|run| {
            let end = self.end_of(run).unwrap_or(run.began + 120.0) + SLACK;
            self.disk_full.iter().any(|(from, to)| *from < end && *to > run.began - SLACK)
        });
        // The full disk may have prevented even its start record.
        let unrecorded =
            self.rows.iter().filter(|row| self.runs.iter().all(|run| run.slurm_id != row.slurm_id));
        let unrecorded_on_a_full_disk = unrecorded
            .filter_map(|row| row.ended)
            .any(|end| self.disk_full.iter().any(|(from, to)| (from - SLACK..=to + SLACK).contains(&end)));
        if lost_by_slurm || worn_out || on_a_full_disk || unrecorded_on_a_full_disk {
            return Some(Finding::GivenUp(first_line.to_owned()));
        }
        Some(Finding::Wrong(format!("Error without a reason: {first_line}")))
    }

    fn canceled(&self, message: &str) -> Option<Finding> {
        let is_skipped =
            self.needed.as_ref().is_some_and(|needed| needed.status != "Done") && self.runs.is_empty();
        if is_skipped || (self.kind == Kind::Needing && self.needed.is_none() && self.runs.is_empty()) {
            return None;
        }
        let Some(requested) = self.cancel_sent else {
            return Some(Finding::Wrong(format!("Canceled without a request: {message}")));
        };
        let before = self.completed(0).find(|run| run.ended.is_some_and(|(_, at)| at + SLACK < requested))?;
        let id = before.slurm_id;
        Some(Finding::Wrong(format!("Canceled, but its work was done before the request, as Slurm job {id}")))
    }
}

#[cfg(test)]
mod tests;
