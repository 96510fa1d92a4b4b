//! Jobs on the cluster that bear our names and that nothing watches: what each of them is, and what is done about it.
//!
//! Nobody is guessed at. A job is ended only when the database itself says that it has no use any more, at two polls in a
//! row; one that it does not know may belong to another service's database, and is shown.

use chrono::TimeDelta;
use remote::{AttemptKey, Subject};
use serde::{Deserialize, Serialize};
use slurm::{JobName, QueueRow, SlurmJobId, SlurmState};
use strum::{Display, EnumString, IntoStaticStr};
use uuid::Uuid;

use crate::{
    clock::Timestamp,
    conversion,
    job::{
        attempt::{self, AttemptNo},
        id::JobId,
    },
    run::observe::is_waiting,
};

/// What all names of ours begin with.
pub const OUR_NAMES: &str = "tao-";

/// So many are remembered for a cluster, the oldest first.
pub const MOST_ORPHANS: usize = 1000;

/// Between the first sight of an orphan and its end.
const CONFIRMED_AFTER: TimeDelta = TimeDelta::seconds(10);
/// Slurm gives a job its `KillWait` (30 s by default) to end; only then does asking again mean anything.
const CANCEL_AGAIN: TimeDelta = TimeDelta::seconds(60);

/// What a name of ours says it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin {
    Attempt { job: JobId, no: AttemptNo },
    Conversion { id: Uuid, run: AttemptNo },
}

impl Origin {
    /// Reads a Slurm job name, if it is one that this service could have given.
    pub fn of(name: &str) -> Option<Self> {
        let origin = if let Some(rest) = name.strip_prefix("tao-job-") {
            let (id, no) = match rest.split_once("-r") {
                Some((id, no)) => (id, AttemptNo::new(no.parse().ok()?)?),
                None => (rest, AttemptNo::FIRST),
            };
            Self::Attempt { job: JobId::new(Uuid::try_parse(id).ok()?), no }
        } else {
            let (id, run) = name.strip_prefix("tao-sqsh-")?.rsplit_once('-')?;
            Self::Conversion { id: Uuid::try_parse(id).ok()?, run: AttemptNo::new(run.parse().ok()?)? }
        };
        // Ids have several spellings, and we have one: another is somebody else's.
        (origin.name() == name).then_some(origin)
    }

    /// What a remote command for it is for.
    pub fn subject(self) -> Subject {
        match self {
            Self::Attempt { job, no } => Subject::Attempt { job: job.get(), no: no.get() },
            Self::Conversion { id, .. } => Subject::Conversion(id),
        }
    }

    fn name(self) -> String {
        match self {
            Self::Attempt { job, no } => attempt::token(job, no),
            Self::Conversion { id, run } => conversion::token(id, run),
        }
    }
}

/// A job of our name in the queue that no poll asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stray {
    pub slurm_id: SlurmJobId,
    pub name: JobName,
    pub origin: Origin,
    pub state: SlurmState,
}

impl Stray {
    /// Reads a row. What has ended, or is about to, holds nothing; a state that we do not know says nothing.
    pub fn of(row: &QueueRow) -> Option<Self> {
        let lives = row.state.is_active()
            && !matches!(
                row.state,
                SlurmState::Completing | SlurmState::StageOut | SlurmState::UpdateDb | SlurmState::Unknown(_)
            );
        Some(Self {
            slurm_id: row.id,
            origin: Origin::of(&row.name)?,
            name: row.name.parse().ok()?,
            state: row.state.clone(),
        })
        .filter(|_| lives)
    }
}

/// What the database says of the job or conversion that a name belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record {
    /// Nothing: it may be another database's.
    None,
    /// It was deleted, by its owner or after its time, and had ended before.
    Deleted,
    /// It belongs to another of the configured clusters, which may be the same one under another name.
    Elsewhere,
    Known {
        /// Its newest attempt or run; nothing before the first.
        newest: Option<AttemptNo>,
        /// The newest is not over.
        open: bool,
        /// The newest one's Slurm job, once it is known.
        slurm_id: Option<SlurmJobId>,
    },
}

/// Why nothing watches it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, Display, EnumString, IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum OrphanKind {
    /// Its attempt is over: a later one runs, or the job has ended.
    Superseded,
    /// A second Slurm job of the attempt that runs.
    Copy,
    /// The job was deleted, by its owner or because it had ended long before.
    Deleted,
    /// An attempt that the database does not know yet: it was restored from before. It is adopted when its turn comes.
    Newer,
    /// The database has never heard of the job: it may be another service's.
    Unknown,
}

