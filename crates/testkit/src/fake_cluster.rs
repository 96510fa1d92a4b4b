//! A cluster that remembers: what was submitted, claimed, finished, canceled and forgotten.
//!
//! It answers the same typed commands as the real one, by the same rules (a claimed attempt is not submitted again, a
//! replay answers the same id, `squeue` forgets what accounting keeps), and it can be told to lose a reply before or
//! after the command had its effect. It cannot run anything: a test says how a job ends.

mod answers;

pub use answers::partitions;

use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
};

use remote::{ExitRecord, How, ImageFile, Sought, Submission, SubmitAnswer};
use slurm::{ExitCode, Failure, FailureClass, NodeName, SlurmJobId, SlurmState};
use uuid::Uuid;

/// What happens to the next command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It never reaches the cluster.
    Unreachable,
    /// It has its effect, and the reply is lost.
    ReplyLost,
    /// It reaches the cluster and dies between its claim and sbatch: no effect, and no reply.
    DiesAfterClaim,
    /// squeue fails; everything else answers.
    SchedulerSilent,
    /// The shared file system is not there; everything else answers.
    FilesAway,
}

/// A command that brought no answer, as the transport would report it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unanswered {
    NotSent,
    Lost,
}

/// One Slurm job.
#[derive(Debug, Clone)]
struct Entry {
    id: SlurmJobId,
    name: String,
    state: SlurmState,
    exit: Option<ExitCode>,
    marker: Option<ExitRecord>,
    /// Whether squeue still shows it.
    queued: bool,
    node: String,
    /// How often it was started.
    runs: i64,
    /// Why it waits.
    reason: String,
    /// How its last run ended, if it was put back into the queue.
    earlier: Option<SlurmState>,
    excluded: Vec<NodeName>,
    log: Vec<u8>,
    /// Its status file has more lines each time.
    is_endless: bool,
}

impl Entry {
    fn come_into(&mut self, state: &SlurmState, code: Option<u8>) {
        self.state = state.clone();
        self.exit = code.map(|code| ExitCode { code, signal: 0 });
        let marker = |code| ExitRecord { slurm_id: self.id, restart: 0, code, at: 1_800_000_000 };
        self.marker = code.map(marker);
    }
}

#[derive(Debug, Default)]
struct State {
    jobs: Vec<Entry>,
    /// Which sends of an attempt were claimed, and whether by themselves.
    claims: HashMap<String, BTreeMap<u32, bool>>,
    ids: HashMap<String, SlurmJobId>,
    removed: HashSet<String>,
    /// The backlogs of status files that conclusions have asked for, by name.
    backlogs: HashMap<String, Vec<u64>>,
    stuck: HashSet<String>,
    purged: HashSet<Uuid>,
    sick: BTreeMap<NodeName, String>,
    images: HashMap<String, ImageFile>,
    faults: VecDeque<Fault>,
    refusal: Option<Failure>,
    missing: HashSet<String>,
    away: bool,
    /// How many nodes have failed for good.
    broken_nodes: u32,
    commands: usize,
}

/// The fake cluster. Shared by reference; every method is one remote command or one act of the test.
#[derive(Debug, Default)]
pub struct FakeCluster(Mutex<State>);

