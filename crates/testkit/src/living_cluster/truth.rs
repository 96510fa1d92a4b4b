//! What really happened on the cluster: what the service's word is compared with.

use std::collections::{BTreeMap, BTreeSet};

use slurm::{ExitCode, SlurmState};
use uuid::Uuid;

use super::plan::Word;

/// How one Slurm job went.
#[derive(Debug, Clone)]
pub struct TrueJob {
    /// Its name, with the index of a task.
    pub name: String,
    /// The job of ours that it is a run of.
    pub owner: Option<Uuid>,
    /// The file that it makes, if it converts an image.
    pub image: Option<String>,
    /// The task of that job.
    pub task: u32,
    /// The Slurm job that queued it ahead.
    pub after: Option<u32>,
    /// Its batch script held the claim and ran the program.
    pub executed: bool,
    /// None while it is in Slurm.
    pub state: Option<SlurmState>,
    pub exit: Option<ExitCode>,
    /// The final status of its last run.
    pub word: Option<Word>,
    /// Slurm forgot it, and nothing else tells how it ended.
    pub lost: bool,
    /// An administrator canceled it, or a job of higher priority took its place.
    pub ended_by_others: bool,
}

/// Everything that an audit asks for.
#[derive(Debug, Default)]
pub struct Truth {
    /// By Slurm's id.
    pub jobs: BTreeMap<u32, TrueJob>,
    /// The attempts that are known to have been accepted later than any bound allows, by name: only their claim keeps them
    /// from running twice.
    pub(super) beyond_bound: BTreeSet<String>,
    /// What must never happen and was seen to happen.
    pub violations: Vec<String>,
    /// The lines that each job wrote, by their numbers, and whether some may have been overwritten unseen.
    pub lines: BTreeMap<Uuid, u64>,
    pub overwritten: BTreeSet<Uuid>,
    /// The login host saw some of what jobs wrote later than it was written.
    pub files_were_late: bool,
    /// The jobs whose programs run now, by owner and task.
    pub(super) running: BTreeMap<(Uuid, u32), BTreeSet<u32>>,
    /// Which Slurm jobs have run an attempt, by name.
    pub(super) executions: BTreeMap<String, BTreeSet<u32>>,
    /// How many of each kind of ending there were.
    pub endings: BTreeMap<String, u64>,
}

impl Truth {
    pub(super) fn begins(&mut self, id: u32, is_over: bool) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        job.executed = true;
        let (name, owner, task, image) = (job.name.clone(), job.owner, job.task, job.image.clone());
        let by = self.executions.entry(name.clone()).or_default();
        by.insert(id);
        if by.len() > 1 {
            self.violations.push(format!("attempt {name} was run by several Slurm jobs: {by:?}"));
        }
        let Some(owner) = owner else { return };
        self.running.entry((owner, task)).or_default().insert(id);
        // One that was taken beyond every bound may find the claim of its attempt free, and the next attempt under way.
        let is_bounded = |id: &u32| self.jobs.get(id).is_some_and(|job| !self.is_beyond_bound(&job.name));
        let makes = |id: &u32| self.jobs.get(id).is_some_and(|job| image.is_some() && job.image == image);
        let running: Vec<_> = self.running[&(owner, task)].iter().copied().filter(is_bounded).collect();
        let all = self.running.values().flatten().copied();
        let making: Vec<_> = all.filter(is_bounded).filter(makes).collect();
        if running.len() > 1 {
            self.violations.push(format!("several runs of task {task} of job {owner} at once: {running:?}"));
        }
        if making.len() > 1 {
            self.violations.push(format!("several conversions make {image:?} at once: {making:?}"));
        }
        if is_over && !self.is_beyond_bound(&name) {
            self.violations.push(format!("Slurm job {id} ({name}) began to run after the end of its job"));
        }
    }

    pub(super) fn stops(&mut self, id: u32) {
        if let Some(running) =
            self.jobs.get(&id).and_then(|job| self.running.get_mut(&(job.owner?, job.task)))
        {
            running.remove(&id);
        }
    }

    /// Whether a Slurm job of this name, or its array, may have been accepted later than any bound allows.
    pub fn is_beyond_bound(&self, name: &str) -> bool {
        self.beyond_bound.contains(name.split('_').next().unwrap_or(name))
    }
}
