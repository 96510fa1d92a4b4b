//! What the fake cluster answers to each command.

use std::collections::{HashMap, HashSet};

use remote::{
    Cancel, Canceled, CheckImages, Checkpoints, Conclude, Concluded, EarlierRun, Exclude, Excluded,
    ImageFile, Locate, LocateAnswer, Located, Markers, NodeHealth, NodeHealthAnswer, Poll, PollAnswer, Purge,
    Purged, Remove, Removed, Requeued, SacctOutcome, SqueueOutcome, SubmitAnswer, SubmitBatch,
};
use slurm::{AccountingRow, Failure, FailureClass, NodeName, QueueRow, RemotePath, SlurmJobId, SlurmState};

use super::{Entry, FakeCluster, Fault, Unanswered, lost_or};

impl FakeCluster {
    pub fn submit(&self, command: &SubmitBatch) -> Result<Vec<SubmitAnswer>, Unanswered> {
        let mut state = self.state();
        let fault = state.next_fault()?;
        if fault == Some(Fault::DiesAfterClaim) {
            for entry in &command.entries {
                state.claims.entry(entry.key.clone()).or_default().insert(entry.send, true);
            }
            return Err(Unanswered::Lost);
        }
        let answers = command.entries.iter().map(|entry| state.submit(entry)).collect();
        lost_or(fault, answers)
    }

    pub fn locate(&self, command: &Locate) -> Result<LocateAnswer, Unanswered> {
        let mut state = self.state();
        let fault = state.next_fault()?;
        let readable = fault != Some(Fault::FilesAway);
        let unbegun: Vec<_> = command.jobs.iter().map(|job| readable && state.shut(job)).collect();
        let of = |name: &str| state.jobs.iter().filter(|job| job.name == name).cloned().collect::<Vec<_>>();
        let locate = |(key, unbegun): (&str, bool)| Located {
            key: key.to_owned(),
            unbegun,
            squeue: of(key).into_iter().filter(|job| job.queued).map(|job| (job.id, job.state)).collect(),
            id_file: state.ids.get(key).copied().filter(|_| readable),
            run_claim: None,
            readable,
            sacct: Some(of(key).into_iter().map(|job| job.id).collect()),
        };
        let answer = LocateAnswer {
            located: command.jobs.iter().map(|job| job.key.as_str()).zip(unbegun).map(locate).collect(),
            remote_time: 1_800_000_000,
            controller_answered: fault != Some(Fault::SchedulerSilent),
        };
        lost_or(fault, answer)
    }

    pub fn poll(&self, command: &Poll) -> Result<PollAnswer, Unanswered> {
        let mut state = self.state();
        let fault = state.next_fault()?;
        let queue = state.jobs.iter().filter(|job| job.queued).map(|job| (job.id, queue_row(job))).collect();
        let watched: HashSet<_> = command.jobs.iter().map(|job| job.id).collect();
        let gone = |job: &&Entry| !job.queued && watched.contains(&job.id);
        let squeue = if fault == Some(Fault::SchedulerSilent) {
            let excerpt = "slurm_load_jobs error: Unable to contact slurm controller".to_owned();
            SqueueOutcome::Failed(Failure { class: FailureClass::Infra, rule_id: "fake", excerpt })
        } else {
            SqueueOutcome::Answered(queue)
        };
        let answer = PollAnswer {
            remote_time: 1_800_000_000,
            squeue,
            sacct: SacctOutcome::Answered(
                state.jobs.iter().filter(gone).map(|job| (job.id, accounting_row(job))).collect(),
            ),
            status: Vec::new(),
            markers: HashMap::new(),
            signs_of_life: HashMap::new(),
            dropped_rows: 0,
        };
        lost_or(fault, answer)
    }

    pub fn conclude(&self, command: &Conclude) -> Result<Vec<Concluded>, Unanswered> {
        let mut state = self.state();
        let fault = state.next_fault()?;
        let mut concluded = Vec::new();
        for job in &command.jobs {
            let entry = state.jobs.iter().find(|entry| entry.name == job.key);
            let exit = entry.and_then(|entry| entry.marker);
            let log = entry.map_or_else(Vec::new, |entry| entry.log.clone());
            state.removed.extend(job.remove.iter().map(ToString::to_string));
            concluded.push(Concluded {
                key: job.key.clone(),
                markers: Markers { exit, ..Markers::default() },
                status: Vec::new(),
                readable: true,
                left_out: false,
                out_tail: Vec::new(),
                err_tail: log,
                role_tails: Vec::new(),
                removed: true,
            });
        }
        lost_or(fault, concluded)
    }

