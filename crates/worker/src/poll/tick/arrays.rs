//! The tasks of arrays in a poll. Tasks that wait together cost nothing each.

use domain::{
    Attempt, AttemptPlace, Graces, JobPaths, Phase, Run, TaskTemplate, Timestamp, is_cramped,
    share_failed_launch, waits_only,
};
use persistence::{ActiveArray, ObservedTask};
use remote::{ArrayQueue, ReportFiles, Watched, WatchedArray};
use slurm::{SlurmJobId, TaskSet};

use crate::poll::tick::poll_results::PollResults;

/// What a poll asks about arrays: each task with a run, and the rest of each attempt.
///
/// `last` is the time of the last answered poll. `measures`: what the tasks use is asked for.
pub(super) fn watched(
    arrays: &[ActiveArray],
    measures: bool,
    last: Option<Timestamp>,
    now: Timestamp,
) -> (Vec<Watched>, Vec<WatchedArray>) {
    let (mut tasks, mut rests) = (Vec::new(), Vec::new());
    for array in arrays {
        let template = TaskTemplate::of(&array.job);
        let reporting = template.reporting();
        for attempt in array.job.attempts_in_slurm() {
            let Some(id) = attempt.slurm_id else { continue };
            let rest = rest(array, attempt);
            if !rest.is_empty() {
                rests.push(WatchedArray { id, name: attempt.token.clone(), rest });
            }
            tasks.extend(runs(array, attempt).filter_map(|run| {
                let is_checked = template.wants_signs_of_life(run, last, now);
                watched_task(array, attempt, id, run, is_checked)
                    .map(|task| Watched { reports: reporting.files(&task.results_dir, measures), ..task })
            }));
        }
    }
    (tasks, rests)
}

/// The indices of the tasks of an attempt that have no run.
fn rest(array: &ActiveArray, attempt: &Attempt) -> TaskSet {
    match array.seen.get(&attempt.no) {
        Some(seen) => attempt.tasks.without(seen).less(attempt.base),
        None => attempt.tasks.less(attempt.base),
    }
}

fn runs<'a>(array: &'a ActiveArray, attempt: &'a Attempt) -> impl Iterator<Item = &'a Run> {
    array.runs.iter().filter(|(no, _)| *no == attempt.no).map(|(_, run)| run)
}

fn watched_task(
    array: &ActiveArray,
    attempt: &Attempt,
    id: SlurmJobId,
    run: &Run,
    is_checked: bool,
) -> Option<Watched> {
    let paths = JobPaths::new(&attempt.job_dir, array.job.id).ok()?;
    let index = run.task.saturating_sub(attempt.base);
    let logs = || paths.documented_logs(&AttemptPlace { index: Some(index), ..attempt.into() }).ok()?;
    Some(Watched {
        id,
        key: attempt.key(array.job.id),
        results_dir: paths.task_results(run.task).ok()?,
        state_dir: paths.task_state(attempt.no, run.task).ok()?,
        status: run.status.cursors(),
        signs_of_life: if is_checked { logs() } else { None },
        index: Some(index),
        reports: ReportFiles::default(),
    })
}

/// The runs of an array that changed.
pub(super) fn changes(
    array: &ActiveArray,
    results: &PollResults,
    graces: &Graces,
    now: Timestamp,
) -> Vec<ObservedTask> {
    let template = TaskTemplate::of(&array.job);
    let mut changed = Vec::new();
    for attempt in array.job.attempts_in_slurm() {
        let Some(id) = attempt.slurm_id else { continue };
        let observe = |known: &Run| {
            let seen = results.of_task(id, attempt.token.as_str(), known.task.saturating_sub(attempt.base));
            template.observe(attempt, known, &seen, graces, now)
        };
        let mut moved: Vec<Run> = runs(array, attempt).filter_map(observe).collect();
        let answers = &results.answer.arrays;
        let rest = rest(array, attempt);
        if let Some(rows) = answers.queue.get(&id) {
            let single = rows.tasks.iter().filter(|(_, row)| !waits_only(row, true)).map(|(index, _)| *index);
            // Slurm shows tasks that were canceled together in one row.
            let together = rows.waiting.iter().filter(|(_, row)| !waits_only(row, false));
            let begun = together.fold(single.collect::<TaskSet>(), |all, (set, _)| all.union(set));
            let begun = begun.union(&cramped(array, attempt, rows)).intersection(&rest).plus(attempt.base);
            let first = |task| template.first_run(task, array.earlier.get(&task));
            let begun: Vec<Run> = begun.iter().map(first).collect();
            // A run that cannot be judged yet is asked for in the next poll.
            moved.extend(begun.into_iter().map(|run| observe(&run).unwrap_or(run)));
        }
        if results.queue_answered() && answers.is_whole(id) {
            let gone = rest.without(&answers.listed(id)).plus(attempt.base);
            let vanished = |task| template.vanished(task, array.earlier.get(&task), now);
            moved.extend(gone.iter().map(vanished));
        }
        share_failed_launch(&mut moved, |task| answers.record(id, task.saturating_sub(attempt.base)));
        let observed = |run| ObservedTask { job: array.job.id, attempt: attempt.no, run };
        changed.extend(moved.into_iter().map(observed));
    }
    changed
}

