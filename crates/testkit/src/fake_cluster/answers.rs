//! What the fake cluster answers to each command.

use std::collections::{HashMap, HashSet};

use remote::{
    Accounted, Allocations, Cancel, Canceled, CheckImages, Checkpoints, Conclude, Concluded, Concluding,
    EarlierRun, Exclude, Excluded, ImageFile, Locate, LocateAnswer, Located, Markers, NodeHealth,
    NodeHealthAnswer, PartFound, Partitions, PartitionsAnswer, Poll, PollAnswer, Purge, Purged,
    RemoteCommand, Remove, Removed, Requeued, STATUS_OVERLAP, SacctOutcome, SqueueOutcome, StatusChunk,
    SubmitAnswer, SubmitBatch,
};
use slurm::{
    AccountingRow, Failure, FailureClass, NodeName, PartitionInfo, QueueRow, RemotePath, SlurmJobId,
    SlurmState,
};

use super::{Entry, FakeCluster, Fault, State, Unanswered};
use crate::{answer_to, error_lines::error_lines};

impl FakeCluster {
    /// Answers a command.
    pub fn call<C: RemoteCommand>(&self, command: &C) -> Result<C::Output, Unanswered> {
        let mut state = self.state();
        let fault = state.next_fault()?;
        let known = answer_to(command, |one: &SubmitBatch| state.submit_all(one, fault))
            .or_else(|| answer_to(command, |one: &Locate| Ok(state.locate(one, fault))))
            .or_else(|| answer_to(command, |one: &Poll| Ok(state.poll(one, fault))))
            .or_else(|| answer_to(command, |one: &Conclude| Ok(state.conclude(one))))
            .or_else(|| answer_to(command, |one: &Cancel| Ok(state.cancel(one, fault))))
            .or_else(|| answer_to(command, |one: &CheckImages| Ok(state.check_images(one))))
            .or_else(|| answer_to(command, |one: &Remove| Ok(state.remove(one))))
            .or_else(|| answer_to(command, |one: &Purge| Ok(state.purge(one))))
            .or_else(|| answer_to(command, |one: &NodeHealth| Ok(state.node_health(one))))
            .or_else(|| answer_to(command, |one: &Requeued| Ok(state.requeued(one))))
            .or_else(|| {
                answer_to(command, |one: &Allocations| Ok(vec![Accounted::default(); one.jobs.len()]))
            })
            .or_else(|| answer_to(command, |_: &Partitions| Ok(partitions(state.broken_nodes))))
            .or_else(|| answer_to(command, |one: &Checkpoints| Ok(vec![None; one.jobs.len()])))
            .or_else(|| answer_to(command, |one: &Exclude| Ok(state.exclude(one))));
        let answer = known.unwrap_or(Err(Unanswered::NotSent))?;
        if fault == Some(Fault::ReplyLost) { Err(Unanswered::Lost) } else { Ok(answer) }
    }
}

impl State {
    fn submit_all(
        &mut self,
        command: &SubmitBatch,
        fault: Option<Fault>,
    ) -> Result<Vec<SubmitAnswer>, Unanswered> {
        if fault == Some(Fault::DiesAfterClaim) {
            for entry in &command.entries {
                self.claims.entry(entry.key.name.to_string()).or_default().insert(entry.send, true);
            }
            return Err(Unanswered::Lost);
        }
        Ok(command.entries.iter().map(|entry| self.submit(entry)).collect())
    }

    fn locate(&mut self, command: &Locate, fault: Option<Fault>) -> LocateAnswer {
        let readable = fault != Some(Fault::FilesAway);
        let unbegun: Vec<_> = command.jobs.iter().map(|job| readable && self.shut(job)).collect();
        let of = |name: &str| self.jobs.iter().filter(|job| job.name == name).cloned().collect::<Vec<_>>();
        let locate = |(key, unbegun): (&str, bool)| Located {
            key: key.to_owned(),
            unbegun,
            squeue: of(key).into_iter().filter(|job| job.queued).map(|job| (job.id, job.state)).collect(),
            id_file: self.ids.get(key).copied().filter(|_| readable),
            run_claim: None,
            readable,
            sacct: Some(of(key).into_iter().map(|job| job.id).collect()),
        };
        LocateAnswer {
            located: command.jobs.iter().map(|job| job.key.name.as_str()).zip(unbegun).map(locate).collect(),
            remote_time: 1_800_000_000,
            controller_answered: fault != Some(Fault::SchedulerSilent),
        }
    }

