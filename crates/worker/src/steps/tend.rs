//! Tends jobs with an array: concludes the runs that are over, many in one remote command, and cancels what is no longer needed.

mod exclusions;
mod unwanted;

use std::collections::HashMap;

use domain::{
    Attempt, AttemptNo, AttemptPlace, AttemptTally, DesiredState, EndedRun, Findings, Job, JobId, JobPaths,
    LogFile, LogStream, ResultPlaces, Run, TaskEnding, TaskOutcome, TaskResult, TaskTemplate, Timestamp,
    Told, Transition, parts_at_the_end, progress_at_the_end, status_backlog,
};
use persistence::{ConcludedTask, EndedTask, Lease, WorkStore};
use remote::{AttemptKey, Concluded, Concluding, label};
use slurm::SlurmState;
use tokio::task::yield_now;

use crate::{
    Result,
    cluster_runtime::Runtime,
    link::cluster_link::ClusterLink,
    steps::{
        conclude::{TRY_AGAIN, may_have_failed, nodes, of_run},
        pending_cleanup::Unsubmitted,
        record::done,
        results::read,
    },
    worker::Worker,
};

use unwanted::{CANCEL_AGAIN, Unwanted};

/// The most runs that one command concludes.
const AT_ONCE: u32 = 250;

impl<L: ClusterLink, S: WorkStore> Worker<L, S> {
    pub(crate) async fn tend(&self, runtime: &Runtime<L>, lease: &Lease, mut jobs: Vec<Job>) -> Result {
        let ended = self.store.ended_tasks(&jobs, AT_ONCE).await?;
        let has_more = u32::try_from(ended.len()).is_ok_and(|count| count >= AT_ONCE);
        let tended = self.conclude_tasks(runtime, &jobs, ended).await;
        let ids: Vec<JobId> = jobs.iter().map(|job| job.id).collect();
        let runs = self.store.tended_runs(&ids).await?;
        let Unwanted { tasks: unwanted, mut next } = self.unwanted(runtime, &jobs, &runs).await?;
        let canceled = self.cancel_tasks(runtime, &jobs, &unwanted).await;
        self.relax_attempts(runtime, &mut jobs, &runs, &mut next).await;
        self.release_held(&mut jobs).await?;
        let mut tallies = self.store.task_tallies(&ids).await?;
        for one in &tended {
            add(tallies.entry(one.job).or_default(), one);
        }
        let now = self.clock.now();
        let steps: Vec<_> = jobs
            .iter()
            .map(|before| {
                let mut job = before.clone();
                if let Some(array) = job.array.as_mut().filter(|_| canceled.contains(&before.id)) {
                    let tasks = unwanted.get(&before.id).cloned().unwrap_or_default();
                    array.told = Some(Told { at: now, tasks });
                }
                let told = job.array.as_ref().and_then(|array| array.told.as_ref()).map(|told| told.at);
                let own = tended.iter().filter(|one| one.job == before.id);
                let soonest = take_in(&mut job, own);
                let Transition { job, due_at } =
                    job.tally(tallies.get(&before.id).map_or(&[], Vec::as_slice), now);
                // A cancellation that could not be sent is sent a little later.
                let again = unwanted
                    .get(&before.id)
                    .map(|_| told.map_or(now, |at| at + CANCEL_AGAIN).max(now + TRY_AGAIN));
                let more = has_more.then_some(now);
                let due_at = [due_at, soonest, again, next.at(before.id), more].into_iter().flatten().min();
                let due_at = due_at.filter(|_| !job.status.is_final());
                Unsubmitted::new(before, done(job, due_at))
            })
            .collect();
        let steps = self.unless_blocked(runtime, steps).await;
        self.record_tended(lease, &steps, &tended, now).await?;
        runtime.wake_lanes();
        Ok(())
    }

