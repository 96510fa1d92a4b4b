//! What remote commands do on the cluster, step by step. Each goes on by itself when nobody waits for it any more.

use std::{
    any::Any,
    collections::{BTreeMap, BTreeSet, HashMap},
    time::Duration,
};

use remote::{
    Allocations, Cancel, CheckImages, Checkpoints, Conclude, Exclude, Excluded, How, Locate, LocateAnswer,
    Located, NodeHealth, NodeHealthAnswer, Partitions, Poll, PollAnswer, Purge, RemoteCommand, Remove,
    Requeued, SacctOutcome, SqueueOutcome, Submission, SubmitAnswer, SubmitBatch,
};
use slurm::{Failure, FailureClass, QueueRow, SlurmJobId, SlurmState};
use testkit::{Accepting, LivingCluster, answer_to, partitions};
use tokio::time::{Instant, sleep};

use super::world::World;
use crate::LinkError;

/// After this long a program begins no sbatch any more, as the real one.
const PATIENCE: Duration = Duration::from_secs(25);
/// The real one's limit for an sbatch.
const SBATCH_LIMIT: Duration = Duration::from_secs(150);
/// How long the controller may take to hear what an sbatch said that was killed: its message time-out.
const LAST_MESSAGE: u64 = 10_000;

/// Somewhere on the far side.
#[derive(Debug, Clone)]
pub(super) struct FarSide {
    pub(super) world: World,
    pub(super) cluster: LivingCluster,
}

impl FarSide {
    /// A little time passes; more, when the host is busy.
    async fn work(&self) {
        let busy = self.world.strikes(30);
        let time = if busy { self.world.millis(100, 4000) } else { self.world.millis(0, 5) };
        if !time.is_zero() {
            sleep(time).await;
        }
    }

    /// None when the program itself is killed.
    pub(super) async fn answer<C: RemoteCommand>(self, command: C) -> Option<Result<C::Output, LinkError>> {
        if let Some(submit) = known(&command).cloned() {
            return self.submit(submit).await.map(|answers| Ok(same(answers)));
        }
        if let Some(locate) = known(&command).cloned() {
            return Some(Ok(same(self.locate(locate).await)));
        }
        if let Some(poll) = known(&command).cloned() {
            return Some(Ok(same(self.poll(poll).await)));
        }
        let repeated = self.world.strikes(20);
        let answer = self.at_once(&command);
        if repeated {
            sleep(self.world.millis(0, 5000)).await;
            return self.at_once(&command);
        }
        answer
    }

    /// The commands that have their effect at one moment.
    fn at_once<C: RemoteCommand>(&self, command: &C) -> Option<Result<C::Output, LinkError>> {
        let cluster = &self.cluster;
        answer_to(command, |one: &Conclude| Ok(cluster.conclude(one)))
            .or_else(|| answer_to(command, |one: &Cancel| Ok(cluster.cancel(one))))
            .or_else(|| answer_to(command, |one: &CheckImages| Ok(cluster.images(&one.paths))))
            .or_else(|| answer_to(command, |one: &Remove| Ok(cluster.remove(one))))
            .or_else(|| answer_to(command, |one: &Purge| Ok(cluster.purge(one))))
            .or_else(|| {
                answer_to(command, |_: &NodeHealth| Ok(NodeHealthAnswer { sick: Some(BTreeMap::new()) }))
            })
            .or_else(|| answer_to(command, |_: &Partitions| Ok(partitions(0))))
            .or_else(|| answer_to(command, |one: &Checkpoints| Ok(vec![None; one.jobs.len()])))
            .or_else(|| {
                answer_to(command, |one: &Exclude| Ok(Excluded { failed: vec![None; one.jobs.len()] }))
            })
            .or_else(|| {
                answer_to(command, |one: &Allocations| {
                    let why = "sacct does not answer".to_owned();
                    cluster.allocations(one).ok_or(LinkError::NotSent { why })
                })
            })
            .or_else(|| {
                answer_to(command, |one: &Requeued| {
                    let why = "sacct does not answer".to_owned();
                    cluster.requeued(one).ok_or(LinkError::NotSent { why })
                })
            })
    }

