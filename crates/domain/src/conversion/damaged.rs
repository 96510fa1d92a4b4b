//! Files of the cache that jobs could not use.

use chrono::TimeDelta;
use slurm::RemotePath;

use super::CachedImage;
use crate::{clock::Timestamp, run::diagnosis::FileFault};

/// How long after a file of an image was found damaged no other one is: a log is weak evidence, and each time costs a
/// conversion.
const DISTRUST_INTERVAL: TimeDelta = TimeDelta::hours(1);

impl CachedImage {
    /// The image after a job could not use its file; `None` if nothing changes.
    #[must_use]
    pub fn distrusted(&self, fault: FileFault, now: Timestamp) -> Option<Self> {
        let file = self.file.as_ref()?;
        let is_recent = || self.damaged_at.is_some_and(|at| now - at < DISTRUST_INTERVAL);
        let changes_nothing = match fault {
            FileFault::Missing => self.file_seen_at.is_none(),
            FileFault::Damaged => self.damaged_files.contains(file) || is_recent(),
        };
        if changes_nothing {
            return None;
        }
        let mut next = Self { file_seen_at: None, version: self.version + 1, ..self.clone() };
        if fault == FileFault::Damaged {
            next.damaged_files.push(file.clone());
            next.damaged_at = Some(now);
        }
        Some(next)
    }

    /// Whether a job found the file at `place` damaged.
    pub(super) fn is_damaged(&self) -> bool {
        self.damaged_files.contains(self.place())
    }

    /// The damaged files that a look removes if it finds the file at `place` whole.
    pub fn superseded(&self) -> &[RemotePath] {
        if self.is_damaged() || self.reads_damaged { &[] } else { &self.damaged_files }
    }

    /// A look that found the file at `place` whole has removed them.
    pub(super) fn forget_superseded(&mut self) {
        if !self.superseded().is_empty() {
            self.damaged_files.clear();
        }
    }
}