impl FakeCluster {
    pub fn new() -> Self {
        Self::default()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something goes wrong with the next command, or with the one after those already planned.
    pub fn plan_fault(&self, fault: Fault) {
        self.state().faults.push_back(fault);
    }

    /// From now on it is known without a command that none would be sent; or no longer.
    pub fn set_away(&self, away: bool) {
        self.state().away = away;
    }

    pub fn is_away(&self) -> bool {
        self.state().away
    }

    /// sbatch refuses from now on, or accepts again.
    pub fn refuse(&self, refusal: Option<(FailureClass, &str)>) {
        self.state().refusal =
            refusal.map(|(class, excerpt)| Failure { class, rule_id: "fake", excerpt: excerpt.to_owned() });
    }

    /// The file system has nothing at this path from now on.
    pub fn take_away(&self, path: &str) {
        self.state().missing.insert(path.to_owned());
    }

    /// The file cannot be removed from now on.
    pub fn hold_on_to(&self, path: &str) {
        self.state().stuck.insert(path.to_owned());
    }

    /// How many Slurm jobs were ever made under a name.
    pub fn submissions(&self, name: &str) -> usize {
        self.state().jobs.iter().filter(|job| job.name == name).count()
    }

    /// How many remote commands have been sent.
    pub fn commands(&self) -> usize {
        self.state().commands
    }

    /// Whether the file was removed by a command.
    pub fn removed(&self, path: &str) -> bool {
        self.state().removed.contains(path)
    }

    /// How many unread bytes of a status file each conclusion of a job, or of a task, has asked for.
    pub fn backlogs(&self, name: &str) -> Vec<u64> {
        self.state().backlogs.get(name).cloned().unwrap_or_default()
    }

    /// A job that somebody else has submitted, or that is left over from before.
    pub fn add(&self, name: &str, state: &SlurmState) -> Option<SlurmJobId> {
        let mut fake = self.state();
        let entry = fake.entry(name)?;
        let id = entry.id;
        fake.jobs.push(Entry { state: state.clone(), ..entry });
        Some(id)
    }

    /// The state of one Slurm job.
    pub fn state_of(&self, id: SlurmJobId) -> Option<SlurmState> {
        self.state().jobs.iter().find(|job| job.id == id).map(|job| job.state.clone())
    }

    /// The job comes into this state, with the exit code if it ends by itself.
    pub fn set_state(&self, name: &str, state: &SlurmState, code: Option<u8>) {
        self.state()
            .jobs
            .iter_mut()
            .filter(|job| job.name == name)
            .for_each(|job| job.come_into(state, code));
    }

    /// All jobs that Slurm has end well.
    pub fn complete_all(&self) {
        for job in self.state().jobs.iter_mut().filter(|job| job.state != SlurmState::Completed) {
            job.come_into(&SlurmState::Completed, Some(0));
        }
    }

    /// The job runs on this node.
    pub fn run_on(&self, name: &str, node: &str) {
        for job in self.state().jobs.iter_mut().filter(|job| job.name == name) {
            node.clone_into(&mut job.node);
            job.state = SlurmState::Running;
            job.runs += 1;
        }
    }

    /// Slurm puts the job back into its queue, because its run ended so.
    pub fn requeue(&self, name: &str, because: &SlurmState) {
        for job in self.state().jobs.iter_mut().filter(|job| job.name == name) {
            job.state = SlurmState::Pending;
            job.earlier = Some(because.clone());
        }
    }

    /// Slurm says this of the job that waits.
    pub fn wait_for(&self, name: &str, reason: &str) {
        for job in self.state().jobs.iter_mut().filter(|job| job.name == name) {
            reason.clone_into(&mut job.reason);
        }
    }

    /// So many of the partition's four nodes are down.
    pub fn break_nodes(&self, count: u32) {
        self.state().broken_nodes = count;
    }

    /// What the job has written to its standard error.
    pub fn write_log(&self, name: &str, text: &str) {
        for job in self.state().jobs.iter_mut().filter(|job| job.name == name) {
            job.log = text.as_bytes().to_vec();
        }
    }

    /// However much of the job's status file is read, there is more.
    pub fn write_without_end(&self, name: &str) {
        for job in self.state().jobs.iter_mut().filter(|job| job.name == name) {
            job.is_endless = true;
        }
    }

    /// Slurm does not trust the node any more.
    pub fn sicken(&self, node: NodeName, why: &str) {
        self.state().sick.insert(node, why.to_owned());
    }

    /// The nodes that the job is kept away from.
    pub fn excluded(&self, name: &str) -> Vec<NodeName> {
        self.state().jobs.iter().filter(|job| job.name == name).flat_map(|job| job.excluded.clone()).collect()
    }

    /// Whether everything of the job was removed.
    pub fn purged(&self, job: Uuid) -> bool {
        self.state().purged.contains(&job)
    }

    /// Something is at the place of an image from now on.
    pub fn put_image(&self, path: &str, file: ImageFile) {
        self.state().images.insert(path.to_owned(), file);
    }

    /// Whether something is at the place of an image.
    pub fn has_image(&self, path: &str) -> bool {
        self.state().images.contains_key(path)
    }

    /// squeue forgets the job, as it does `MinJobAge` seconds after its end.
    pub fn forget(&self, name: &str) {
        for job in self.state().jobs.iter_mut().filter(|job| job.name == name) {
            job.queued = false;
        }
    }

    /// Neither squeue nor accounting nor a marker knows the job any more.
    pub fn lose(&self, name: &str) {
        self.state().jobs.retain(|job| job.name != name);
    }
}

impl State {
    fn next_fault(&mut self) -> Result<Option<Fault>, Unanswered> {
        self.commands += 1;
        match self.faults.pop_front() {
            Some(Fault::Unreachable) => Err(Unanswered::NotSent),
            fault => Ok(fault),
        }
    }

    /// A job that waits, under the next id.
    fn entry(&self, name: &str) -> Option<Entry> {
        let next = u32::try_from(self.jobs.len()).unwrap_or(0) + 1;
        Some(Entry {
            id: SlurmJobId::new(next)?,
            name: name.to_owned(),
            state: SlurmState::Pending,
            exit: None,
            marker: None,
            queued: true,
            node: "node01".to_owned(),
            runs: 0,
            reason: "None".to_owned(),
            earlier: None,
            excluded: Vec::new(),
            log: b"its last line\n".to_vec(),
            is_endless: false,
        })
    }

    /// Closes the fence of a submission, and returns whether none has begun.
    fn shut(&mut self, job: &Sought) -> bool {
        let sends = self.claims.entry(job.key.name.to_string()).or_default();
        sends.entry(job.send).or_insert(false);
        !sends.iter().any(|(send, begun)| *begun && *send > job.cleared)
    }

    /// The rules of the real program: an id is replayed, a claim without one is looked into, never overridden
    /// unless the entry says so.
    fn submit(&mut self, entry: &Submission) -> SubmitAnswer {
        let name = entry.key.name.as_str();
        if let Some(id) = self.ids.get(name) {
            return SubmitAnswer::Submitted { id: *id, how: How::Replay, extra: Vec::new() };
        }
        let claims = self.claims.get(name);
        let claimed = claims.is_some_and(|sends| sends.keys().any(|send| *send > entry.cleared));
        if let Some(job) = self.jobs.iter().find(|job| job.queued && job.name == name) {
            return SubmitAnswer::Submitted { id: job.id, how: How::Adopted, extra: Vec::new() };
        }
        if claimed {
            return SubmitAnswer::Uncertain;
        }
        let paths: Vec<_> =
            entry.inputs.iter().filter(|path| self.missing.contains(path.as_str())).cloned().collect();
        if !paths.is_empty() {
            return SubmitAnswer::MissingInputs { paths };
        }
        self.claims.entry(name.to_owned()).or_default().insert(entry.send, true);
        if let Some(failure) = &self.refusal {
            return SubmitAnswer::Refused { failure: failure.clone(), rc: 1 };
        }
        let Some(made) = self.entry(name) else { return SubmitAnswer::Skipped };
        let id = made.id;
        self.jobs.push(made);
        self.ids.insert(name.to_owned(), id);
        SubmitAnswer::Submitted { id, how: How::New, extra: Vec::new() }
    }
}
