//! The tasks of arrays in a poll. Tasks that wait together cost nothing each.

use domain::{Attempt, AttemptPlace, Graces, JobPaths, Run, TaskTemplate, Timestamp, waits_only};
use persistence::{ActiveArray, ObservedTask};
use remote::{Watched, WatchedArray};
use slurm::{SlurmJobId, TaskSet};

use crate::poll::tick::poll_results::PollResults;

/// What a poll asks about arrays: each task with a run, and the rest of each attempt.
///
/// `last` is the time of the last answered poll.
pub(super) fn watched(
    arrays: &[ActiveArray],
    last: Option<Timestamp>,
    now: Timestamp,
) -> (Vec<Watched>, Vec<WatchedArray>) {
    let (mut tasks, mut rests) = (Vec::new(), Vec::new());
    for array in arrays {
        let template = TaskTemplate::of(&array.job);
        for attempt in array.job.attempts_in_slurm() {
            let Some(id) = attempt.slurm_id else { continue };
            let rest = rest(array, attempt);
            if !rest.is_empty() {
                rests.push(WatchedArray { id, name: attempt.token.clone(), rest });
            }
            tasks.extend(runs(array, attempt).filter_map(|run| {
                let is_checked = template.wants_signs_of_life(run, last, now);
                watched_task(array, attempt, id, run, is_checked)
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
        results_dir: Some(paths.task_results(run.task).ok()?),
        state_dir: paths.task_state(attempt.no, run.task).ok()?,
        status: run.status.cursors(),
        signs_of_life: if is_checked { logs() } else { None },
        index: Some(index),
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
        let mut push = |run: Run| changed.push(ObservedTask { job: array.job.id, attempt: attempt.no, run });
        runs(array, attempt).filter_map(observe).for_each(&mut push);
        let answers = &results.answer.arrays;
        let rest = rest(array, attempt);
        if let Some(rows) = answers.queue.get(&id) {
            let single = rows.tasks.iter().filter(|(_, row)| !waits_only(row, true)).map(|(index, _)| *index);
            // Slurm shows tasks that were canceled together in one row.
            let together = rows.waiting.iter().filter(|(_, row)| !waits_only(row, false));
            let begun = together.fold(single.collect::<TaskSet>(), |all, (set, _)| all.union(set));
            let begun = begun.intersection(&rest).plus(attempt.base);
            let first = |task| template.first_run(task, array.earlier.get(&task));
            let begun: Vec<Run> = begun.iter().map(first).collect();
            // A run that cannot be judged yet is asked for in the next poll.
            begun.into_iter().map(|run| observe(&run).unwrap_or(run)).for_each(&mut push);
        }
        if results.queue_answered() && answers.is_whole(id) {
            let gone = rest.without(&answers.listed(id)).plus(attempt.base);
            let vanished = |task| template.vanished(task, array.earlier.get(&task), now);
            gone.iter().map(vanished).for_each(&mut push);
        }
    }
    changed
}
