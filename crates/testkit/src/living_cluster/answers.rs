//! What the other programs see and do, in the parts that take effect at different moments.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::OnceLock,
};

use remote::{
    ArrayAnswers, Cancel, Canceled, Conclude, Concluded, EarlierRun, ImageFile, Markers, PartFound, Poll,
    Purge, Purged, RemoteCommand, Remove, Removed, Requeued, SacctOutcome, Sought, SqueueOutcome,
    StatusChunk, StatusCursor,
};
use slurm::{AccountingRow, Failure, FailureClass, QueueRow, RemotePath, SlurmJobId, SlurmState, TaskSet};

use crate::error_lines::error_lines;

use super::{
    LivingCluster, Site, TOO_MANY,
    disk::StateDir,
    life::{Record, SlurmJob, Turn},
};

impl LivingCluster {
    /// squeue.
    pub fn queue(&self) -> SqueueOutcome {
        let site = self.site();
        if site.weather.scheduler_silent {
            let excerpt = "slurm_load_jobs error: Unable to contact slurm controller".to_owned();
            return SqueueOutcome::Failed(Failure {
                class: FailureClass::Infra,
                rule_id: "simulated",
                excerpt,
            });
        }
        if site.weather.rate_limited {
            return SqueueOutcome::Failed(slurm::failure::classify(TOO_MANY));
        }
        let shown = |job: &&SlurmJob| job.queued && job.index.is_none() && !site.weather.queue_lies_empty;
        SqueueOutcome::Answered(
            site.jobs.values().filter(shown).map(|job| (job.id, queue_row(job))).collect(),
        )
    }

    /// sacct, of these jobs.
    pub fn accounting(&self, ids: &BTreeSet<SlurmJobId>) -> SacctOutcome {
        let site = self.site();
        if ids.is_empty() {
            return SacctOutcome::NotAsked;
        }
        if site.weather.accounting_silent {
            let excerpt = "sacct: error: slurm_persist_conn_open".to_owned();
            return SacctOutcome::Failed(Failure {
                class: FailureClass::Infra,
                rule_id: "simulated",
                excerpt,
            });
        }
        let rows = site.jobs.values().filter(|job| ids.contains(&job.id) && job.index.is_none());
        SacctOutcome::Answered(
            rows.filter_map(|job| Some((job.id, record_row(job, site.record(job)?)))).collect(),
        )
    }

    /// Whether sacct answers.
    pub fn has_accounting(&self) -> bool {
        !self.site().weather.accounting_silent
    }

    /// squeue, by name; none if it does not answer.
    pub fn queue_by_name(&self, name: &str) -> Option<Vec<(SlurmJobId, SlurmState)>> {
        let site = self.site();
        let named = site.jobs.values().filter(|job| job.queued && job.name.as_str() == name);
        let answers = !site.weather.scheduler_silent && !site.weather.rate_limited;
        // An array has one row here.
        let named: BTreeMap<SlurmJobId, SlurmState> = named.map(|job| (job.id, job.state.clone())).collect();
        answers.then(|| named.into_iter().collect())
    }

    /// sacct, by name; none if it does not answer.
    pub fn accounting_by_name(&self, name: &str) -> Option<Vec<SlurmJobId>> {
        let site = self.site();
        let named = site.jobs.values().filter(|job| job.name.as_str() == name && site.record(job).is_some());
        let named: BTreeSet<SlurmJobId> = named.map(|job| job.id).collect();
        (!site.weather.accounting_silent).then(|| named.into_iter().collect())
    }

    /// What a state directory says of who runs the attempt: its claim, and the id that was kept; none if the file system
    /// is not there.
    pub fn kept(&self, dir: &RemotePath) -> Option<(Option<SlurmJobId>, Option<SlurmJobId>)> {
        let site = self.site();
        let kept = site.state(dir).map_or((None, None), |state| (state.run, state.slurm_id));
        (!site.weather.files_gone).then_some(kept)
    }

