//! Calls about the tasks of arrays.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Debug,
};

use domain::{Job, JobId, Phase, Status, TaskEnding, TaskOutcome, Transition};
use persistence::{ActiveArray, ConcludedTask, PollTurns as _, TaskPolls as _, TaskRecords as _};

use super::{Both, dgx, faces, outcome};
use crate::{
    moves,
    sides::{LEASE, Side as _},
};

fn face(array: &ActiveArray) -> String {
    let seen: BTreeMap<_, _> = array.seen.iter().map(|(no, tasks)| (no.get(), tasks.to_string())).collect();
    let runs: BTreeSet<_> = array.runs.iter().map(|run| format!("{run:?}")).collect();
    let earlier: BTreeMap<_, _> = array.earlier.iter().collect();
    format!("{:?} {seen:?} {runs:?} {earlier:?}", array.job)
}

/// The entries, in an order of their own.
fn sorted<T: Debug>(entries: impl IntoIterator<Item = T>) -> BTreeSet<String> {
    entries.into_iter().map(|entry| format!("{entry:?}")).collect()
}

impl Both {
    pub(super) async fn observe_tasks(&mut self) {
        let (token, now) = (self.token(), self.now);
        let (real, memory) = of_both!(self, acquire_poll(&dgx(), token, LEASE));
        let arrays = of_both!(self, active_arrays(&dgx()));
        let arrays = (arrays.0.unwrap(), arrays.1.unwrap());
        let told = |arrays: &[ActiveArray]| arrays.iter().map(face).collect::<BTreeSet<_>>();
        self.same("active_arrays", (told(&arrays.0), told(&arrays.1)));
        let (Some(real), Some(memory)) = (real.unwrap(), memory.unwrap()) else { return };
        for array in &arrays.0 {
            if let Some(changed) = moves::task_seen(array, &mut self.dice, now) {
                let changed = [changed];
                let real = self.real.store().record_observed_tasks(&real, &changed, now).await;
                let memory = self.memory.store().record_observed_tasks(&memory, &changed, now).await;
                self.same("record_observed_tasks", (outcome(&real), outcome(&memory)));
            }
        }
        // Another call gives the right to poll back.
        self.polls.push(((real, memory), Vec::new()));
    }

    pub(super) async fn tend(&mut self) {
        let Some(((real, memory), jobs)) = self.some_lease() else { return };
        let now = self.now;
        if jobs.iter().all(|job| job.array.is_none()) {
            self.leases.push(((real, memory), jobs));
            return;
        }
        for job in jobs.iter().filter(|job| job.array.is_some()) {
            let (of_job, id) = (std::slice::from_ref(job), [job.id]);
            let ended = of_both!(self, ended_tasks(of_job, 100));
            let (ended, other) = (ended.0.unwrap(), ended.1.unwrap());
            self.same("ended_tasks", (faces(&ended), faces(&other)));
            self.compare_tasks(&id).await;
            let mut concluded = Vec::new();
            for task in ended {
                let outcome = self.dice.one_of(&[
                    None,
                    Some(TaskOutcome::Done),
                    Some(TaskOutcome::Error),
                    Some(TaskOutcome::Canceled),
                    Some(TaskOutcome::Retried),
                ]);
                let (attempt, mut run) = (task.attempt, task.ended.run);
                if matches!(outcome, Some(TaskOutcome::Error | TaskOutcome::Retried)) && self.dice.chance(800)
                {
                    run.failure = Some(moves::failure(&format!("rule-{}", self.dice.below(100))));
                }
                let message = "so".to_owned();
                let ending = TaskEnding { run, outcome, message, failure: None, until: None };
                concluded.push(ConcludedTask { job: job.id, attempt, ending });
            }
            let runs: Vec<&ConcludedTask> = concluded.iter().collect();
            let message = format!("Tended, {}.", self.dice.below(9));
            let mut step = Transition { job: Job { message, ..job.clone() }, due_at: Some(now) };
            if !runs.is_empty() && self.dice.chance(500) {
                (step.job.status, step.job.phase) = (Status::Error, Phase::Ended);
                (step.job.finished_at, step.due_at) = (Some(now), None);
            }
            let step = [step];
            let stored = (
                self.real.store().record_tended(&real, &step, &runs, now).await.unwrap(),
                self.memory.store().record_tended(&memory, &step, &runs, now).await.unwrap(),
            );
            let name = if stored.0.is_empty() { "a tended job that was dropped" } else { "record_tended" };
            self.same(name, (sorted(stored.0), sorted(stored.1)));
            self.compare_tasks(&id).await;
        }
    }

    async fn compare_tasks(&mut self, jobs: &[JobId]) {
        let lingering = of_both!(self, tended_runs(jobs));
        self.same("tended_runs", (sorted(lingering.0.unwrap()), sorted(lingering.1.unwrap())));
        let concluded = of_both!(self, concluded_tasks(jobs));
        self.same("concluded_tasks", (sorted(concluded.0.unwrap()), sorted(concluded.1.unwrap())));
        let tallies = of_both!(self, task_tallies(jobs));
        let of_all =
            |tallies: std::collections::HashMap<JobId, Vec<_>>| sorted(tallies.into_values().flatten());
        self.same("task_tallies", (of_all(tallies.0.unwrap()), of_all(tallies.1.unwrap())));
    }
}