    async fn submit(self, command: SubmitBatch) -> Option<Vec<SubmitAnswer>> {
        let (began, entries) = (Instant::now(), &command.entries);
        let mut answers: Vec<Option<SubmitAnswer>> =
            entries.iter().map(|entry| self.cluster.known(entry)).collect();
        self.work().await;
        for (entry, answer) in entries.iter().zip(&mut answers).filter(|(_, answer)| answer.is_none()) {
            *answer = self.cluster.claim(entry).err();
        }
        self.work().await;
        for (entry, answer) in entries.iter().zip(&mut answers).filter(|(_, answer)| answer.is_none()) {
            *answer = self.cluster.stage(entry).err();
        }
        self.work().await;
        for (entry, answer) in entries.iter().zip(&mut answers).filter(|(_, answer)| answer.is_none()) {
            if began.elapsed() >= PATIENCE {
                *answer = Some(SubmitAnswer::Skipped);
                continue;
            }
            if self.dies("before sbatch") {
                return None;
            }
            *answer = Some(self.sbatch(entry).await?);
        }
        self.work().await;
        Some(answers.into_iter().map(|answer| answer.unwrap_or(SubmitAnswer::Skipped)).collect())
    }

    fn dies(&self, when: &str) -> bool {
        let dies = self.world.strikes(self.world.temper.sbatch / 10);
        if dies {
            self.world.note(|| format!("a submission program is killed {when}"));
        }
        dies
    }

    async fn sbatch(&self, entry: &Submission) -> Option<SubmitAnswer> {
        let world = &self.world;
        if world.strikes(world.temper.beyond_bound) {
            return Some(self.overdue(entry));
        }
        if !world.strikes(world.temper.sbatch) {
            sleep(world.millis(2, 300)).await;
            return Some(self.accepted(entry));
        }
        match world.dice(|dice| dice.below(5)) {
            0 => {
                world.note(|| format!("sbatch of {} is slow", entry.key.name));
                sleep(world.millis(1000, 100_000)).await;
                Some(self.accepted(entry))
            }
            1 => {
                world.note(|| format!("sbatch of {} is killed after it submitted", entry.key.name));
                sleep(world.millis(2, 3000)).await;
                match self.cluster.accept(entry) {
                    Accepting::Taken(_) => Some(killed(137)),
                    Accepting::Refused(answer) => Some(answer),
                }
            }
            2 => {
                world.note(|| format!("sbatch of {} runs into its limit; it is heard later", entry.key.name));
                let (far, entry) = (self.clone(), entry.clone());
                let late = world.millis(0, LAST_MESSAGE);
                far_off(async move {
                    sleep(SBATCH_LIMIT + late).await;
                    let _ = far.cluster.accept(&entry);
                });
                sleep(SBATCH_LIMIT).await;
                Some(killed(124))
            }
            3 => {
                world.note(|| format!("the program is killed while sbatch of {} submits", entry.key.name));
                sleep(world.millis(2, 20_000)).await;
                let _ = self.cluster.accept(entry);
                None
            }
            _ => {
                world.note(|| format!("sbatch of {} is killed before it submitted", entry.key.name));
                sleep(world.millis(2, 3000)).await;
                Some(killed(137))
            }
        }
    }

    /// The controller takes it later than anybody may expect: only its claim keeps it from running twice.
    fn overdue(&self, entry: &Submission) -> SubmitAnswer {
        self.world.count("beyond every bound");
        self.world.note(|| format!("the controller takes {} beyond every bound", entry.key.name));
        self.cluster.excuse(&entry.key.name);
        let (far, entry, late) = (self.clone(), entry.clone(), self.world.millis(200_000, 600_000));
        far_off(async move {
            sleep(late).await;
            let _ = far.cluster.accept(&entry);
        });
        killed(124)
    }