    /// Closes the fence of a submission, and returns whether none has begun; `None` if the file system is not mounted.
    pub fn shut(&self, job: &Sought) -> Option<bool> {
        let mut site = self.site();
        if site.weather.files_gone {
            return None;
        }
        site.on_both(job.state_dir.as_str(), |state| {
            state.fence.entry(job.send).or_insert(false);
        });
        let state = site.login_disk.states.entry(job.state_dir.to_string()).or_default();
        let mut counted = state.fence.iter().filter(|(send, _)| **send > job.cleared);
        Some(!counted.any(|(_, begun)| *begun))
    }

    /// The marks of the jobs that `queue` does not show as active, and what is new in the status files of those that do
    /// not wait.
    pub fn files(
        &self,
        poll: &Poll,
        queue: &SqueueOutcome,
        arrays: &ArrayAnswers,
    ) -> (HashMap<String, Markers>, Vec<StatusChunk>) {
        let site = self.site();
        let SqueueOutcome::Answered(rows) = queue else { return (HashMap::new(), Vec::new()) };
        let (mut markers, mut status) = (HashMap::new(), Vec::new());
        for job in &poll.jobs {
            let task = |index| {
                let rows = arrays.queue.get(&job.id)?;
                let waiting = || rows.waiting.iter().find(|(set, _)| set.contains(index)).map(|(_, row)| row);
                rows.tasks.get(&index).or_else(waiting)
            };
            let row = job.index.map_or_else(|| rows.get(&job.id), task);
            let (state, label) = (row.map(|row| &row.state), job.label());
            if state.is_none_or(SlurmState::is_final) && site.state(&job.state_dir).is_some() {
                markers.insert(label.clone(), site.markers(&job.state_dir));
            }
            if state != Some(&SlurmState::Pending) {
                status.extend(site.chunk(&label, &job.results_dir, &job.state_dir, &job.status));
            }
        }
        (markers, status)
    }

    pub fn conclude(&self, command: &Conclude) -> Vec<Concluded> {
        let mut site = self.site();
        let gone = site.weather.files_gone;
        let mut concluded = Vec::with_capacity(command.jobs.len());
        for job in &command.jobs {
            let chunk = site.chunk(job.key.name.as_str(), &job.results_dir, &job.state_dir, &job.status);
            let id = site.state(&job.state_dir).and_then(|state| state.run);
            let is_ours = id.is_none() || job.id.is_none() || id == job.id;
            let ours = |one: &&SlurmJob| Some(one.id) == id && one.state_dir == job.state_dir.as_str();
            let log = site.jobs.values().find(ours).map(|one| one.log).unwrap_or_default();
            let log = if gone { Vec::new() } else { log.as_bytes().to_vec() };
            concluded.push(Concluded {
                key: job.key.name.to_string(),
                markers: site.markers(&job.state_dir),
                status: chunk.into_iter().collect(),
                out_tail: Vec::new(),
                role_tails: Vec::new(),
                errors: error_lines(job, &log),
                err_tail: log,
                ended_with: None,
                results: Some(vec![PartFound::Missing; job.results.len()]),
                removed: is_ours && site.remove(&job.state_dir, &job.remove),
                readable: !gone && site.state(&job.state_dir).is_some(),
                left_out: false,
            });
            if is_ours
                && !gone
                && let Some(state) = site.login_disk.states.get_mut(job.state_dir.as_str())
            {
                state.over = job.id;
            }
        }
        concluded
    }

    pub fn cancel(&self, command: &Cancel) -> Canceled {
        let mut site = self.site();
        if site.weather.scheduler_silent {
            let failure = Failure::known(FailureClass::Infra, "simulated", "squeue did not answer");
            return Canceled { refused: Some(failure) };
        }
        if site.weather.rate_limited {
            return Canceled { refused: Some(slurm::failure::classify(TOO_MANY)) };
        }
        let meant = |job: &SlurmJob| {
            let task = |tasks: &TaskSet| job.index.is_some_and(|index| tasks.contains(index));
            command.jobs.iter().any(|(id, key)| *id == job.id && key.name == job.name)
                || command
                    .tasks
                    .iter()
                    .any(|(id, key, tasks)| *id == job.id && key.name == job.name && task(tasks))
                || command.names.iter().any(|key| key.name == job.name)
        };
        let meant = site.jobs.iter().filter(|(_, job)| job.queued && meant(job));
        let numbers: Vec<u32> = meant.map(|(number, _)| *number).collect();
        for number in numbers {
            site.cancel(number);
        }
        Canceled { refused: None }
    }