    fn poll(&self, command: &Poll, fault: Option<Fault>) -> PollAnswer {
        let queue = self.jobs.iter().filter(|job| job.queued).map(|job| (job.id, queue_row(job))).collect();
        let watched: HashSet<_> = command.jobs.iter().map(|job| job.id).collect();
        let gone = |job: &&Entry| !job.queued && watched.contains(&job.id);
        let squeue = if fault == Some(Fault::SchedulerSilent) {
            let excerpt = "slurm_load_jobs error: Unable to contact slurm controller".to_owned();
            SqueueOutcome::Failed(Failure { class: FailureClass::Infra, rule_id: "fake", excerpt })
        } else {
            SqueueOutcome::Answered(queue)
        };
        PollAnswer {
            remote_time: 1_800_000_000,
            squeue,
            sacct: SacctOutcome::Answered(
                self.jobs.iter().filter(gone).map(|job| (job.id, accounting_row(job))).collect(),
            ),
            status: Vec::new(),
            markers: HashMap::new(),
            signs_of_life: HashMap::new(),
            reports: HashMap::new(),
            arrays: self.task_rows(command),
            dropped_rows: 0,
        }
    }

    /// What squeue says of the tasks of arrays: each is in the state of its array.
    fn task_rows(&self, command: &Poll) -> remote::ArrayAnswers {
        let mut asked: Vec<_> = command.jobs.iter().filter_map(|job| Some((job.id, job.index?))).collect();
        for array in &command.arrays {
            asked.extend(array.rest.iter().map(|index| (array.id, index)));
        }
        let mut answers = remote::ArrayAnswers::default();
        for (id, index) in asked {
            if let Some(job) = self.jobs.iter().find(|job| job.queued && job.id == id) {
                answers.queue.entry(id).or_default().tasks.insert(index, queue_row(job));
            }
        }
        answers
    }

    fn conclude(&mut self, command: &Conclude) -> Vec<Concluded> {
        let mut concluded = Vec::new();
        for job in &command.jobs {
            self.backlogs.entry(job.key.name.to_string()).or_default().push(job.status_backlog);
            // The name of a task ends in its index.
            let name = job.key.name.as_str().split('_').next();
            let entry = self.jobs.iter().find(|entry| Some(entry.name.as_str()) == name);
            let exit = entry.and_then(|entry| entry.marker);
            let log = entry.map_or_else(Vec::new, |entry| entry.log.clone());
            let status = entry.filter(|entry| entry.is_endless).and_then(|_| next_part(job));
            self.removed.extend(job.remove.iter().map(ToString::to_string));
            concluded.push(Concluded {
                key: job.key.name.to_string(),
                markers: Markers { exit, ..Markers::default() },
                status: status.into_iter().collect(),
                readable: true,
                left_out: false,
                out_tail: Vec::new(),
                role_tails: Vec::new(),
                errors: error_lines(job, &log),
                err_tail: log,
                ended_with: None,
                results: Some(vec![PartFound::Missing; job.results.len()]),
                removed: !job.remove.iter().any(|path| self.stuck.contains(path.as_str())),
            });
        }
        concluded
    }

    fn cancel(&mut self, command: &Cancel, fault: Option<Fault>) -> Canceled {
        if fault == Some(Fault::SchedulerSilent) {
            let excerpt = "squeue did not answer".to_owned();
            return Canceled {
                refused: Some(Failure { class: FailureClass::NotDone, rule_id: "fake", excerpt }),
            };
        }
        let known =
            |job: &Entry| command.jobs.iter().any(|(id, key)| *id == job.id && key.name.as_str() == job.name);
        let named = |job: &Entry| command.names.iter().any(|key| key.name.as_str() == job.name);
        for job in &mut self.jobs {
            if (known(job) || named(job)) && !job.state.is_final() {
                job.state = SlurmState::Cancelled;
            }
        }
        Canceled { refused: None }
    }

    fn check_images(&mut self, command: &CheckImages) -> Vec<ImageFile> {
        let at = |path: &RemotePath| self.images.get(path.as_str()).copied().unwrap_or(ImageFile::Absent);
        let found: Vec<_> = command.paths.iter().map(at).collect();
        for file in command.superseded.iter().filter(|file| found[file.by] == ImageFile::Whole) {
            self.images.remove(file.path.as_str());
        }
        found
    }