    pub fn cancel(&self, command: &Cancel) -> Result<Canceled, Unanswered> {
        let mut state = self.state();
        let fault = state.next_fault()?;
        let known =
            |job: &Entry| command.jobs.iter().any(|(id, name)| *id == job.id && name.as_str() == job.name);
        let named = |job: &Entry| command.names.iter().any(|name| name.as_str() == job.name);
        for job in &mut state.jobs {
            if (known(job) || named(job)) && !job.state.is_final() {
                job.state = SlurmState::Cancelled;
            }
        }
        lost_or(fault, Canceled { refused: None })
    }

    pub fn check_images(&self, command: &CheckImages) -> Result<Vec<ImageFile>, Unanswered> {
        let mut state = self.state();
        let fault = state.next_fault()?;
        let at = |path: &RemotePath| state.images.get(path.as_str()).copied().unwrap_or(ImageFile::Absent);
        let found = command.paths.iter().map(at).collect();
        lost_or(fault, found)
    }

    pub fn remove(&self, command: &Remove) -> Result<Removed, Unanswered> {
        let mut state = self.state();
        let fault = state.next_fault()?;
        let (kept, gone): (Vec<_>, Vec<_>) =
            command.files.iter().enumerate().partition(|(_, file)| state.stuck.contains(file.path.as_str()));
        let kept = kept.into_iter().map(|(place, _)| place).collect();
        let gone: Vec<_> = gone.into_iter().map(|(_, file)| file.path.to_string()).collect();
        state.removed.extend(gone);
        lost_or(fault, Removed { kept, held: Vec::new() })
    }

    pub fn purge(&self, command: &Purge) -> Result<Purged, Unanswered> {
        let mut state = self.state();
        let fault = state.next_fault()?;
        state.purged.extend(command.jobs.iter().map(|(_, id)| *id));
        lost_or(fault, Purged { left: Vec::new(), others: Vec::new() })
    }

    pub fn node_health(&self, command: &NodeHealth) -> Result<NodeHealthAnswer, Unanswered> {
        let mut state = self.state();
        let fault = state.next_fault()?;
        let asked = |node: &NodeName| command.nodes.contains(node);
        let sick = state.sick.iter().filter(|(node, _)| asked(node));
        let sick = sick.map(|(node, why)| (node.clone(), why.clone())).collect();
        lost_or(fault, NodeHealthAnswer { sick: Some(sick) })
    }

    pub fn requeued(&self, command: &Requeued) -> Result<HashMap<SlurmJobId, EarlierRun>, Unanswered> {
        let mut state = self.state();
        let fault = state.next_fault()?;
        let asked = |job: &&Entry| command.jobs.iter().any(|(id, _)| *id == job.id);
        let run =
            |job: &Entry| Some((job.id, EarlierRun { state: job.earlier.clone()?, nodes: job.node.clone() }));
        let runs = state.jobs.iter().filter(asked).filter_map(run).collect();
        lost_or(fault, runs)
    }

    /// One partition of four nodes, whatever jobs there are.
    pub fn partitions(&self, command: &remote::Partitions) -> Result<remote::PartitionsAnswer, Unanswered> {
        let mut state = self.state();
        let fault = state.next_fault()?;
        let row =
            |count: u32, state: &str| format!("ROW polar*|up|4:00:00|n/a|{count}|{state}|64|512000|gpu:8\n");
        let down = state.broken_nodes;
        let rows = row(4 - down, "idle") + &if down > 0 { row(down, "down") } else { String::new() };
        let text = format!("ENFORCE ALL\n{rows}END {}\n", 1 + rows.lines().count());
        let raw = remote::RawOutput { stdout: text.into_bytes(), ..remote::RawOutput::default() };
        lost_or(fault, remote::RemoteCommand::parse(command, &raw).map_err(|_| Unanswered::Lost)?)
    }

    pub fn checkpoints(&self, command: &Checkpoints) -> Result<Vec<Option<RemotePath>>, Unanswered> {
        let mut state = self.state();
        let fault = state.next_fault()?;
        lost_or(fault, vec![None; command.results.len()])
    }

    pub fn exclude(&self, command: &Exclude) -> Result<Excluded, Unanswered> {
        let mut state = self.state();
        let fault = state.next_fault()?;
        for (id, _, nodes) in &command.jobs {
            for job in state.jobs.iter_mut().filter(|job| job.id == *id) {
                job.excluded.clone_from(nodes);
            }
        }
        lost_or(fault, Excluded { failed: vec![None; command.jobs.len()] })
    }
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