    async fn record_tended(
        &self,
        lease: &Lease,
        steps: &[Transition],
        runs: &[ConcludedTask],
        now: Timestamp,
    ) -> Result {
        // One job at a time: a lost lease on one of them does not undo the others.
        for step in steps {
            let id = step.job.id;
            let own: Vec<&ConcludedTask> = runs.iter().filter(|run| run.job == id).collect();
            let stored = self.store.record_tended(lease, std::slice::from_ref(step), &own, now).await?;
            if stored.contains(&id) {
                tracing::info!(
                    job.id = %id, job.status = %step.job.status, job.phase = %step.job.phase, tasks = own.len(),
                    "{}", step.job.message
                );
            } else {
                tracing::warn!(job.id = %id, "the lease was lost; the result of the step is dropped");
            }
        }
        Ok(())
    }

    async fn conclude_tasks(
        &self,
        runtime: &Runtime<L>,
        jobs: &[Job],
        ended: Vec<EndedTask>,
    ) -> Vec<ConcludedTask> {
        if ended.is_empty() {
            return Vec::new();
        }
        let jobs_by_id: HashMap<JobId, &Job> = jobs.iter().map(|job| (job.id, job)).collect();
        let templates: HashMap<JobId, TaskTemplate> =
            jobs.iter().map(|job| (job.id, TaskTemplate::of(job))).collect();
        let asked_at = self.clock.now();
        let mut tended = Vec::new();
        let mut open: Vec<(&Job, &Attempt, EndedTask)> = Vec::new();
        for task in ended {
            let Some(job) = jobs_by_id.get(&task.job) else { continue };
            let Some(attempt) = job.attempts_in_slurm().find(|attempt| attempt.no == task.attempt) else {
                continue;
            };
            let desired = templates
                .get(&job.id)
                .map_or(job.desired, |template| template.desired_of(task.ended.run.task));
            match never_began(desired, &task.ended) {
                Some(ending) => tended.push(ConcludedTask { job: job.id, attempt: task.attempt, ending }),
                None => open.push((job, attempt, task)),
            }
        }
        if open.is_empty() {
            return tended;
        }
        let asked =
            open.iter().filter_map(|(job, attempt, task)| concluding(job, attempt, &task.ended, asked_at));
        let failed = "the exit codes and logs of tasks could not be read";
        let found = self.left_by(runtime, asked.collect(), jobs, failed).await;
        let failed = |task: &EndedTask| task.ended.run.state == Some(SlurmState::Failed);
        let of_failed =
            open.iter().filter(|(.., task)| failed(task)).flat_map(|(.., task)| nodes(&task.ended.run));
        let sick = self.sick_nodes(runtime, of_failed.collect()).await;
        let spare = self.spare_nodes(runtime, &jobs.iter().collect::<Vec<_>>()).await;
        let (graces, now) = (self.graces(runtime), self.clock.now());
        for (job, attempt, task) in open {
            let label = label(attempt.token.as_str(), Some(task.ended.run.task.saturating_sub(attempt.base)));
            let Some(concluded) = found.get(label.as_str()) else {
                let (run, until) = (task.ended.run, Some(now + TRY_AGAIN));
                let ending = TaskEnding { run, outcome: None, message: String::new(), failure: None, until };
                tended.push(ConcludedTask { job: job.id, attempt: task.attempt, ending });
                continue;
            };
            let results = task_results(job, attempt, task.ended.run.task, concluded).await;
            let unhealthy = of_run(&task.ended.run, &sick);
            let findings = Findings {
                readable: concluded.readable,
                left_out: concluded.left_out,
                markers: &concluded.markers,
                status: &concluded.status,
                out_tail: &concluded.out_tail,
                err_tail: &concluded.err_tail,
                role_tails: &concluded.role_tails,
                errors: &concluded.errors,
                ended_with: concluded.ended_with.as_ref(),
                progress: progress_at_the_end(&job.spec, concluded.results.as_deref()),
                unhealthy: &unhealthy,
                spare: spare.get(&job.id).copied(),
                results: results.as_deref(),
            };
            let Some(template) = templates.get(&job.id) else { continue };
            let ending = template.conclude(attempt, &task.ended, &findings, &graces, now);
            tended.push(ConcludedTask { job: job.id, attempt: task.attempt, ending });
            // As in `conclude`: the lease is extended here.
            yield_now().await;
        }
        tended
    }
}

