//! The truth table: what the cluster shows of one job, against what the service says of it. Pure: no clock, no cluster.

use crate::jobs::Kind;

/// One execution, as the job itself noted it outside of its results.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Run {
    pub(crate) slurm_id: u64,
    /// A controller that was killed may give one id to two attempts.
    pub(crate) attempt: u32,
    pub(crate) restart: u32,
    pub(crate) began: f64,
    /// When it last said that it was at it; twice a second, a training at each of its epochs.
    pub(crate) beat: f64,
    /// Its exit code and when, if it came to its end.
    pub(crate) ended: Option<(i32, f64)>,
}

/// How a batch script ended, as it says itself: the last of an attempt.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Mark {
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
    /// Which attempt, from the job's name.
    pub(crate) attempt: u32,
    pub(crate) state: String,
    pub(crate) ended: Option<f64>,
    /// Its script has found that it must not begin: this is no end of a run.
    pub(crate) stopped: bool,
}

/// What a script returns that was ended by SIGTERM.
const ENDED_BY_TERM: i32 = 143;

/// All that is known of one job.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) kind: Kind,
    pub(crate) cancel_sent: Option<f64>,
    /// None if the service does not know it.
    pub(crate) told: Option<Told>,
    pub(crate) runs: Vec<Run>,
    pub(crate) rows: Vec<Row>,
    /// What the batch scripts of its attempts left as they ended.
    pub(crate) marks: Vec<Mark>,
    /// Slurm jobs of it that are still in the queue.
    pub(crate) queued: Vec<u64>,
    /// When there was no room on the disk, and whether the controller ever lost its memory.
    pub(crate) disk_full: Vec<(f64, f64)>,
    pub(crate) controller_killed: bool,
}

/// What the service says.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    pub(crate) status: String,
    pub(crate) message: String,
    pub(crate) finished: Option<f64>,
    /// The Slurm id of each attempt, as far as it has one.
    pub(crate) attempts: Vec<(u32, Option<u64>)>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Finding {
    /// The work was done, or begun, twice without need.
    Duplicate(String),
    /// Accepted, and unknown or never run to an end.
    Lost(String),
    Wrong(String),
    Stuck(String),
    /// On the cluster after its job had ended.
    Orphan(String),
    /// It failed with the cluster, and the service says so: nothing of ours.
    GivenUp(String),
    /// Slurm had an attempt twice, and the second copy did not run.
    SecondCopy(String),
}

/// Accounting knows whole seconds.
const SLACK: f64 = 2.0;
/// Trainings and marks tell whole seconds, too, which are those before.
const BEAT: f64 = 1.1;

impl Case {
    pub(crate) fn judge(&self) -> Vec<Finding> {
        let mut found = self.duplicates();
        if let Some(ending) = self.ending() {
            found.push(ending);
        }
        if self.told.as_ref().is_some_and(|told| crate::ledger::is_final(&told.status))
            && !self.queued.is_empty()
        {
            found.push(Finding::Orphan(format!("Slurm still has {:?}", self.queued)));
        }
        found
    }

    /// How long the truth took from the cluster to the service.
    pub(crate) fn seconds_to_truth(&self) -> Option<f64> {
        let finished = self.told.as_ref()?.finished?;
        let noted = self.runs.iter().filter_map(|run| Some(run.ended?.1));
        let accounted = self.rows.iter().filter_map(|row| row.ended);
        let truth = noted.chain(accounted).fold(f64::MIN, f64::max);
        (truth > 0.0).then(|| (finished - truth).max(0.0))
    }

    /// What Slurm says of a run. Its rows of one job are one for each of its runs, and one for a wait that was ended: the first
    /// end after the run began is its own.
    fn row_of(&self, run: &Run) -> Option<&Row> {
        let rows = self.rows.iter().filter(|row| (row.slurm_id, row.attempt) == (run.slurm_id, run.attempt));
        let later =
            rows.filter_map(|row| Some((row.ended?, row)).filter(|(end, _)| *end + SLACK > run.began));
        later.min_by(|(one, _), (other, _)| one.total_cmp(other)).map(|(_, row)| row)
    }

    /// Runs that came to their end with this code, and that Slurm does not call broken off after it.
    fn completed(&self, code: i32) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(move |run| {
            run.ended.is_some_and(|(own, _)| own == code)
                && self.row_of(run).is_none_or(|row| matches!(row.state.as_str(), "COMPLETED" | "FAILED"))
        })
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
                    "done as Slurm job {}, and again as {}",
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

