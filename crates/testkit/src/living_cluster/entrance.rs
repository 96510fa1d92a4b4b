//! How Slurm takes a job, or an array.

use slurm::{JobName, SlurmJobId, SlurmState, TaskSet};
use uuid::Uuid;

use super::{
    Site, TrueJob,
    life::{Script, SlurmJob, Turn},
    plan::draw,
};

/// A Slurm job before it has a life.
#[derive(Clone)]
pub(super) struct Born {
    pub(super) name: JobName,
    pub(super) owner: Option<Uuid>,
    pub(super) script: Script,
    pub(super) state_dir: String,
    pub(super) results: Option<String>,
    pub(super) image: Option<String>,
    /// The indices of its array, and the task that index 0 stands for.
    pub(super) array: Option<(TaskSet, u32)>,
    /// It waits for the end of this one.
    pub(super) after: Option<u32>,
}

impl Site {
    /// Slurm takes a job, or each task of an array.
    pub(super) fn enter(&mut self, born: &Born) -> Option<SlurmJobId> {
        let id = SlurmJobId::new(u32::try_from(self.jobs.len()).ok()? + 1)?;
        match &born.array {
            None => self.enter_one(id, born, None)?,
            Some((indices, base)) => {
                for index in indices.iter() {
                    self.enter_one(id, born, Some((index, base + index)))?;
                }
            }
        }
        Some(id)
    }

    /// `task`: its index in the array, and its number in its job.
    fn enter_one(&mut self, id: SlurmJobId, born: &Born, task: Option<(u32, u32)>) -> Option<()> {
        let number = u32::try_from(self.jobs.len()).ok()? + 1;
        let Born { name, owner, script, state_dir: attempt_dir, results, image, .. } = born.clone();
        let (index, state_dir, results) = match task {
            Some((index, task)) => {
                let results = results.map(|results| format!("{results}/{task}"));
                (Some(index), format!("{attempt_dir}/tasks/{task}"), results)
            }
            None => (None, attempt_dir.clone(), results),
        };
        let task = task.map_or(0, |(_, task)| task);
        let same = |job: &&SlurmJob| job.owner == owner && job.task == task && owner.is_some();
        let runs_before: u32 = self.jobs.values().filter(same).map(|job| 1 + job.restarts).sum();
        let run = draw(&mut self.dice, runs_before);
        let job = SlurmJob {
            id,
            name,
            owner,
            script,
            after: born.after,
            index,
            task,
            attempt_dir,
            state_dir,
            results,
            image,
            state: SlurmState::Pending,
            submit: self.seconds(),
            start: None,
            end: None,
            node: String::new(),
            restarts: 0,
            run,
            runs_before,
            era: 0,
            executing: false,
            exit: None,
            word: None,
            log: "",
            queued: true,
            records: Vec::new(),
            ended_runs: Vec::new(),
        };
        let wait = job.run.wait;
        self.truth.jobs.insert(
            number,
            TrueJob {
                name: job.label(),
                owner,
                image: job.image.clone(),
                task,
                after: born.after,
                executed: false,
                state: None,
                exit: None,
                word: None,
                lost: false,
                ended_by_others: false,
            },
        );
        self.jobs.insert(number, job);
        self.account(number);
        if born.after.is_none() {
            self.plan(wait, Turn::Start { id: number, era: 0 });
        }
        Some(())
    }
}