fn had_nodes(run: &Run) -> bool {
    run.started_at.is_some() || run.nodes.is_some() || run.requeues > 0
}

/// A task that was canceled before it began left nothing on the cluster.
fn never_began(desired: DesiredState, ended: &EndedRun) -> Option<TaskEnding> {
    let run = &ended.run;
    if desired == DesiredState::Run || had_nodes(run) || run.state != Some(SlurmState::Cancelled) {
        return None;
    }
    let (outcome, message) = match desired {
        DesiredState::Pause => (TaskOutcome::Retried, "Paused before it began."),
        _ => (TaskOutcome::Canceled, "Canceled before it began."),
    };
    Some(TaskEnding {
        run: run.clone(),
        outcome: Some(outcome),
        message: message.to_owned(),
        failure: None,
        until: None,
    })
}

/// Takes in what became of the job's tasks. Returns when a run is concluded again.
fn take_in<'a>(job: &mut Job, tended: impl Iterator<Item = &'a ConcludedTask>) -> Option<Timestamp> {
    let mut soonest: Option<Timestamp> = None;
    for ConcludedTask { ending, .. } in tended {
        job.failures.extend(ending.failure.clone());
        match ending.outcome {
            None => soonest = soonest.into_iter().chain(ending.until).min(),
            Some(TaskOutcome::Retried) => job.await_task(ending.run.task, ending.until),
            Some(TaskOutcome::Done | TaskOutcome::Error | TaskOutcome::Canceled) => {}
        }
    }
    soonest
}

fn add(tallies: &mut Vec<(AttemptNo, AttemptTally)>, one: &ConcludedTask) {
    let Some(outcome) = one.ending.outcome else { return };
    let place = tallies.iter().position(|(no, _)| *no == one.attempt);
    let place = place.unwrap_or_else(|| {
        tallies.push((one.attempt, AttemptTally::default()));
        tallies.len() - 1
    });
    tallies[place].1.conclude(outcome, one.ending.run.started_at.is_some());
}

/// What was found for the results of a task; `None` if its files have not been read.
async fn task_results(
    job: &Job,
    attempt: &Attempt,
    task: u32,
    concluded: &Concluded,
) -> Option<Vec<TaskResult>> {
    read(&job.spec.results, places(job, attempt, task)?, concluded.results.as_ref()?).await
}

fn places(job: &Job, attempt: &Attempt, task: u32) -> Option<ResultPlaces> {
    let paths = JobPaths::new(&attempt.job_dir, job.id).ok()?;
    let place = AttemptPlace { index: Some(task.saturating_sub(attempt.base)), ..attempt.into() };
    Some(ResultPlaces { home: paths.task_results(task).ok()?, logs: paths.documented_logs(&place).ok()? })
}

fn concluding(job: &Job, attempt: &Attempt, ended: &EndedRun, now: Timestamp) -> Option<Concluding> {
    let (paths, task) = (JobPaths::new(&attempt.job_dir, job.id).ok()?, ended.run.task);
    let index = task.saturating_sub(attempt.base);
    let key = attempt.key(job.id);
    let place = AttemptPlace { index: Some(index), ..attempt.into() };
    let places = places(job, attempt, task)?;
    let logs = LogStream::BOTH.map(|stream| paths.log_file(&place, &LogFile::Main(stream)));
    Some(Concluding {
        role_logs: places.logs.clone().filter(|_| job.spec.has_component_logs()),
        key: AttemptKey { name: label(key.name.as_str(), Some(index)).parse().ok()?, ..key },
        id: attempt.slurm_id,
        state_dir: paths.task_state(attempt.no, task).ok()?,
        logs: logs.into_iter().flatten().flatten().collect(),
        results: parts_at_the_end(&job.spec, &places),
        results_dir: places.home,
        status: ended.run.status.cursors(),
        status_backlog: status_backlog(Some(ended.since), now),
        remove: Vec::new(),
        is_bare: !had_nodes(&ended.run),
        may_have_failed: had_nodes(&ended.run) && may_have_failed(job.desired, &ended.run),
    })
}
