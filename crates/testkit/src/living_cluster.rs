//! A cluster on which time passes: jobs wait, start, write, end in every way there is, and are forgotten.
//!
//! It speaks the same typed commands as the real one, but in the parts that take effect at different moments
//! (`answers`, `submission`): what stands between them is up to whoever drives it. What the batch script and the
//! submission program do about claims and notes is done only if their real text says so. Everything that happens follows
//! from the seed and from what is asked when.

mod allocations;
mod answers;
mod chain;
mod disk;
mod entrance;
mod life;
mod plan;
mod submission;
mod task_rows;
mod truth;
mod usage;

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use chrono::TimeDelta;
use domain::{Clock, Timestamp};
use uuid::Uuid;

use crate::dice::Dice;
use disk::{Disk, Write};
use life::{SlurmJob, Turn};

pub use plan::Word;
pub use submission::Accepting;
pub use truth::{TrueJob, Truth};

/// What is wrong with the cluster at the moment.
#[expect(clippy::struct_excessive_bools, reason = "each is one thing that can be wrong, whatever else is")]
#[derive(Debug, Clone, Default)]
pub struct Weather {
    /// squeue, sbatch and scancel fail.
    pub scheduler_silent: bool,
    /// squeue shows nothing, and says that this is all.
    pub queue_lies_empty: bool,
    /// sacct fails.
    pub accounting_silent: bool,
    /// How late accounting learns of what happens.
    pub accounting_lag: TimeDelta,
    /// The file system is not there on the login host.
    pub files_gone: bool,
    /// How late the login host sees what jobs write.
    pub files_lag: TimeDelta,
    /// sbatch refuses because the user has too many jobs.
    pub full: bool,
    /// squeue, sbatch and scancel fail because there are too many requests.
    pub rate_limited: bool,
}

/// What Slurm answers to too many requests.
const TOO_MANY: &str = "slurm_load_jobs error: Rate limit exceeded, please retry momentarily";

/// Whether a job is over for the service: then nothing of it may begin to run.
type IsOver = Box<dyn Fn(Uuid) -> bool + Send + Sync>;

/// The cluster. Cheap to clone; clones are the same one.
#[derive(Clone)]
pub struct LivingCluster {
    clock: Arc<dyn Clock>,
    site: Arc<Mutex<Site>>,
}

struct Site {
    dice: Dice,
    /// How far its clock is ahead of ours.
    ahead: TimeDelta,
    now: Timestamp,
    weather: Weather,
    jobs: BTreeMap<u32, SlurmJob>,
    /// What happens next, in order.
    agenda: BTreeMap<(Timestamp, u64), Turn>,
    turns: u64,
    /// As the nodes see it, and as the login host does.
    nodes_disk: Disk,
    login_disk: Disk,
    shown_until: Timestamp,
    inodes: u64,
    truth: Truth,
    is_over: IsOver,
}

impl fmt::Debug for LivingCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LivingCluster")
    }
}

impl LivingCluster {
    /// `ahead` is how far the cluster's clock is ahead of `clock`.
    pub fn new(seed: u64, clock: Arc<dyn Clock>, ahead: TimeDelta, is_over: IsOver) -> Self {
        let now = clock.now();
        let site = Site {
            dice: Dice::new(seed),
            ahead,
            now,
            weather: Weather::default(),
            jobs: BTreeMap::new(),
            agenda: BTreeMap::new(),
            turns: 0,
            nodes_disk: Disk::default(),
            login_disk: Disk::default(),
            shown_until: now,
            inodes: 100,
            truth: Truth::default(),
            is_over,
        };
        Self { clock, site: Arc::new(Mutex::new(site)) }
    }

    /// The site as it is now: everything that was due until now has happened.
    fn site(&self) -> MutexGuard<'_, Site> {
        let mut site = self.site.lock().unwrap_or_else(PoisonError::into_inner);
        site.live_until(self.clock.now());
        site
    }

    pub fn change_weather(&self, change: impl FnOnce(&mut Weather)) {
        change(&mut self.site().weather);
    }

    /// Looks at what really happened.
    pub fn truth<T>(&self, look: impl FnOnce(&Truth) -> T) -> T {
        look(&self.site().truth)
    }

    /// The Slurm jobs that have not ended.
    pub fn active(&self) -> Vec<(u32, String)> {
        let site = self.site();
        let active = site.jobs.values().filter(|job| job.is_active());
        active.map(|job| (job.id.get(), job.name.to_string())).collect()
    }

    /// The files of a job that hold its secrets and are there.
    pub fn private_files(&self, of: Uuid) -> Vec<String> {
        let id = of.to_string();
        self.site().login_disk.private.iter().filter(|path| path.contains(&id)).cloned().collect()
    }

    /// Whether anything of a job is there.
    pub fn has_files(&self, of: Uuid) -> bool {
        let (site, id) = (self.site(), of.to_string());
        let has = |mut paths: Box<dyn Iterator<Item = &String> + '_>| paths.any(|path| path.contains(&id));
        has(Box::new(site.login_disk.private.iter()))
            // A look that was held up until the job was gone leaves its claim behind, in a directory of its own.
            || has(Box::new(site.login_disk.states.iter().filter(|(_, dir)| !dir.is_only_shut()).map(|(path, _)| path)))
            || has(Box::new(site.login_disk.status.keys()))
    }
}

impl Site {
    fn live_until(&mut self, now: Timestamp) {
        while let Some(entry) = self.agenda.first_entry().filter(|entry| entry.key().0 <= now) {
            let ((at, _), turn) = entry.remove_entry();
            self.now = at.max(self.now);
            self.take(turn);
        }
        self.now = now.max(self.now);
    }

    fn plan(&mut self, time: TimeDelta, turn: Turn) {
        self.turns += 1;
        self.agenda.insert((self.now + time, self.turns), turn);
    }

    /// The cluster's clock, in seconds.
    fn seconds(&self) -> i64 {
        (self.now + self.ahead).timestamp()
    }

    fn micros(&self) -> i64 {
        (self.now + self.ahead).timestamp_micros()
    }

    /// A node writes. The login host sees all writes in their order, and none before its time.
    fn write(&mut self, write: Write) {
        self.nodes_disk.apply(write.clone());
        self.shown_until = self.shown_until.max(self.now + self.weather.files_lag);
        if self.shown_until <= self.now {
            self.login_disk.apply(write);
        } else {
            self.truth.files_were_late = true;
            let time = self.shown_until - self.now;
            self.plan(time, Turn::Show(write));
        }
    }
}