    /// The last moment of which it is known that a run was there. Neither accounting nor a queue knows that: a controller that was
    /// killed takes what it has ended, or what has lost its node, for alive, and ends it again, or starts it again in vain.
    fn last_sign(&self, run: &Run) -> f64 {
        let own = run.ended.map(|(_, at)| at).or_else(|| self.mark_of(run)).unwrap_or(run.began);
        own.max(run.beat)
    }

    fn mark_of(&self, run: &Run) -> Option<f64> {
        let is_its = |mark: &&Mark| {
            (mark.slurm_id, mark.attempt, mark.restart) == (run.slurm_id, run.attempt, run.restart)
        };
        self.marks.iter().find(is_its).map(|mark| mark.at)
    }

    /// The latest that a run may have ended.
    fn end_of(&self, run: &Run) -> Option<f64> {
        let row = || self.row_of(run).filter(|row| !row.stopped);
        run.ended.map(|(_, at)| at).or_else(|| self.mark_of(run)).or_else(|| row()?.ended)
    }

    fn ending(&self) -> Option<Finding> {
        let Some(told) = &self.told else {
            return Some(Finding::Lost("accepted, and the service does not know it".to_owned()));
        };
        match told.status.as_str() {
            "Done" => self.done(),
            "Error" => self.error(&told.message),
            "Canceled" => self.canceled(&told.message),
            status => Some(Finding::Stuck(format!("{status}: {}", told.message))),
        }
    }

    fn done(&self) -> Option<Finding> {
        if !self.runs.iter().any(|run| run.ended.is_some_and(|(code, _)| code == 0)) {
            return Some(Finding::Wrong("Done, and its work was never done".to_owned()));
        }
        let newest = self.told.as_ref()?.attempts.iter().map(|(number, _)| *number).max();
        let last = self.marks.iter().find(|mark| Some(mark.attempt) == newest);
        // A script that is ended from outside says so, while its program may get to its end and say SUCCESS.
        let was_done = |mark: &&Mark| {
            let is_its = |run: &&Run| {
                (run.slurm_id, run.attempt, run.restart) == (mark.slurm_id, mark.attempt, mark.restart)
            };
            let mut its = self.runs.iter().filter(is_its);
            self.kind == Kind::Training
                && mark.code == ENDED_BY_TERM
                && its.any(|run| run.ended.is_some_and(|(code, at)| code == 0 && at < mark.at + 1.0))
        };
        let last = last.filter(|mark| !was_done(mark));
        let failed = last.map(|mark| mark.code).filter(|code| *code != 0);
        failed.map(|code| Finding::Wrong(format!("Done, and its exit mark says {code}")))
    }

    fn error(&self, message: &str) -> Option<Finding> {
        let first_line = message.lines().next().unwrap_or_default();
        if self.kind == Kind::Failing
            && self.runs.iter().any(|run| run.ended.is_some_and(|(code, _)| code != 0))
        {
            return None;
        }
        if self.kind.ends_well() && self.completed(0).next().is_some() {
            return Some(Finding::Wrong(format!("Error, and its work was done: {first_line}")));
        }
        // It did fail, and whoever has canceled it does not want it tried again.
        if self.cancel_sent.is_some()
            && self.rows.iter().any(|row| matches!(row.state.as_str(), "FAILED" | "NODE_FAIL"))
        {
            return None;
        }
        let lost_by_slurm = self.controller_killed && message.contains("no longer list the job");
        let worn_out = message.contains("different nodes") || message.contains("retries are used");
        let on_a_full_disk = self.runs.iter().any(|run| {
            let end = self.end_of(run).unwrap_or(run.began + 120.0) + SLACK;
            self.disk_full.iter().any(|(from, to)| *from < end && *to > run.began - SLACK)
        });
        // It could not even note that it had begun.
        let unnoted = self.rows.iter().filter(|row| self.runs.iter().all(|run| run.slurm_id != row.slurm_id));
        let speechless = unnoted
            .filter_map(|row| row.ended)
            .any(|end| self.disk_full.iter().any(|(from, to)| (from - SLACK..=to + SLACK).contains(&end)));
        if lost_by_slurm || worn_out || on_a_full_disk || speechless {
            return Some(Finding::GivenUp(first_line.to_owned()));
        }
        Some(Finding::Wrong(format!("Error, and nothing was wrong with it: {first_line}")))
    }

    fn canceled(&self, message: &str) -> Option<Finding> {
        let Some(asked) = self.cancel_sent else {
            return Some(Finding::Wrong(format!("Canceled, and nobody asked for it: {message}")));
        };
        let before = self.completed(0).find(|run| run.ended.is_some_and(|(_, at)| at + SLACK < asked))?;
        let id = before.slurm_id;
        Some(Finding::Wrong(format!(
            "Canceled, and its work was done before anybody asked, as Slurm job {id}"
        )))
    }
}

#[cfg(test)]
mod tests;