    pub fn remove(&self, command: &Remove) -> Removed {
        let mut site = self.site();
        let (mut kept, mut held) = (Vec::new(), Vec::new());
        for (place, dir) in command.close.iter().enumerate() {
            held.extend(site.close(dir).map(|id| (place, id)));
        }
        for (place, file) in command.files.iter().enumerate() {
            let is_held = held.iter().any(|(place, _)| command.close[*place] == file.state_dir);
            if is_held || !site.remove(&file.state_dir, std::slice::from_ref(&file.path)) {
                kept.push(place);
            }
        }
        Removed { kept, held }
    }

    pub fn purge(&self, command: &Purge) -> Purged {
        let mut site = self.site();
        if site.weather.files_gone {
            let failure = Failure::known(FailureClass::NotDone, "simulated", "cd: no such directory");
            let places = 0..command.jobs.len();
            return Purged {
                left: places.map(|place| (place, failure.clone())).collect(),
                others: Vec::new(),
            };
        }
        for (_, id) in &command.jobs {
            let (site, id) = (&mut *site, id.to_string());
            // What the login host has not seen yet is gone as well: a file that was removed does not come back.
            site.agenda.retain(|_, turn| !matches!(turn, Turn::Show(write) if write.is_of(&id)));
            for disk in [&mut site.login_disk, &mut site.nodes_disk] {
                disk.private.retain(|path| !path.contains(&id));
                disk.status.retain(|path, _| !path.contains(&id));
                let states = std::mem::take(&mut disk.states).into_iter();
                let left = |(path, state): (String, StateDir)| {
                    let state = if path.contains(&id) { state.purged()? } else { state };
                    Some((path, state))
                };
                disk.states = states.filter_map(left).collect();
            }
        }
        Purged { left: Vec::new(), others: Vec::new() }
    }

    pub fn images(&self, paths: &[RemotePath]) -> Vec<ImageFile> {
        let site = self.site();
        let at = |path: &RemotePath| match site.login_disk.images.contains(path.as_str()) {
            _ if site.weather.files_gone => ImageFile::Unread,
            true => ImageFile::Whole,
            false => ImageFile::Absent,
        };
        paths.iter().map(at).collect()
    }

    /// How the last run of each job ended that was put back into the queue, as far as accounting knows; none if it does
    /// not answer.
    pub fn requeued(&self, command: &Requeued) -> Option<HashMap<SlurmJobId, EarlierRun>> {
        let site = self.site();
        let run = |(id, _): &(SlurmJobId, _)| {
            let job = site.jobs.get(&id.get())?;
            let (_, state, node) = job.ended_runs.iter().rfind(|(shown, ..)| *shown <= site.now)?;
            Some((*id, EarlierRun { state: state.clone(), nodes: node.clone() }))
        };
        (!site.weather.accounting_silent).then(|| command.jobs.iter().filter_map(run).collect())
    }

    /// The cluster's clock, in seconds since 1970.
    pub fn time(&self) -> i64 {
        self.site().seconds()
    }
}

impl Site {
    fn state(&self, dir: &RemotePath) -> Option<&StateDir> {
        self.login_disk.states.get(dir.as_str()).filter(|_| !self.weather.files_gone)
    }

    fn markers(&self, dir: &RemotePath) -> Markers {
        let state = self.state(dir).cloned().unwrap_or_default();
        Markers { exit: state.exit, started: state.started, run_claim: state.run, ..Markers::default() }
    }

