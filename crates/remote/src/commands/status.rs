//! Status files: how far each was read, and its new part.

use crate::{
    ParseError,
    answer::{Line, Parts},
};
use slurm::RemotePath;

/// How far a status file has been read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StatusCursor {
    /// The file.
    pub path: RemotePath,
    /// Its inode: another number is another file, even at the same path.
    pub inode: u64,
    /// Everything before this byte was read. Set it past the last complete line.
    pub offset: u64,
    /// The [`written_at`](StatusChunk::written_at) of the last chunk: it differs if the file was rewritten to the same
    /// length.
    pub written_at: i64,
}

/// An unread part of a status file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusChunk {
    /// The attempt's name in Slurm.
    pub key: String,
    /// The file.
    pub path: RemotePath,
    /// Its inode.
    pub inode: u64,
    /// Its size in bytes when it was found.
    pub size: u64,
    /// When it was last written, in microseconds since 1970 by the clock of the file system.
    pub written_at: i64,
    /// What the newest run of the job found at its start.
    pub note: Option<RunNote>,
    /// Where in the file `bytes` begins.
    pub start_offset: u64,
    /// The unread bytes right before that, which are skipped: there were more than the question allows. Otherwise 0.
    pub skipped: u64,
    /// The bytes right before that, at most [`STATUS_OVERLAP`]. They were read before: if they differ, the file was
    /// rewritten. Fewer bytes mean that the rest could not be read, or did not fit.
    pub before: Vec<u8>,
    /// The new bytes. The last line may not be complete yet.
    pub bytes: Vec<u8>,
    /// Whether `bytes` reaches `size`. Otherwise the rest did not fit into this answer or could not be read, and `bytes` may
    /// be empty.
    pub complete: bool,
    /// Whether the file was replaced or has shrunk since the cursor: reading began again at 0.
    pub restarted: bool,
}

/// The batch script's note from the start of its newest run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunNote {
    /// When, in microseconds since 1970 by the clock of the file system; different for each run.
    pub at: i64,
    /// How often Slurm had requeued the job (`SLURM_RESTART_COUNT`).
    pub restart: u32,
    /// The bytes before this one are from earlier runs.
    pub fresh_from: u64,
}

/// The bytes before a cursor that are read again.
pub const STATUS_OVERLAP: usize = 512;
/// The most status files of a job; more are not read.
pub const STATUS_FILES: usize = 16;
/// If more bytes of a status file are unread, only its end is read. No job writes so much between two polls, but a hole
/// may have any size.
pub const STATUS_BACKLOG: u64 = 128 * 1024 * 1024;

/// The bytes of overlap before an offset.
pub(crate) fn overlap(offset: u64) -> usize {
    usize::try_from(offset).map_or(STATUS_OVERLAP, |offset| offset.min(STATUS_OVERLAP))
}

/// Collects chunks from the lines of an answer: `FILE` names a file, the `DATA` after it gives the number of bytes read, and
/// `BYTES` holds the bytes of all files, one after the other.
#[derive(Default)]
pub(super) struct StatusReader {
    chunks: Vec<StatusChunk>,
    /// For each named file its number of bytes and its chunk; no chunk if the file was left out.
    parts: Vec<(usize, Option<usize>)>,
    bytes: Parts,
    /// The last `FILE` was left out, so its bytes are skipped.
    skipping: bool,
    /// The keys of the files that were left out.
    left_out: Vec<String>,
}

impl StatusReader {
    /// `keys` names the job of an index. The job can influence the rest of the line, so malformed text drops only that
    /// file.
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

    /// The chunks, and the key of each file that was left out. An error if the number of bytes is not the announced one.
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

/// A file from its line, without its bytes.
fn chunk(mut line: Line<'_>, key: &str) -> Option<StatusChunk> {
    let (inode, size, start_offset) = (line.value().ok()?, line.value().ok()?, line.value().ok()?);
    let resumes_at: u64 = line.value().ok()?;
    let restarted = line.value::<u8>().ok()? == 1;
    let written_at = line.value().ok()?;
    let noted_at = line.word().ok()?;
    let (restart, fresh_from) = (line.value().ok()?, line.value().ok()?);
    let note = str::from_utf8(noted_at).ok().and_then(|at| at.parse().ok());
    Some(StatusChunk {
        key: key.to_owned(),
        // With replacement characters, the path would name no file.
        path: line.utf8()?.parse().ok()?,
        inode,
        size,
        written_at,
        note: note.map(|at| RunNote { at, restart, fresh_from }),
        start_offset,
        skipped: start_offset.checked_sub(resumes_at)?,
        before: Vec::new(),
        bytes: Vec::new(),
        complete: start_offset >= size,
        restarted,
    })
}
