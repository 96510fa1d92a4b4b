//! Status files: how far we have read each, and what is new in it.

use crate::{
    ParseError,
    answer::{Line, Parts},
};
use slurm::RemotePath;

/// How far a status file has been read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StatusCursor {
    /// Which file.
    pub path: RemotePath,
    /// Its inode: another one means another file, even under the same name.
    pub inode: u64,
    /// Everything before this byte has been read. Set it past the last complete line.
    pub offset: u64,
    /// The [`written_at`](StatusChunk::written_at) of what was read last: a file that was written anew to the same length
    /// has another.
    pub written_at: i64,
}

/// A part of a status file that had not been read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusChunk {
    /// Whose file, as the question called it.
    pub key: String,
    /// Which file.
    pub path: RemotePath,
    /// Its inode.
    pub inode: u64,
    /// Its size in bytes when it was found.
    pub size: u64,
    /// When it was last written, in microseconds since 1970 by the clock of the file system.
    pub written_at: i64,
    /// What the newest run of the job found when it began.
    pub note: Option<RunNote>,
    /// Where in the file `bytes` begins.
    pub start_offset: u64,
    /// What stands right before that, at most [`STATUS_OVERLAP`] bytes. They were read before: if they are not the same
    /// any more, neither is the file. Fewer than there must be could not be read, or there was no room.
    pub before: Vec<u8>,
    /// What stands there. The last line may not be complete yet.
    pub bytes: Vec<u8>,
    /// True when that is everything up to `size`. Otherwise the rest did not fit into this answer, or could not be
    /// read; `bytes` may even be empty.
    pub complete: bool,
    /// True when the file is not the one the cursor was for, or has shrunk: reading began again at 0.
    pub restarted: bool,
}

/// What the batch script wrote down at the beginning of its newest run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunNote {
    /// When, in microseconds since 1970 by the clock of the file system. Another run has another time.
    pub at: i64,
    /// How often Slurm had requeued the job by then (`SLURM_RESTART_COUNT`).
    pub restart: u32,
    /// Everything before this byte of the file is of an earlier run.
    pub fresh_from: u64,
}

/// How many bytes before a cursor are read again.
pub const STATUS_OVERLAP: usize = 512;
/// How many status files a job has at most; more are not looked at.
pub const STATUS_FILES: usize = 16;

/// How many bytes of overlap there are before an offset.
pub(crate) fn overlap(offset: u64) -> usize {
    usize::try_from(offset).map_or(STATUS_OVERLAP, |offset| offset.min(STATUS_OVERLAP))
}

/// Collects chunks from the lines of an answer: `FILE` says which, the `DATA` after it how many bytes were read of it, and
/// `BYTES` has those of all files, one after the other.
#[derive(Default)]
pub(super) struct StatusReader {
    chunks: Vec<StatusChunk>,
    /// How many bytes belong to each of the files that were named, and to which chunk; to none if it was left out.
    parts: Vec<(usize, Option<usize>)>,
    bytes: Parts,
    /// The last `FILE` was left out, so its bytes go too.
    skipping: bool,
    /// Whose those were.
    left_out: Vec<String>,
}

impl StatusReader {
    /// `keys` names the job behind an index. The rest of the line a job may have had a hand in: what cannot be read of it
    /// drops that file and nothing else.
    pub(super) fn file(&mut self, mut line: Line<'_>, keys: &[&str]) -> Result<(), ParseError> {
        let key = keys[line.index(keys.len())?];
        let chunk = chunk(line, key);
        self.skipping = chunk.is_none();
        if chunk.is_none() {
            self.left_out.push(key.to_owned());
        }
        self.chunks.extend(chunk);
        Ok(())
    }

    pub(super) fn data(&mut self, mut line: Line<'_>) -> Result<(), ParseError> {
        let last = self.chunks.len().checked_sub(1);
        if last.is_none() && !self.skipping {
            return Err(line.malformed("bytes without a file"));
        }
        self.parts.push((line.value()?, last.filter(|_| !self.skipping)));
        Ok(())
    }

    pub(super) fn bytes(&mut self, mut line: Line<'_>) -> Result<(), ParseError> {
        self.bytes = Parts::new(line.blob()?);
        Ok(())
    }

    /// The chunks, and the keys of the jobs that had one left out, as often as they had. What is wrong, if there are more
    /// bytes or fewer than were announced: then nobody knows whose they are.
    pub(super) fn finish(mut self) -> Result<(Vec<StatusChunk>, Vec<String>), &'static str> {
        for (length, owner) in self.parts {
            let part = self.bytes.take(length)?;
            if let Some(chunk) = owner.and_then(|owner| self.chunks.get_mut(owner)) {
                let (before, bytes) = part.split_at(overlap(chunk.start_offset).min(length));
                let end = chunk.start_offset.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
                chunk.complete = end >= chunk.size;
                (chunk.before, chunk.bytes) = (before.to_vec(), bytes.to_vec());
            }
        }
        self.bytes.finish()?;
        Ok((self.chunks, self.left_out))
    }
}

/// What a line says of a file, without its bytes.
fn chunk(mut line: Line<'_>, key: &str) -> Option<StatusChunk> {
    let (inode, size, start_offset) = (line.value().ok()?, line.value().ok()?, line.value().ok()?);
    let restarted = line.value::<u8>().ok()? == 1;
    let written_at = line.value().ok()?;
    let noted_at = line.word().ok()?;
    let (restart, fresh_from) = (line.value().ok()?, line.value().ok()?);
    let note = str::from_utf8(noted_at).ok().and_then(|at| at.parse().ok());
    Some(StatusChunk {
        key: key.to_owned(),
        // With replacement characters in it, it would be the path of no file, and of another one each time.
        path: line.utf8()?.parse().ok()?,
        inode,
        size,
        written_at,
        note: note.map(|at| RunNote { at, restart, fresh_from }),
        start_offset,
        before: Vec::new(),
        bytes: Vec::new(),
        complete: start_offset >= size,
        restarted,
    })
}