/// One of the tasks that find no place without the attempt's excluded nodes; none if the run of another one shows it.
fn cramped(array: &ActiveArray, attempt: &Attempt, rows: &ArrayQueue) -> TaskSet {
    let mut shown = runs(array, attempt).map(Run::phase);
    if shown.any(|phase| phase == Phase::InQueue) {
        return TaskSet::default();
    }
    let together = rows.waiting.iter().map(|(tasks, row)| (tasks.iter().next(), row));
    let alone = rows.tasks.iter().map(|(task, row)| (Some(*task), row));
    together
        .chain(alone)
        .filter(|(_, row)| is_cramped(attempt, row))
        .find_map(|(task, _)| task)
        .into_iter()
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use chrono::{DateTime, TimeDelta};
    use domain::{ArrayTasks, AttemptNo, Job, JobArray};
    use remote::{PollAnswer, SacctOutcome, SqueueOutcome};
    use slurm::{AccountingRow, QueueRow, SlurmState};
    use testkit::command_job;

    use super::*;

    /// An array of four tasks in Slurm, of which no run is known.
    fn array() -> ActiveArray {
        let now = DateTime::UNIX_EPOCH;
        let Job { id, owner, cluster, mut spec, .. } = command_job(1);
        let tasks = ArrayTasks::Indices("0-3".parse().unwrap());
        spec.array = Some(JobArray { tasks, max_parallel: None });
        let mut job = Job::accepted(id, owner, cluster, spec, now);
        let mut attempt = job.new_attempt("/lustre/tao".parse().unwrap(), now).unwrap();
        (attempt.tasks, attempt.slurm_id) = (job.spec.tasks(), SlurmJobId::new(7));
        attempt.submitted_at = Some(now);
        job.begin_attempt(attempt);
        ActiveArray { job, runs: Vec::new(), seen: HashMap::new(), earlier: HashMap::new() }
    }

    fn row(array: &ActiveArray, state: SlurmState, reason: &str) -> QueueRow {
        QueueRow {
            id: SlurmJobId::new(7).unwrap(),
            state,
            reason: reason.to_owned(),
            nodes: String::new(),
            submit: None,
            start: None,
            end: None,
            partition: "polar".to_owned(),
            name: array.job.attempt.as_ref().unwrap().token.to_string(),
        }
    }

    /// The tasks that get a run, from a row of several tasks and one of a single task.
    fn seen(together: (&str, SlurmState, &str), alone: (u32, SlurmState, &str)) -> Vec<u32> {
        seen_of(&array(), together, alone)
    }

    fn seen_of(
        array: &ActiveArray,
        together: (&str, SlurmState, &str),
        alone: (u32, SlurmState, &str),
    ) -> Vec<u32> {
        let queue = ArrayQueue {
            waiting: vec![(together.0.parse().unwrap(), row(array, together.1, together.2))],
            tasks: HashMap::from([(alone.0, row(array, alone.1, alone.2))]),
            is_cut: false,
        };
        let mut answer = nothing();
        answer.arrays.queue.insert(SlurmJobId::new(7).unwrap(), queue);
        let results = PollResults::new(answer, TimeDelta::zero());
        let changed = changes(array, &results, &Graces::default(), DateTime::UNIX_EPOCH);
        changed.into_iter().map(|task| task.run.task).collect()
    }

    /// An answer about no job.
    fn nothing() -> PollAnswer {
        PollAnswer {
            remote_time: 0,
            squeue: SqueueOutcome::Answered(HashMap::new()),
            sacct: SacctOutcome::NotAsked,
            status: Vec::new(),
            markers: HashMap::new(),
            signs_of_life: HashMap::new(),
            reports: HashMap::new(),
            arrays: remote::ArrayAnswers::default(),
            dropped_rows: 0,
        }
    }

    #[test]
    fn a_row_of_another_job_with_the_same_id_says_nothing_and_is_there_for_orphans() {
        let id = SlurmJobId::new(7).unwrap();
        let row = QueueRow::read("7|PENDING|another|1|N/A|N/A|polar||None").unwrap();
        let answer = PollAnswer { squeue: SqueueOutcome::Answered([(id, row)].into()), ..nothing() };
        let results = PollResults::new(answer, TimeDelta::zero());
        assert!(results.of(id, "ours").queue.is_none());
        assert!(results.of(id, "another").queue_alone().is_some());
    }

    #[test]
    fn a_task_that_slurm_ended_with_one_that_could_not_be_started_shares_its_failure() {
        let (mut array, id) = (array(), SlurmJobId::new(7).unwrap());
        let mut answer = nothing();
        let queue = answer.arrays.queue.entry(id).or_default();
        // Task 0 has run for a while, and a node could not start task 3.
        for (task, start) in [(0, 5), (3, 20)] {
            let run = Run { task, state: Some(SlurmState::Running), ..Run::default() };
            array.runs.push((AttemptNo::FIRST, run));
            let name = array.job.attempt.as_ref().unwrap().token.to_string();
            let (start, end, nodes) = (Some(start), Some(20), "node04".to_owned());
            let row =
                QueueRow { start, end, nodes: nodes.clone(), ..row(&array, SlurmState::Cancelled, "None") };
            queue.tasks.insert(task, row);
            let (state, reason) = (SlurmState::Cancelled, String::new());
            let (exit_code, canceled_by, before) = (None, Some(0), None);
            let record =
                AccountingRow { id, state, exit_code, reason, start, end, nodes, name, canceled_by, before };
            answer.arrays.records.insert((id, task), record);
        }
        array.seen.insert(AttemptNo::FIRST, "0,3".parse().unwrap());
        let results = PollResults::new(answer, TimeDelta::zero());
        let changed = changes(&array, &results, &Graces::default(), DateTime::UNIX_EPOCH);
        let ended = changed.into_iter().filter(|task| [0, 3].contains(&task.run.task));
        let states: Vec<_> = ended.map(|task| task.run.state).collect();
        assert_eq!(states, [Some(SlurmState::LaunchFailed), Some(SlurmState::LaunchFailed)]);
    }

    #[test]
    fn tasks_that_wait_get_no_runs_and_one_that_slurm_holds_is_looked_at() {
        let waits = || ("0-2", SlurmState::Pending, "JobHeldUser");
        assert_eq!(seen(waits(), (3, SlurmState::Pending, "Priority")), [0; 0]);
        assert_eq!(seen(waits(), (3, SlurmState::Running, "None")), [3]);
        // As chaos found it: Slurm could not launch the task, and shows it in a row of its own.
        assert_eq!(seen(waits(), (3, SlurmState::Pending, "JobHeldAdmin")), [3]);
        let canceled = ("0-2", SlurmState::Cancelled, "None");
        assert_eq!(seen(canceled, (3, SlurmState::Pending, "Priority")), [0, 1, 2]);
    }
    #[test]
    fn one_of_the_tasks_that_find_no_place_shows_it() {
        let waits = || ("0-2", SlurmState::Pending, "ReqNodeNotAvail, UnavailableNodes:node[02-04]");
        let runs = || (3, SlurmState::Running, "None");
        let mut array = array();
        assert_eq!(seen_of(&array, waits(), runs()), [3], "the attempt excludes no nodes");
        array.job.attempt.as_mut().unwrap().excluded = vec!["node01".parse().unwrap()];
        assert_eq!(seen_of(&array, ("0-2", SlurmState::Pending, "Resources"), runs()), [3]);
        assert_eq!(seen_of(&array, waits(), runs()), [0, 3]);
        let run = Run { task: 0, state: Some(SlurmState::Pending), ..Run::default() };
        array.runs.push((AttemptNo::FIRST, run));
        array.seen.insert(AttemptNo::FIRST, "0".parse().unwrap());
        let seen = seen_of(&array, waits(), runs());
        assert_eq!(seen, [0, 3], "the reason of task 0 is news; task 1 needs no run");
    }
}
