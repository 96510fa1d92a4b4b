//! The truth table: what the cluster shows of one job, against what the service says of it. Pure: no clock, no cluster.

use crate::jobs::Kind;

/// One execution, as the job itself noted it outside of its results.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Run {
    pub(crate) slurm_id: u64,
    pub(crate) restart: u32,
    pub(crate) began: f64,
    /// Its exit code and when, if it came to its end.
    pub(crate) ended: Option<(i32, f64)>,
}

/// One row of accounting.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    pub(crate) slurm_id: u64,
    /// Which attempt, from the job's name.
    pub(crate) attempt: u32,
    pub(crate) state: String,
    pub(crate) ended: Option<f64>,
}

/// All that is known of one job.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) kind: Kind,
    pub(crate) cancel_sent: Option<f64>,
    /// None if the service does not know it.
    pub(crate) told: Option<Told>,
    pub(crate) runs: Vec<Run>,
    pub(crate) rows: Vec<Row>,
    /// What the batch script of the newest attempt left as its exit code.
    pub(crate) exit_mark: Option<i32>,
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

    fn attempt_of(&self, slurm_id: u64) -> Option<u32> {
        let told =
            self.told.as_ref().and_then(|told| told.attempts.iter().find(|(_, id)| *id == Some(slurm_id)));
        told.map(|(attempt, _)| *attempt)
            .or_else(|| self.rows.iter().find(|row| row.slurm_id == slurm_id).map(|row| row.attempt))
    }

    /// What Slurm says of a run. Its rows of one job are one for each of its runs, and one for a wait that was ended: the first
    /// end after the run began is its own.
    fn row_of(&self, run: &Run) -> Option<&Row> {
        let rows = self.rows.iter().filter(|row| row.slurm_id == run.slurm_id);
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
                if run.slurm_id == other.slurm_id {
                    if run.restart == other.restart {
                        found.push(Finding::Duplicate(format!("Slurm job {} ran twice", run.slurm_id)));
                    }
                    continue;
                }
                let (one, two) = (self.attempt_of(run.slurm_id), self.attempt_of(other.slurm_id));
                if one == two {
                    let both = (run.slurm_id, other.slurm_id);
                    found.push(Finding::Duplicate(format!("attempt {one:?} ran as the Slurm jobs {both:?}")));
                } else if self.end_of(run).is_some_and(|end| other.began + SLACK < end) {
                    let both = (run.slurm_id, other.slurm_id);
                    found.push(Finding::Duplicate(format!("two attempts ran at one time: {both:?}")));
                }
            }
            let done = self.completed(0).any(|done| done == run);
            if done
                && let Some(later) =
                    self.runs.iter().find(|other| other.slurm_id != run.slurm_id && other.began > run.began)
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

    fn end_of(&self, run: &Run) -> Option<f64> {
        run.ended.map(|(_, at)| at).or_else(|| self.row_of(run)?.ended)
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
        let failed = self.exit_mark.filter(|code| *code != 0);
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
        // It did fail, and whoever has cancelled it does not want it tried again.
        if self.cancel_sent.is_some()
            && self.rows.iter().any(|row| matches!(row.state.as_str(), "FAILED" | "NODE_FAIL"))
        {
            return None;
        }
        let lost_by_slurm = self.controller_killed && message.contains("have lost the job");
        let worn_out = message.contains("different nodes") || message.contains("retries are used up");
        let on_a_full_disk = self.runs.iter().any(|run| {
            let end = self.end_of(run).unwrap_or(run.began + 120.0) + SLACK;
            self.disk_full.iter().any(|(from, to)| *from < end && *to > run.began - SLACK)
        });
        if lost_by_slurm || worn_out || on_a_full_disk {
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
mod tests {
    use super::*;

    fn run(slurm_id: u64, restart: u32, began: f64, ended: Option<(i32, f64)>) -> Run {
        Run { slurm_id, restart, began, ended }
    }

    fn row(slurm_id: u64, attempt: u32, state: &str, ended: f64) -> Row {
        Row { slurm_id, attempt, state: state.to_owned(), ended: Some(ended) }
    }

    fn case(kind: Kind, status: &str) -> Case {
        let attempts = vec![(1, Some(10))];
        let message = "What the service says.".to_owned();
        let told = Told { status: status.to_owned(), message, finished: Some(130.0), attempts };
        Case {
            kind,
            cancel_sent: None,
            told: Some(told),
            runs: vec![run(10, 0, 100.0, Some((0, 120.0)))],
            rows: vec![row(10, 1, "COMPLETED", 121.0)],
            exit_mark: Some(0),
            queued: Vec::new(),
            disk_full: Vec::new(),
            controller_killed: false,
        }
    }

    fn kinds(case: &Case) -> Vec<&'static str> {
        let name = |finding: &Finding| match finding {
            Finding::Duplicate(_) => "duplicate",
            Finding::Lost(_) => "lost",
            Finding::Wrong(_) => "wrong",
            Finding::Stuck(_) => "stuck",
            Finding::Orphan(_) => "orphan",
            Finding::GivenUp(_) => "given up",
            Finding::SecondCopy(_) => "second copy",
        };
        case.judge().iter().map(name).collect()
    }

    #[test]
    fn a_job_that_did_its_work_once_is_done() {
        let done = case(Kind::Short, "Done");
        assert!(kinds(&done).is_empty());
        assert!((done.seconds_to_truth().unwrap() - 9.0).abs() < 0.01);
        assert_eq!(kinds(&case(Kind::Short, "Error")), ["wrong"]);
        assert_eq!(kinds(&case(Kind::Short, "Canceled")), ["wrong"], "nobody asked");
        assert_eq!(kinds(&case(Kind::Short, "Running")), ["stuck"]);
        assert_eq!(kinds(&Case { told: None, ..done }), ["lost"]);
    }

    #[test]
    fn a_job_that_failed_by_itself_is_an_error_and_nothing_else() {
        let failed = |status: &str| Case {
            runs: vec![run(10, 0, 100.0, Some((3, 120.0)))],
            rows: vec![row(10, 1, "FAILED", 121.0)],
            exit_mark: Some(3),
            ..case(Kind::Failing, status)
        };
        assert!(kinds(&failed("Error")).is_empty());
        assert_eq!(kinds(&failed("Done")), ["wrong"]);
        assert_eq!(kinds(&Case { exit_mark: Some(3), ..case(Kind::Short, "Done") }), ["wrong"]);
    }

    #[test]
    fn a_job_that_failed_before_it_was_cancelled_may_say_so() {
        let failed = Case {
            runs: vec![run(10, 0, 100.0, None)],
            rows: vec![row(10, 1, "FAILED", 101.0)],
            exit_mark: Some(1),
            ..case(Kind::Broken, "Error")
        };
        assert_eq!(kinds(&failed), ["wrong"], "it is one that is tried again");
        assert!(kinds(&Case { cancel_sent: Some(110.0), ..failed }).is_empty());
    }

    #[test]
    fn done_needs_work_that_came_to_its_end() {
        assert_eq!(
            kinds(&Case { runs: vec![run(10, 0, 100.0, None)], ..case(Kind::Long, "Done") }),
            ["wrong"]
        );
        assert_eq!(kinds(&Case { runs: Vec::new(), ..case(Kind::Long, "Done") }), ["wrong"]);
    }

    #[test]
    fn a_cancellation_holds_for_what_was_not_done_before_it() {
        let asked = |at: f64| Case { cancel_sent: Some(at), ..case(Kind::Long, "Canceled") };
        assert_eq!(kinds(&asked(125.0)), ["wrong"]);
        assert!(kinds(&asked(119.0)).is_empty());
        assert!(kinds(&Case { runs: vec![run(10, 0, 100.0, None)], ..asked(125.0) }).is_empty());
    }

    #[test]
    fn an_attempt_runs_once() {
        let mut twice = case(Kind::Short, "Done");
        twice.runs.push(run(11, 0, 101.0, None));
        twice.rows.push(row(11, 1, "COMPLETED", 121.0));
        let found = kinds(&twice);
        assert!(found.contains(&"duplicate") && found.contains(&"second copy"), "{found:?}");
        twice.runs.pop();
        assert_eq!(kinds(&twice), ["second copy"], "it did not run");
        let again = Case {
            runs: vec![run(10, 0, 1.0, None), run(10, 0, 2.0, Some((0, 3.0)))],
            ..case(Kind::Short, "Done")
        };
        assert_eq!(kinds(&again), ["duplicate"]);
        let requeued = Case { runs: vec![run(10, 0, 1.0, None), run(10, 1, 2.0, Some((0, 3.0)))], ..again };
        assert!(kinds(&requeued).is_empty());
    }

    #[test]
    fn the_next_attempt_comes_after_the_last_and_only_if_that_one_failed() {
        let two = |first: Run, state: &str, second: f64| {
            let mut case = case(Kind::NodeKilling, "Done");
            case.told.as_mut().unwrap().attempts.push((2, Some(11)));
            case.runs = vec![first, run(11, 0, second, Some((0, second + 1.0)))];
            case.rows = vec![row(10, 1, state, 120.0), row(11, 2, "COMPLETED", second + 1.0)];
            kinds(&case)
        };
        assert!(two(run(10, 0, 100.0, None), "NODE_FAIL", 125.0).is_empty());
        assert_eq!(two(run(10, 0, 100.0, None), "NODE_FAIL", 110.0), ["duplicate"], "at one time");
        assert_eq!(
            two(run(10, 0, 100.0, Some((0, 119.0))), "COMPLETED", 125.0),
            ["duplicate"],
            "it was done"
        );
        assert!(two(run(10, 0, 100.0, Some((0, 119.0))), "NODE_FAIL", 125.0).is_empty());
        assert!(two(run(10, 0, 100.0, Some((1, 119.0))), "FAILED", 125.0).is_empty());
    }

    #[test]
    fn a_run_that_was_put_back_ended_then_and_not_when_its_wait_was_ended() {
        let mut case = case(Kind::Long, "Done");
        case.told.as_mut().unwrap().attempts.push((2, Some(11)));
        case.runs = vec![run(10, 0, 100.0, None), run(11, 0, 110.0, Some((0, 119.0)))];
        case.rows = vec![
            row(10, 1, "REQUEUED", 101.0),
            row(10, 1, "CANCELLED", 115.0),
            row(11, 2, "COMPLETED", 119.0),
        ];
        assert!(kinds(&case).is_empty());
        // It had done its work, and Slurm had it run again all the same.
        case.runs[0].ended = Some((0, 100.5));
        assert!(kinds(&case).is_empty());
        case.runs[0].ended = None;
        case.rows.remove(0);
        assert_eq!(kinds(&case), ["duplicate"]);
    }

    #[test]
    fn a_job_that_failed_with_the_cluster_is_no_defect_of_the_service() {
        let mut broken =
            Case { runs: vec![run(10, 0, 100.0, None)], rows: Vec::new(), ..case(Kind::Long, "Error") };
        assert_eq!(kinds(&broken), ["wrong"]);
        broken.disk_full.push((90.0, 101.0));
        assert_eq!(kinds(&broken), ["given up"]);
        broken.disk_full = vec![(50.0, 60.0)];
        assert_eq!(kinds(&broken), ["wrong"]);
        "Slurm's queue and accounting have lost the job"
            .clone_into(&mut broken.told.as_mut().unwrap().message);
        assert_eq!(kinds(&broken), ["wrong"], "its controller never died");
        broken.controller_killed = true;
        assert_eq!(kinds(&broken), ["given up"]);
    }

    #[test]
    fn nothing_is_left_on_the_cluster() {
        assert_eq!(kinds(&Case { queued: vec![10], ..case(Kind::Short, "Done") }), ["orphan"]);
    }
}
