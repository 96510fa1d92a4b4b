//! Orphans: Slurm jobs with our names that no poll watches.
//!
//! An orphan is canceled only if the database proves that it has no use any more, at two polls in a row. A job that is
//! not in the database may belong to another service, and is only reported.

use chrono::TimeDelta;
use remote::AttemptKey;
use serde::{Deserialize, Serialize};
use slurm::{JobName, QueueRow, SlurmJobId, SlurmState};
use strum::{Display, IntoStaticStr};
use utoipa::ToSchema;

use crate::{
    clock::Timestamp,
    job::identity::{AttemptNo, JobId, Origin},
};

/// The most orphans that are stored for a cluster, the oldest first.
pub const MOST_ORPHANS: usize = 1000;

/// The time between the first observation of an orphan and its cancellation.
const CONFIRMED_AFTER: TimeDelta = TimeDelta::seconds(10);
/// Slurm gives a job its `KillWait` (30 s by default) to end; an earlier retry of the cancellation has no effect.
const CANCEL_AGAIN: TimeDelta = TimeDelta::seconds(60);

/// A queued Slurm job with our name that no poll asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stray {
    pub slurm_id: SlurmJobId,
    pub name: JobName,
    pub origin: Origin,
    pub state: SlurmState,
}

impl Stray {
    /// Parses a row. A job that has ended or is about to end is not a stray, and neither is one in an unknown state.
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

/// The database's record of the job of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record {
    /// No record: it may be in another database.
    None,
    /// It was deleted, by its owner or after its retention time, and had ended before.
    Deleted,
    /// It belongs to another configured cluster, which may be the same one under another name.
    Elsewhere,
    Known {
        /// Its newest attempt, if any.
        newest: Option<AttemptNo>,
        /// The newest has not ended.
        open: bool,
        /// The Slurm job of the newest, once it is known.
        slurm_id: Option<SlurmJobId>,
        ahead: Ahead,
    },
}

/// What is expected of attempts that are newer than the database, because attempts queue the next one ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ahead {
    /// The job's attempts queue none.
    Never,
    /// Each may be there while the job goes on.
    Expected,
    /// The job goes on no more.
    Useless,
}

/// Why a Slurm job is an orphan, and what the service does about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Display, IntoStaticStr, ToSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[schema(as = OrphanKindView)]
pub enum OrphanKind {
    /// Its attempt is over. The service cancels it.
    Superseded,
    /// It is a second Slurm job of the active attempt. The service cancels it.
    Copy,
    /// Its job was deleted. The service cancels it.
    Deleted,
    /// Its attempt is newer than the database, which was restored. The service adopts it when the attempt is due.
    Newer,
    /// The database does not contain its job, which may belong to another service. It is left alone unless
    /// `cancel_unknown_jobs` is set.
    Unknown,
}

/// The kind of orphan that a stray is; `None` if it is none. `runs`: whether the queue shows the attempt's own Slurm job as
/// running.
pub fn orphan_kind(stray: &Stray, record: Record, runs: bool) -> Option<OrphanKind> {
    let (newest, open, slurm_id, ahead) = match record {
        Record::None => return Some(OrphanKind::Unknown),
        Record::Deleted => return Some(OrphanKind::Deleted),
        Record::Elsewhere => return None,
        Record::Known { newest, open, slurm_id, ahead } => (newest, open, slurm_id, ahead),
    };
    let no = stray.origin.no;
    if newest.is_none_or(|newest| no > newest) {
        return match ahead {
            Ahead::Expected => None,
            // A later one may be of a retry that a restored database does not know.
            Ahead::Useless if newest.is_some_and(|newest| no == newest.next()) => {
                Some(OrphanKind::Superseded)
            }
            Ahead::Never | Ahead::Useless => Some(OrphanKind::Newer),
        };
    }
    if newest != Some(no) || !open {
        return Some(OrphanKind::Superseded);
    }
    // While its id is not known, a lookup may still adopt this job. Of two copies the first one to start holds the attempt,
    // so a copy is an orphan only if it cannot be the first.
    let is_other = slurm_id.is_some_and(|id| id != stray.slurm_id);
    (is_other && runs && stray.state.is_waiting()).then_some(OrphanKind::Copy)
}

/// An orphan, as it is stored between polls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Orphan {
    pub slurm_id: SlurmJobId,
    pub name: JobName,
    pub kind: OrphanKind,
    /// Its state in Slurm.
    pub state: String,
    pub first_seen_at: Timestamp,
    /// When the service last tried to cancel it.
    pub cancel_sent_at: Option<Timestamp>,
}

impl Orphan {
    /// The job in its name.
    pub fn job(&self) -> Option<JobId> {
        Origin::of(self.name.as_str()).map(|origin| origin.job)
    }

    /// The orphan as remote commands name it.
    pub fn key(&self) -> Option<AttemptKey> {
        let origin = Origin::of(self.name.as_str())?;
        Some(AttemptKey { subject: origin.subject(), name: self.name.clone() })
    }

    /// A description for a person.
    pub fn sentence(&self) -> String {
        let what = match self.kind {
            OrphanKind::Superseded => "belongs to an attempt that has ended",
            OrphanKind::Copy => "is a second copy of a running attempt",
            OrphanKind::Deleted => "belongs to a deleted job",
            OrphanKind::Newer => "belongs to an attempt that is not in the database yet",
            OrphanKind::Unknown => "is not in the database",
        };
        let then = if self.cancel_sent_at.is_some() { "; canceling it" } else { "" };
        format!("Slurm job {} ({}) {what}{then}.", self.slurm_id, self.name)
    }
}

/// The orphans after a poll.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Review {
    pub orphans: Vec<Orphan>,
    /// Those that are new since the last poll.
    pub found: Vec<SlurmJobId>,
    /// Those to cancel now.
    pub cancel: Vec<SlurmJobId>,
    /// Those to cancel for the first time.
    pub condemned: Vec<SlurmJobId>,
}

/// Compares the strays of a poll with the stored orphans of the poll before.
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
        // With another kind or another name it is a new orphan, and has to be confirmed again.
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
