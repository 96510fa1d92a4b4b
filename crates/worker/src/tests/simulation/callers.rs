//! The callers: they send jobs, and change their minds.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use domain::{
    ArrayState, ArrayTasks, Clock, DesiredState, IdleAction, IdlePolicy, Job, JobArray, JobId, Need,
    NeedWhen, Phase, RestartCause, Secrets, Status, TaskStatus, Work,
};
use persistence::{Inserted, NewJob, Requested};
use slurm::TaskSet;
use testkit::{MemoryStore, job_at};
use tokio::time::sleep;

use super::{clocks::VirtualClock, world::World};

/// A wish that was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    Cancel,
    Pause,
    Resume,
    Retry,
    /// Some tasks of its array are canceled.
    CancelSome,
    Delete {
        artifacts: bool,
    },
}

/// A job that was accepted, and what its owner wished for, in order.
#[derive(Debug, Clone)]
pub(super) struct Sent {
    pub(super) id: JobId,
    pub(super) is_command: bool,
    pub(super) wishes: Vec<Wish>,
    /// The tasks of its array that were canceled.
    pub(super) withdrawn: TaskSet,
}

/// All callers. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Callers {
    pub(super) world: World,
    pub(super) store: MemoryStore,
    pub(super) clock: VirtualClock,
    sent: Arc<Mutex<Vec<Sent>>>,
}

impl Callers {
    pub(super) fn new(world: World, store: MemoryStore, clock: VirtualClock) -> Self {
        Self { world, store, clock, sent: Arc::default() }
    }

    pub(super) fn sent(&self) -> Vec<Sent> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// One caller with one job: sends it, twice perhaps, and then wishes for this and that while there is trouble.
    pub(super) async fn call(self, number: u64) {
        sleep(self.world.millis(0, 120_000)).await;
        let is_command = self.world.dice(|dice| dice.chance(400));
        let job = self.job(number, is_command);
        let id = job.id;
        let mut new = NewJob { job, secrets: secrets(), request_hash: [0; 32] };
        if let Inserted::NeedsUnknown(_) = self.store.insert_job(&new) {
            // Those that it needs were deleted meanwhile.
            new.job.spec.needs.clear();
            new.job.phase = Phase::Queued;
            new.job.array = ArrayState::of(&new.job.spec);
            self.store.insert_job(&new);
        }
        self.world
            .note(|| format!("{id} is accepted, {}", if is_command { "a command" } else { "a training" }));
        self.sent.lock().unwrap_or_else(PoisonError::into_inner).push(Sent {
            id,
            is_command,
            wishes: Vec::new(),
            withdrawn: TaskSet::default(),
        });
        if self.world.dice(|dice| dice.chance(100)) {
            self.store.insert_job(&new);
        }
        if self.world.dice(|dice| dice.chance(500)) {
            return;
        }
        for _ in 0..self.world.dice(|dice| dice.between(1, 4)) {
            let soon = self.world.dice(|dice| dice.chance(500));
            sleep(self.world.millis(0, if soon { 3000 } else { 150_000 })).await;
            if self.world.is_calm() {
                return;
            }
            self.wish(id);
        }
    }

    fn job(&self, number: u64, is_command: bool) -> Job {
        let work = if is_command {
            Work::Command { text: "true".to_owned() }
        } else {
            testkit::tao_job(1).spec.work
        };
        let Job { id, owner, cluster, mut spec, created_at, .. } =
            job_at(u128::from(number) + 1, work, self.clock.now());
        for other in self.sent() {
            if self.world.dice(|dice| dice.chance(300)) {
                use NeedWhen::{Failed, Finished, Started, Succeeded};
                let when =
                    self.world.dice(|dice| dice.one_of(&[Succeeded, Succeeded, Failed, Finished, Started]));
                let name = format!("n{}", spec.needs.len());
                spec.needs.extend(name.parse().ok().map(|name| Need { name, job: other.id.get(), when }));
            }
        }
        let mut job = Job::accepted(id, owner, cluster, spec, created_at);
        if is_command && self.world.dice(|dice| dice.chance(400)) {
            // Two pieces of an array, or one.
            let tasks = self.world.dice(|dice| if dice.chance(300) { "0-1,1001-1002" } else { "0-3" });
            let tasks = ArrayTasks::Indices(tasks.parse().unwrap_or_default());
            job.spec.array = Some(JobArray { tasks, max_parallel: None });
            for need in &mut job.spec.needs {
                // Task by task: also of jobs without an array, and of arrays with other tasks.
                if self.world.dice(|dice| dice.chance(500)) {
                    need.when = NeedWhen::Each;
                }
            }
            job.array = ArrayState::of(&job.spec);
        }
        if self.world.dice(|dice| dice.chance(300)) {
            let restart = &mut job.spec.restart;
            restart.on.extend([RestartCause::Timeout, RestartCause::Preempted]);
            let times = [None, None, Some(60), Some(300)];
            restart.max_total_seconds = self.world.dice(|dice| dice.one_of(&times));
            if is_command && job.array.is_none() && self.world.dice(|dice| dice.chance(500)) {
                restart.prequeue = true;
                restart.max_total_seconds = Some(5 * 24 * 3600);
            }
        }
        if job.array.is_none() && self.world.dice(|dice| dice.chance(300)) {
            let action = self.world.dice(|dice| dice.one_of(&[IdleAction::Pause, IdleAction::Warn]));
            job.spec.idle_policy = IdlePolicy::new(None, 1, Some(action)).ok();
        }
        if self.world.dice(|dice| dice.chance(200)) {
            job.spec.image = "nvcr.io/nvidia/tao/tao-toolkit:6.0.0-pyt".parse().ok();
        }
        job
    }