    fn accepted(&self, entry: &Submission) -> SubmitAnswer {
        match self.cluster.accept(entry) {
            Accepting::Taken(id) => {
                self.world.note(|| format!("Slurm takes {} as {id}", entry.key.name));
                self.cluster.keep_id(entry, id);
                SubmitAnswer::Submitted { id, how: How::New, extra: Vec::new() }
            }
            Accepting::Refused(answer) => answer,
        }
    }

    async fn locate(self, command: Locate) -> LocateAnswer {
        let remote_time = self.cluster.time();
        let names = || command.jobs.iter().map(|job| job.key.name.as_str());
        let unbegun: Vec<_> = command.jobs.iter().map(|job| self.cluster.shut(job)).collect();
        self.work().await;
        let queue: Option<Vec<_>> = names().map(|name| self.cluster.queue_by_name(name)).collect();
        self.work().await;
        let records: Option<Vec<_>> = names().map(|name| self.cluster.accounting_by_name(name)).collect();
        self.work().await;
        let located = command.jobs.iter().enumerate().map(|(index, job)| {
            let kept = self.cluster.kept(&job.state_dir);
            let (run_claim, id_file) = kept.unwrap_or_default();
            Located {
                key: job.key.name.to_string(),
                readable: kept.is_some() && unbegun[index].is_some(),
                unbegun: unbegun[index] == Some(true),
                squeue: queue.as_ref().map(|rows| rows[index].clone()).unwrap_or_default(),
                id_file,
                run_claim,
                sacct: records.as_ref().map(|rows| rows[index].clone()),
            }
        });
        LocateAnswer { located: located.collect(), remote_time, controller_answered: queue.is_some() }
    }

    async fn poll(self, command: Poll) -> PollAnswer {
        let remote_time = self.cluster.time();
        let (squeue, mut arrays) = (self.cluster.queue(), self.cluster.tasks(&command));
        self.work().await;
        let is_untold = |row: &QueueRow| matches!(row.state, SlurmState::Failed | SlurmState::Cancelled);
        let unsaid = |id: &SlurmJobId| match &squeue {
            SqueueOutcome::Answered(rows) => rows.get(id).is_none_or(is_untold),
            SqueueOutcome::Failed(_) => false,
        };
        let asks_of_tasks = self.cluster.add_task_records(&command, &mut arrays);
        let plain = command.jobs.iter().filter(|job| job.index.is_none());
        let plain: BTreeSet<SlurmJobId> = plain.map(|job| job.id).filter(unsaid).collect();
        let sacct = match self.cluster.accounting(&plain) {
            SacctOutcome::NotAsked if asks_of_tasks && self.cluster.has_accounting() => {
                SacctOutcome::Answered(HashMap::new())
            }
            answer => answer,
        };
        self.work().await;
        let (markers, status) = self.cluster.files(&command, &squeue, &arrays);
        // Later, each job that goes on comes to its end.
        let reports = self.cluster.uses(&command, !self.world.is_calm());
        PollAnswer {
            remote_time,
            squeue,
            sacct,
            status,
            markers,
            signs_of_life: HashMap::new(),
            reports,
            arrays,
            dropped_rows: 0,
        }
    }
}

/// What goes on whether or not anybody waits for it: until the history ends.
#[expect(clippy::disallowed_methods, reason = "the runtime of a history takes all that is left with it")]
pub(super) fn far_off(work: impl Future<Output = ()> + Send + 'static) {
    tokio::spawn(work);
}

fn killed(rc: i32) -> SubmitAnswer {
    let failure = Failure::known(FailureClass::Ambiguous, "simulated", "sbatch was killed");
    SubmitAnswer::Refused { failure, rc }
}

/// The command, if it is a `K`.
fn known<K: RemoteCommand>(command: &impl RemoteCommand) -> Option<&K> {
    (command as &dyn Any).downcast_ref()
}

/// The answer, as the type that it has.
fn same<T: Any, U: Any>(answer: T) -> U {
    *(Box::new(answer) as Box<dyn Any>).downcast().unwrap()
}
