//! Status files: how far we have read each, and what is new in it.

use crate::{ParseError, RemotePath, answer::Line};

/// How far a status file has been read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StatusCursor {
    /// Which file.
    pub path: RemotePath,
    /// Its inode: another one means another file, even under the same name.
    pub inode: u64,
    /// Everything before this byte has been read. Set it past the last complete line.
    pub offset: u64,
}

/// A part of a status file that had not been read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusChunk {
    /// Whose file, as the question called it.
    pub key: String,
    /// Which file: the one of the cursor while it exists, else the one written last.
    pub path: RemotePath,
    /// Its inode.
    pub inode: u64,
    /// Its size in bytes when it was found.
    pub size: u64,
    /// Where in the file `bytes` begins.
    pub start_offset: u64,
    /// What stands there. The last line may not be complete yet.
    pub bytes: Vec<u8>,
    /// True when that is everything up to `size`. Otherwise the rest did not fit into this answer, or could not be
    /// read; `bytes` may even be empty.
    pub complete: bool,
    /// True when the file is not the one the cursor was for, or has shrunk: reading began again at 0.
    pub restarted: bool,
}

/// Collects chunks from the lines of an answer: `FILE` says which, the `DATA` after it holds the bytes.
#[derive(Default)]
pub(super) struct StatusReader {
    chunks: Vec<StatusChunk>,
    /// The path of the last `FILE` was not one of ours to name, so its bytes go too.
    skipping: bool,
    dropped: usize,
}

impl StatusReader {
    /// `key_of` names the job behind an index.
    pub(super) fn file(&mut self, mut line: Line<'_>, keys: &[&str]) -> Result<(), ParseError> {
        let index = line.index(keys.len())?;
        let (inode, size, start_offset) = (line.value()?, line.value()?, line.value()?);
        let restarted = line.value::<u8>()? == 1;
        self.skipping = true;
        match line.rest().parse::<RemotePath>() {
            Ok(path) => {
                self.skipping = false;
                let key = keys[index].to_owned();
                self.chunks.push(StatusChunk {
                    key,
                    path,
                    inode,
                    size,
                    start_offset,
                    bytes: Vec::new(),
                    complete: start_offset >= size,
                    restarted,
                });
            }
            Err(_) => self.dropped += 1,
        }
        Ok(())
    }

    pub(super) fn data(&mut self, mut line: Line<'_>) -> Result<(), ParseError> {
        if self.skipping {
            return Ok(());
        }
        let bytes = line.blob()?;
        match self.chunks.last_mut() {
            Some(chunk) => {
                let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
                chunk.complete = chunk.start_offset.saturating_add(length) >= chunk.size;
                chunk.bytes = bytes;
            }
            None => return Err(line.malformed("bytes without a file")),
        }
        Ok(())
    }

    /// The chunks, and how many were left out because of their path.
    pub(super) fn finish(self) -> (Vec<StatusChunk>, usize) {
        (self.chunks, self.dropped)
    }
}