    /// The newest line that accounting shows of a job.
    pub(super) fn record<'a>(&self, job: &'a SlurmJob) -> Option<&'a Record> {
        job.records.iter().rfind(|(shown, _)| *shown <= self.now).map(|(_, record)| record)
    }

    /// Changes the state directory of an attempt, as the login host sees it and as the nodes do.
    pub(super) fn on_both(&mut self, dir: &str, change: impl Fn(&mut StateDir)) {
        for disk in [&mut self.login_disk, &mut self.nodes_disk] {
            change(disk.states.entry(dir.to_owned()).or_default());
        }
    }

    /// Closes an attempt, so that no batch script can claim it; returns its owner, if it has one.
    fn close(&mut self, dir: &RemotePath) -> Option<SlurmJobId> {
        if self.weather.files_gone || !closes() {
            return None;
        }
        // Links are made on the file server, whatever a host has not seen yet.
        let holder = self.nodes_disk.states.get(dir.as_str())?.run;
        if holder.is_none() {
            self.on_both(dir.as_str(), |state| state.closed = true);
        }
        holder
    }

    /// Whether the files of an attempt are gone: those of a later one are in the same places.
    fn remove(&mut self, state_dir: &RemotePath, paths: &[RemotePath]) -> bool {
        let split = |dir: &str| -> Option<(String, u32)> {
            let (job, attempt) = dir.rsplit_once('/')?;
            Some((job.to_owned(), attempt.parse().ok()?))
        };
        let ours = split(state_dir.as_str());
        let is_later = |dir: &String| {
            split(dir).zip(ours.as_ref()).is_some_and(|(other, ours)| other.0 == ours.0 && other.1 > ours.1)
        };
        if self.weather.files_gone || self.login_disk.states.keys().any(is_later) {
            return false;
        }
        for path in paths {
            self.login_disk.private.remove(path.as_str());
        }
        true
    }

    /// What is new in the job's status file.
    fn chunk(
        &self,
        key: &str,
        results: &RemotePath,
        dir: &RemotePath,
        known: &[StatusCursor],
    ) -> Option<StatusChunk> {
        let file = self.login_disk.status.get(results.as_str()).filter(|_| !self.weather.files_gone)?;
        let path = results.join("train/status.json").ok()?;
        let size = file.bytes.len() as u64;
        let known = known.iter().find(|known| known.path == path);
        if known.is_some_and(|known| {
            known.inode == file.inode && known.offset == size && known.written_at == file.written_at
        }) {
            return None;
        }
        let resumed = known.filter(|known| known.inode == file.inode && known.offset <= size);
        let start_offset = resumed.map_or(0, |known| known.offset);
        let start = usize::try_from(start_offset).ok()?;
        Some(StatusChunk {
            key: key.to_owned(),
            path,
            inode: file.inode,
            size,
            written_at: file.written_at,
            note: self.state(dir).and_then(|state| state.note_of(file.inode)),
            start_offset,
            skipped: 0,
            before: file.bytes[start.saturating_sub(remote::STATUS_OVERLAP)..start].to_vec(),
            bytes: file.bytes[start..].to_vec(),
            complete: true,
            restarted: known.is_some() && resumed.is_none(),
        })
    }
}

/// Whether the real program closes attempts.
fn closes() -> bool {
    static CLOSES: OnceLock<bool> = OnceLock::new();
    *CLOSES.get_or_init(|| Remove::default().render().program.contains(r#"ln -sT no-owner "$1/run""#))
}

pub(super) fn queue_row(job: &SlurmJob) -> QueueRow {
    QueueRow {
        id: job.id,
        state: job.state.clone(),
        reason: if job.state == SlurmState::Pending { "Priority" } else { "None" }.to_owned(),
        nodes: job.node.clone(),
        submit: Some(job.submit),
        start: job.start,
        end: job.end,
        partition: "polar".to_owned(),
        name: job.name.to_string(),
    }
}

pub(super) fn record_row(job: &SlurmJob, record: &Record) -> AccountingRow {
    AccountingRow {
        id: job.id,
        state: record.state.clone(),
        exit_code: record.exit,
        reason: "None".to_owned(),
        start: record.start,
        end: record.end,
        nodes: job.node.clone(),
        name: job.name.to_string(),
        // Whoever cancels here is somebody.
        canceled_by: (record.state == SlurmState::Cancelled).then_some(1000),
        before: None,
    }
}