    /// Something that makes sense for the job as it is, most of the time.
    fn wish(&self, id: JobId) {
        let Some(job) = self.store.find_job(id) else { return };
        let wish = match (job.phase, job.desired) {
            (Phase::Ended, _) => self.world.dice(|dice| match dice.below(4) {
                0 => Wish::Delete { artifacts: dice.chance(500) },
                1 if job.status == Status::Done => Wish::Cancel,
                _ => Wish::Retry,
            }),
            (Phase::Paused, DesiredState::Pause) => {
                self.world.dice(|dice| if dice.chance(700) { Wish::Resume } else { Wish::Cancel })
            }
            _ if job.array.is_some() && self.world.dice(|dice| dice.chance(500)) => Wish::CancelSome,
            _ => self.world.dice(|dice| if dice.chance(500) { Wish::Cancel } else { Wish::Pause }),
        };
        // Of an array: some of its tasks, at random.
        let some: TaskSet =
            job.spec.tasks().iter().filter(|_| self.world.dice(|dice| dice.chance(400))).collect();
        let now = self.clock.now();
        let became = match wish {
            Wish::Cancel => self.store.request_cancel(id, now),
            Wish::Pause => self.store.request_pause(id, now),
            Wish::Resume => self.store.request_resume(id, now),
            Wish::Retry => {
                let array = self.retried(&job, &some);
                self.store.request_retry(id, &secrets(), array.as_ref(), now)
            }
            Wish::CancelSome => self.store.request_cancel_tasks(id, &some, now),
            Wish::Delete { artifacts } => self.store.request_delete(id, artifacts, now),
        };
        let taken = matches!(became, Requested::Taken(_));
        self.world.note(|| format!("{id}: {wish:?}, {}", if taken { "taken" } else { "not taken" }));
        if taken {
            self.world.count(match wish {
                Wish::Cancel => "cancel",
                Wish::Pause => "pause",
                Wish::Resume => "resume",
                Wish::Retry => "retry",
                Wish::CancelSome => "cancel some tasks",
                Wish::Delete { .. } => "delete",
            });
            let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
            for sent in sent.iter_mut().filter(|sent| sent.id == id) {
                sent.wishes.push(wish);
                match wish {
                    Wish::CancelSome => sent.withdrawn = sent.withdrawn.union(&some),
                    Wish::Retry => sent.withdrawn = self.store.withdrawn(id),
                    Wish::Cancel | Wish::Pause | Wish::Resume | Wish::Delete { .. } => {}
                }
            }
        }
    }

    /// The state of the job's array when those of its unfinished tasks go again that are among `some`, or all of them.
    fn retried(&self, job: &Job, some: &TaskSet) -> Option<ArrayState> {
        let newest = self.store.newest_states(job.id);
        let unfinished = [TaskStatus::Pending, TaskStatus::Running, TaskStatus::Error, TaskStatus::Canceled];
        let unfinished = job.tasks_in(&unfinished, &newest);
        let chosen = unfinished.intersection(some);
        let tasks = if chosen.is_empty() { &unfinished } else { &chosen };
        job.retried_array(tasks, &job.tasks_in(&[TaskStatus::Error], &newest))
    }

    /// The paused jobs go on, so that all of them come to an end.
    pub(super) fn resume_all(&self) {
        for sent in self.sent() {
            let paused = |job: &Job| job.phase == Phase::Paused && job.desired == DesiredState::Pause;
            if self.store.find_job(sent.id).is_some_and(|job| paused(&job)) {
                self.wish(sent.id);
            }
        }
    }

    /// Time for all of them to have called.
    pub(super) const LONGEST: Duration = Duration::from_mins(2);
}

fn secrets() -> Secrets {
    let mut secrets = Secrets::default();
    if let Ok(key) = "HF_TOKEN".parse() {
        secrets.env.insert(key, "hunter2".to_owned().into());
    }
    secrets
}
