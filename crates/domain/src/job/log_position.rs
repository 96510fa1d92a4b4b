//! How far a log was followed, and what its file looks like next time.
//!
//! A log only grows while its job writes it. What else may happen: somebody empties it, somebody puts another file in
//! its place, and a login host that caches the sizes of files shows it shorter than another one did a moment ago.

/// A place in a log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogPosition {
    /// Which file; none as long as none was seen.
    pub inode: Option<u64>,
    /// The first byte that was not passed on, counted from the beginning of the file.
    pub offset: u64,
    /// The file was shorter than `offset` when it was looked at last.
    doubted: bool,
}

/// What a look at the file says about the place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogSight {
    /// It is the same file, and what was read from the place on follows on.
    FollowsOn,
    /// It is shorter than it was. One look is no proof: look again before believing it.
    Doubtful,
    /// Another file has its name now. The place is at its beginning.
    Replaced,
    /// It was emptied, and may have grown again. The place is at its beginning.
    Truncated,
}

impl LogPosition {
    pub const fn new(inode: Option<u64>, offset: u64) -> Self {
        Self { inode, offset, doubted: false }
    }

    /// Takes a look. `inode` and `size` (bytes) belong together.
    pub fn look(&mut self, inode: u64, size: u64) -> LogSight {
        let known = self.inode.replace(inode);
        if known.is_some_and(|known| known != inode) {
            *self = Self::new(Some(inode), 0);
            return LogSight::Replaced;
        }
        if size >= self.offset {
            self.doubted = false;
            return LogSight::FollowsOn;
        }
        if !self.doubted {
            self.doubted = true;
            return LogSight::Doubtful;
        }
        *self = Self::new(Some(inode), 0);
        LogSight::Truncated
    }

    /// So many bytes were passed on.
    pub fn advance(&mut self, bytes: u64) {
        self.offset = self.offset.saturating_add(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_growing_file_follows_on() {
        let mut position = LogPosition::default();
        assert_eq!(position.look(7, 10), LogSight::FollowsOn);
        position.advance(10);
        assert_eq!(position.look(7, 10), LogSight::FollowsOn);
        assert_eq!(position, LogPosition::new(Some(7), 10));
    }

    #[test]
    fn another_file_begins_anew_at_once() {
        let mut position = LogPosition::new(Some(7), 10);
        assert_eq!(position.look(8, 500), LogSight::Replaced);
        assert_eq!(position, LogPosition::new(Some(8), 0));
    }

    #[test]
    fn a_shorter_file_is_believed_at_the_second_look() {
        let mut position = LogPosition::new(Some(7), 10);
        assert_eq!(position.look(7, 3), LogSight::Doubtful);
        assert_eq!(position.offset, 10);
        assert_eq!(position.look(7, 4), LogSight::Truncated);
        assert_eq!(position, LogPosition::new(Some(7), 0));
    }

    #[test]
    fn a_host_that_lags_for_a_moment_changes_nothing() {
        let mut position = LogPosition::new(Some(7), 10);
        assert_eq!(position.look(7, 3), LogSight::Doubtful);
        assert_eq!(position.look(7, 12), LogSight::FollowsOn);
        assert_eq!(position.look(7, 9), LogSight::Doubtful, "the doubt was dispelled");
        assert_eq!(position.offset, 10);
    }
}