    fn remove(&mut self, command: &Remove) -> Removed {
        let (kept, gone): (Vec<_>, Vec<_>) =
            command.files.iter().enumerate().partition(|(_, file)| self.stuck.contains(file.path.as_str()));
        let kept = kept.into_iter().map(|(place, _)| place).collect();
        let gone: Vec<_> = gone.into_iter().map(|(_, file)| file.path.to_string()).collect();
        self.removed.extend(gone);
        Removed { kept, held: Vec::new() }
    }

    fn purge(&mut self, command: &Purge) -> Purged {
        self.purged.extend(command.jobs.iter().map(|(_, id)| *id));
        Purged { left: Vec::new(), others: Vec::new() }
    }

    fn node_health(&self, command: &NodeHealth) -> NodeHealthAnswer {
        let asked = |node: &NodeName| command.nodes.contains(node);
        let sick = self.sick.iter().filter(|(node, _)| asked(node));
        let sick = sick.map(|(node, why)| (node.clone(), why.clone())).collect();
        NodeHealthAnswer { sick: Some(sick) }
    }

    fn requeued(&self, command: &Requeued) -> HashMap<SlurmJobId, EarlierRun> {
        let asked = |job: &&Entry| command.jobs.iter().any(|(id, _)| *id == job.id);
        let run =
            |job: &Entry| Some((job.id, EarlierRun { state: job.earlier.clone()?, nodes: job.node.clone() }));
        self.jobs.iter().filter(asked).filter_map(run).collect()
    }

    fn exclude(&mut self, command: &Exclude) -> Excluded {
        for (id, _, nodes) in &command.jobs {
            for job in self.jobs.iter_mut().filter(|job| job.id == *id) {
                job.excluded.clone_from(nodes);
            }
        }
        Excluded { failed: vec![None; command.jobs.len()] }
    }
}

/// One partition of four nodes, so many of them down.
pub fn partitions(down: u32) -> PartitionsAnswer {
    let row = |count: u32, state: &str| format!("polar*|up|4:00:00|n/a|{count}|{state}|64|512000|gpu:8");
    let rows = [(4 - down, "idle"), (down, "down")].into_iter().filter(|(count, _)| *count > 0);
    let read = rows.filter_map(|(count, state)| PartitionInfo::from_sinfo(&row(count, state)));
    let (mut found, mut nodes) = (None, Vec::new());
    for (partition, group) in read {
        found = Some(partition);
        nodes.push(group);
    }
    let partitions = found.map(|partition| PartitionInfo { nodes, ..partition }).into_iter().collect();
    PartitionsAnswer { partitions, all_must_allow: true, max_array_size: None, dropped: 0 }
}

/// The next part of a status file of empty lines.
fn next_part(job: &Concluding) -> Option<StatusChunk> {
    const PART: usize = 4096;
    let start_offset = job.status.first().map_or(0, |cursor| cursor.offset);
    let overlap = usize::try_from(start_offset).map_or(STATUS_OVERLAP, |read| read.min(STATUS_OVERLAP));
    Some(StatusChunk {
        key: job.key.name.to_string(),
        path: job.results_dir.join("status.json").ok()?,
        inode: 1,
        size: start_offset + 2 * PART as u64,
        written_at: 0,
        note: None,
        start_offset,
        skipped: 0,
        before: vec![b'\n'; overlap],
        bytes: vec![b'\n'; PART],
        complete: false,
        restarted: false,
    })
}

fn queue_row(job: &Entry) -> QueueRow {
    QueueRow {
        id: job.id,
        state: job.state.clone(),
        reason: job.reason.clone(),
        nodes: job.node.clone(),
        submit: None,
        start: (job.runs > 0).then(|| 1_700_000_000 + job.runs * 100),
        end: None,
        partition: "polar".to_owned(),
        name: job.name.clone(),
    }
}

fn accounting_row(job: &Entry) -> AccountingRow {
    AccountingRow {
        id: job.id,
        state: job.state.clone(),
        exit_code: job.exit,
        reason: "None".to_owned(),
        start: None,
        end: None,
        nodes: job.node.clone(),
        name: job.name.clone(),
        // Whoever cancels here is somebody.
        canceled_by: (job.state == SlurmState::Cancelled).then_some(1000),
        before: None,
    }
}