/// What a stray is, after what the database says of it; nothing if it is where it belongs. `runs`: whether the queue shows
/// the attempt's own Slurm job as running.
pub fn orphan_kind(stray: &Stray, record: Record, runs: bool) -> Option<OrphanKind> {
    let (newest, open, slurm_id) = match record {
        Record::None => return Some(OrphanKind::Unknown),
        Record::Deleted => return Some(OrphanKind::Deleted),
        Record::Elsewhere => return None,
        Record::Known { newest, open, slurm_id } => (newest, open, slurm_id),
    };
    let (Origin::Attempt { no, .. } | Origin::Conversion { run: no, .. }) = stray.origin;
    if newest.is_none_or(|newest| no > newest) {
        return Some(OrphanKind::Newer);
    }
    if newest != Some(no) || !open {
        return Some(OrphanKind::Superseded);
    }
    // One whose id is not known yet is being submitted, or looked for. Of two copies the one that started first has the
    // attempt: while that can still be this one, it is left alone.
    let is_other = slurm_id.is_some_and(|id| id != stray.slurm_id);
    (is_other && runs && is_waiting(&stray.state)).then_some(OrphanKind::Copy)
}

/// An orphan, as it is remembered from poll to poll.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Orphan {
    pub slurm_id: SlurmJobId,
    pub name: JobName,
    pub kind: OrphanKind,
    /// Slurm's word for its state.
    pub state: String,
    pub first_seen_at: Timestamp,
    /// When its cancellation was last asked for.
    pub cancel_sent_at: Option<Timestamp>,
}

impl Orphan {
    /// The job that it says it belongs to.
    pub fn job(&self) -> Option<JobId> {
        match Origin::of(self.name.as_str())? {
            Origin::Attempt { job, .. } => Some(job),
            Origin::Conversion { .. } => None,
        }
    }

    /// The orphan as remote commands name it.
    pub fn key(&self) -> Option<AttemptKey> {
        let origin = Origin::of(self.name.as_str())?;
        Some(AttemptKey { subject: origin.subject(), name: self.name.clone() })
    }

    /// What it is and what is done about it, for a person.
    pub fn sentence(&self) -> String {
        let what = match self.kind {
            OrphanKind::Superseded => "belongs to an attempt that is over",
            OrphanKind::Copy => "is a second copy of the attempt that runs",
            OrphanKind::Deleted => "belongs to a job that was deleted",
            OrphanKind::Newer => "is of an attempt that the database does not know yet",
            OrphanKind::Unknown => "is unknown to the database",
        };
        let then = if self.cancel_sent_at.is_some() { "; it is canceled" } else { "" };
        format!("Slurm job {} ({}) {what}{then}.", self.slurm_id, self.name)
    }
}

/// The orphans after a poll.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Review {
    pub orphans: Vec<Orphan>,
    /// Those of them that were not there at the last poll.
    pub found: Vec<SlurmJobId>,
    /// Those to be canceled now.
    pub cancel: Vec<SlurmJobId>,
    /// Those to be canceled for the first time.
    pub condemned: Vec<SlurmJobId>,
}

/// Compares what a poll found with what the one before did. `before` is what is remembered of that.
pub fn review_orphans(
    before: &[Orphan],
    mut found: Vec<(Stray, OrphanKind)>,
    cancel_unknown: bool,
    now: Timestamp,
) -> Review {
    found.sort_by_key(|(stray, _)| stray.slurm_id);
    found.truncate(MOST_ORPHANS);
    let mut review = Review::default();
    for (Stray { slurm_id, name, state, .. }, kind) in found {
        // Another kind, or another name, is another finding: it has to be confirmed anew.
        let known = before
            .iter()
            .find(|orphan| (orphan.slurm_id, &orphan.name, orphan.kind) == (slurm_id, &name, kind));
        let mut orphan = Orphan {
            slurm_id,
            name,
            kind,
            state: state.as_str().to_owned(),
            first_seen_at: known.map_or(now, |known| known.first_seen_at),
            cancel_sent_at: known.and_then(|known| known.cancel_sent_at),
        };
        let useless = match kind {
            OrphanKind::Superseded | OrphanKind::Copy | OrphanKind::Deleted => true,
            OrphanKind::Unknown => cancel_unknown,
            OrphanKind::Newer => false,
        };
        let confirmed = known.is_some() && now - orphan.first_seen_at >= CONFIRMED_AFTER;
        let asked = orphan.cancel_sent_at.is_some_and(|at| (now - at).abs() < CANCEL_AGAIN);
        if known.is_none() {
            review.found.push(slurm_id);
        }
        if useless && confirmed && !asked {
            if orphan.cancel_sent_at.is_none() {
                review.condemned.push(slurm_id);
            }
            review.cancel.push(slurm_id);
            orphan.cancel_sent_at = Some(now);
        }
        review.orphans.push(orphan);
    }
    review
}

#[cfg(test)]
mod tests;
