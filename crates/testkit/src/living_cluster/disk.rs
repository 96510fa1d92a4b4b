//! The shared file system: as the nodes see it, and as the login host does, which may be later.

use std::collections::{BTreeMap, BTreeSet};

use remote::{ExitRecord, RunNote, StartedMarker, script::EXIT_BEGUN};
use slurm::SlurmJobId;

/// The exit code of a script that SIGTERM ended.
const ENDED_BY_TERM: u8 = 143;

/// The state directory of an attempt.
#[derive(Debug, Clone, Default)]
pub(super) struct StateDir {
    /// The claimed submit fences, and whether a submission claimed them: a lookup closes them.
    pub(super) fence: BTreeMap<u32, bool>,
    pub(super) slurm_id: Option<SlurmJobId>,
    /// The batch script's claim.
    pub(super) run: Option<SlurmJobId>,
    /// It is closed: no batch script can claim it.
    pub(super) closed: bool,
    pub(super) started: Option<StartedMarker>,
    pub(super) exit: Option<ExitRecord>,
    /// Whose end was read: it does not run again.
    pub(super) over: Option<SlurmJobId>,
    /// When the newest run noted how far the status files went, and how far that was, by inode.
    pub(super) note: Option<(i64, BTreeMap<u64, u64>)>,
}

impl StateDir {
    /// Whether it contains only fences that a lookup has closed.
    pub(super) fn is_only_shut(&self) -> bool {
        let marked = self.started.is_some() || self.exit.is_some() || self.note.is_some();
        !self.is_staged() && !marked && self.slurm_id.is_none() && self.run.is_none()
    }

    /// Whether somebody has claimed it to submit it.
    pub(super) fn is_staged(&self) -> bool {
        self.fence.values().any(|begun| *begun)
    }

    /// What a purge leaves: the newest claim, if a submission up to it has not begun.
    pub(super) fn purged(&self) -> Option<Self> {
        let (newest, begun) = self.fence.last_key_value()?;
        let awaited =
            !begun || self.fence.len() < *newest as usize || self.fence.values().any(|begun| !begun);
        awaited.then(|| Self { fence: BTreeMap::from([(*newest, false)]), ..Self::default() })
    }

    /// The code that the script of this Slurm job returns at once, if it has run before: that of the same run, or of one that ended well.
    pub(super) fn code_of_earlier_run(&self, id: SlurmJobId, restart: u32) -> Option<u8> {
        let exit = self.exit.as_ref().filter(|exit| exit.slurm_id == id);
        if self.started.as_ref().is_some_and(|started| (started.slurm_id, started.restart) == (id, restart)) {
            let code = exit.filter(|exit| exit.restart == restart).map(|exit| exit.code);
            return Some(code.filter(|code| *code != ENDED_BY_TERM).unwrap_or(EXIT_BEGUN));
        }
        exit.filter(|exit| exit.code == 0).map(|exit| exit.code)
    }

    /// Whether another send than this one has claimed the attempt, and is not cleared.
    pub(super) fn is_contested(&self, send: u32, cleared: u32) -> bool {
        self.fence.keys().any(|claimed| *claimed > cleared && *claimed != send)
    }

    pub(super) fn note_of(&self, inode: u64) -> Option<RunNote> {
        let (at, sizes) = self.note.as_ref()?;
        let restart = self.started.as_ref().map_or(0, |started| started.restart);
        Some(RunNote { at: *at, restart, fresh_from: sizes.get(&inode).copied().unwrap_or(0) })
    }
}

#[derive(Debug, Clone)]
pub(super) struct StatusJson {
    pub(super) inode: u64,
    pub(super) bytes: Vec<u8>,
    pub(super) written_at: i64,
}

/// A view of the file system.
#[derive(Debug, Clone, Default)]
pub(super) struct Disk {
    pub(super) states: BTreeMap<String, StateDir>,
    /// By the directory of a job's results.
    pub(super) status: BTreeMap<String, StatusJson>,
    /// Files that only their owner may read.
    pub(super) private: BTreeSet<String>,
    pub(super) images: BTreeSet<String>,
}

/// What a job writes: first seen by its node, then by the login host.
#[derive(Debug, Clone)]
pub(super) enum Write {
    Run {
        dir: String,
        id: SlurmJobId,
    },
    Begin {
        dir: String,
        started: StartedMarker,
        note: Option<(i64, BTreeMap<u64, u64>)>,
    },
    Exit {
        dir: String,
        exit: ExitRecord,
    },
    /// A line; `anew` is the inode of a file that takes the place of the old one.
    Line {
        results: String,
        text: String,
        at: i64,
        inode: u64,
        anew: bool,
    },
    Image {
        path: String,
    },
}

impl Write {
    /// Whether it goes to a file of the job of that id.
    pub(super) fn is_of(&self, id: &str) -> bool {
        match self {
            Self::Run { dir, .. } | Self::Begin { dir, .. } | Self::Exit { dir, .. } => dir.contains(id),
            Self::Line { results, .. } => results.contains(id),
            Self::Image { .. } => false,
        }
    }
}

impl Disk {
    pub(super) fn apply(&mut self, write: Write) {
        match write {
            Write::Run { dir, id } => self.states.entry(dir).or_default().run = Some(id),
            Write::Begin { dir, started, note } => {
                let state = self.states.entry(dir).or_default();
                state.exit = None;
                state.started = Some(started);
                state.note = note.or(state.note.take());
            }
            Write::Exit { dir, exit } => self.states.entry(dir).or_default().exit = Some(exit),
            Write::Line { results, text, at, inode, anew } => {
                let fresh = || StatusJson { inode, bytes: Vec::new(), written_at: at };
                let file = self.status.entry(results).or_insert_with(fresh);
                if anew {
                    *file = fresh();
                }
                file.bytes.extend_from_slice(text.as_bytes());
                file.written_at = at;
            }
            Write::Image { path } => {
                self.images.insert(path);
            }
        }
    }
}
