//! The read positions in a job's status files, and their new lines.
//!
//! Every line counts exactly once: one change of the job moves the cursor and stores the events. The lines of several
//! files are taken in the order in which the files were written, so that the newest status comes last. The lines' own
//! `date` and `time` have no zone, and are as wrong as their node's clock. A job with SUCCESS in one file and FAILURE as
//! the last status of another has failed.

use chrono::TimeDelta;
use remote::{STATUS_FILES, STATUS_OVERLAP, StatusChunk, StatusCursor};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use slurm::RemotePath;

use crate::{
    clock::Timestamp,
    progress::{
        status_file::{StatusWord, Text, cut, nuls, read_line},
        summary::Progress,
    },
};

/// The status files of one job, with their read positions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StatusFiles {
    files: Vec<StatusFile>,
    /// The newest run note, by the file system's time. A run leaves it before it writes, to record the files that it found.
    note_at: Option<i64>,
    /// The requeue count in that note.
    restart: u32,
    /// The note of the run before: while it is the newest, the current run has not begun to write.
    old_note_at: Option<i64>,
    /// The run before the current one, as far as it was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<Box<RunBefore>>,
    /// Events that were read and are not stored yet.
    #[serde(skip)]
    events: Vec<StatusEvent>,
}

/// A run, as it was known when the next one began.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct RunBefore {
    /// The observed requeue count at its start.
    requeues: u32,
    progress: Progress,
    status: StatusFiles,
}

/// One status file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct StatusFile {
    path: RemotePath,
    inode: u64,
    /// The read position: everything before this byte was read.
    offset: u64,
    /// The modification time at the last read.
    written_at: i64,
    /// A checksum of the bytes right before the offset. It detects a file that was cut and has grown beyond the offset.
    #[serde(rename = "seal")]
    overlap_hash: u64,
    /// The offset is within a line that is too long.
    skipping: bool,
    /// The current run has rewritten the file from its start, so no line is of an earlier run.
    rewritten: bool,
    /// The message of the first FAILURE since its last other status.
    failure: Option<String>,
}

/// A visible event from a status file.
#[derive(Debug, Clone, PartialEq)]
pub struct StatusEvent {
    pub kind: StatusEventKind,
    /// The file's path below the job's results.
    pub file: String,
    /// An earlier run or attempt wrote it.
    pub earlier_run: bool,
    pub data: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum StatusEventKind {
    /// A line.
    Status,
    /// There are too many lines: further ones count for the progress only.
    EventsTruncated,
}

/// The limits of a job's events, in lines and in bytes.
const MAX_EVENTS: u64 = 100_000;
const MAX_EVENT_BYTES: u64 = 64 * 1024 * 1024;

/// The assumed largest difference between two clocks of one cluster.
pub(crate) const CLOCKS_AGREE: TimeDelta = TimeDelta::seconds(30);

/// What is known about the run while its lines are read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading<'a> {
    /// The job's results directory.
    pub(crate) results: &'a str,
    /// When Slurm started the current run.
    pub(crate) started_at: Option<Timestamp>,
    /// The observed requeue count of the attempt.
    pub(crate) requeues: u32,
    /// The current run writes no more. Lines that may be of an earlier run then count as such.
    pub(crate) over: bool,
    pub(crate) now: Timestamp,
}

/// The run that wrote a chunk.
enum Writer {
    /// The current run, from this byte on.
    Current {
        from: u64,
    },
    Earlier,
    /// Not known yet: the current run has not left its note.
    Unknown,
}

impl StatusFiles {
    /// The read position of each file.
    pub fn cursors(&self) -> Vec<StatusCursor> {
        let cursor = |file: &StatusFile| StatusCursor {
            path: file.path.clone(),
            inode: file.inode,
            offset: file.offset,
            written_at: file.written_at,
        };
        self.files.iter().map(cursor).collect()
    }

    /// The events since the job was loaded. They must be stored together with the cursors, or both dropped.
    pub fn events(&self) -> &[StatusEvent] {
        &self.events
    }

    /// The value after the events were stored.
    #[must_use]
    pub fn stored(&self) -> Self {
        Self { events: Vec::new(), ..self.clone() }
    }

    /// Starts another run: the current content of the files is not its own. `progress` and `requeues` are those of the run
    /// that ends.
    pub fn begin_run(&mut self, progress: &Progress, requeues: u32) {
        let was_read = progress.word.is_some() || self.note_at != self.old_note_at;
        if was_read {
            let status = Self { before: None, ..self.stored() };
            self.before = Some(Box::new(RunBefore { requeues, progress: progress.clone(), status }));
        }
        self.old_note_at = self.note_at;
        for file in &mut self.files {
            file.rewritten = false;
            file.failure = None;
        }
    }

    /// Returns to the run after this many requeues, since no run began after it. Returns its progress, unless it is the
    /// current run or was not read.
    pub(crate) fn resume_run(&mut self, requeues: u32) -> Option<Progress> {
        let before = self.before.take_if(|before| before.requeues == requeues)?;
        let RunBefore { progress, status, .. } = *before;
        *self = Self { events: std::mem::take(&mut self.events), ..status };
        Some(progress)
    }

    /// The restart count in the note of an unexpected run: one after more requeues than were observed, or after the run
    /// that was read.
    pub(crate) fn unseen_run(&self, chunk: &StatusChunk, requeues: u32) -> Option<u32> {
        let restart = chunk.note?.restart;
        let follows =
            self.note_at.is_some_and(|read| restart > self.restart && self.old_note_at != Some(read));
        (restart > requeues || follows).then_some(restart)
    }

    /// Whether all lines that were read are of runs before the one after this many requeues.
    pub(crate) fn were_read_before(&self, restart: u32) -> bool {
        self.note_at.is_some() && self.restart < restart
    }

    /// The value for the next attempt, which continues to read where this one ended.
    #[must_use]
    pub(crate) fn inherited(&self) -> Self {
        let mut inherited = self.stored();
        inherited.begin_run(&Progress::default(), 0);
        inherited.before = None;
        inherited.restart = 0;
        inherited
    }

    /// The message of a file whose last status is FAILURE.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.files.iter().find_map(|file| file.failure.as_deref())
    }

    /// Whether it is not known yet which run wrote the chunk.
    pub(crate) fn is_held_back(&self, chunk: &StatusChunk, run: u32, reading: Reading<'_>) -> bool {
        matches!(self.writer(chunk, run, reading), Writer::Unknown)
    }

    fn writer(&self, chunk: &StatusChunk, run: u32, reading: Reading<'_>) -> Writer {
        let Some(note) = chunk.note else {
            return if run == 0 || reading.over { Writer::Current { from: 0 } } else { Writer::Unknown };
        };
        // The note of the run before may not have been read. Its count and its time identify it; not the time alone, since
        // the clock of a node may be minutes slow.
        let was_before = |started: Timestamp| {
            note.restart < reading.requeues && note.at < (started - CLOCKS_AGREE).timestamp_micros()
        };
        // By its count alone it may be: the file system may not show the note of the current run yet.
        let may_be_before = |started: Timestamp| note.at < (started + CLOCKS_AGREE).timestamp_micros();
        let is_doubtful =
            run > 0 && note.restart < reading.requeues && reading.started_at.is_none_or(may_be_before);
        let is_old =
            run > 0 && (self.old_note_at == Some(note.at) || reading.started_at.is_some_and(was_before));
        match (is_old, reading.over) {
            (true, true) => Writer::Earlier,
            (true, false) => Writer::Unknown,
            (false, false) if is_doubtful => Writer::Unknown,
            (false, _) => Writer::Current { from: note.fresh_from },
        }
    }

    /// Takes in the complete lines of a chunk. A chunk that does not continue at the read position is ignored, and requested
    /// again.
    pub(crate) fn take(&mut self, chunk: &StatusChunk, progress: &mut Progress, reading: Reading<'_>) {
        let from = match self.writer(chunk, progress.run, reading) {
            Writer::Unknown => return,
            Writer::Earlier => u64::MAX,
            Writer::Current { from } => from,
        };
        if let Some(note) = chunk.note {
            (self.note_at, self.restart) = (Some(note.at), note.restart);
        }
        let Some(index) = self.follow(chunk) else { return };
        let file = &mut self.files[index];
        // Shorter than the run found it: the run has truncated it.
        file.rewritten |= from != u64::MAX && chunk.size < from;
        let fresh_from = if file.rewritten { 0 } else { from };
        if chunk.skipped > 0 {
            // Behind a hole begins a line.
            file.skipping = chunk.bytes.first().is_some_and(|byte| *byte != 0);
            let data = json!({ "skipped_bytes": chunk.skipped });
            record(file, data, 0, chunk.start_offset >= fresh_from, progress, &mut self.events, reading);
        }
        let cut = cut(&chunk.bytes, file.skipping);
        for (at, text) in &cut.lines {
            let fresh = chunk.start_offset + *at as u64 >= fresh_from;
            read_into(file, *text, fresh, progress, &mut self.events, reading);
        }
        file.offset = chunk.start_offset + cut.taken as u64;
        file.written_at = chunk.written_at;
        file.skipping = cut.skipping;
        file.overlap_hash = overlap_hash(&chunk.before, &chunk.bytes[..cut.taken]);
    }

    /// Takes in a last line without a newline, once the file is no longer written.
    pub(crate) fn take_rest(&mut self, chunk: &StatusChunk, progress: &mut Progress, reading: Reading<'_>) {
        let Some(file) = self.files.iter_mut().find(|file| file.path == chunk.path) else { return };
        let read = file.offset.checked_sub(chunk.start_offset).and_then(|read| usize::try_from(read).ok());
        let Some(rest) = read.and_then(|read| chunk.bytes.get(read..)) else { return };
        let text = &rest[nuls(rest)..];
        if text.is_empty() || !chunk.complete || file.inode != chunk.inode || file.skipping {
            return;
        }
        let fresh_from = chunk.note.filter(|_| !file.rewritten).map_or(0, |note| note.fresh_from);
        let fresh = file.offset >= fresh_from;
        read_into(file, Text::Whole(text), fresh, progress, &mut self.events, reading);
        file.offset += rest.len() as u64;
        file.overlap_hash = overlap_hash(&chunk.before, &chunk.bytes);
    }

    /// The index of the file that a chunk continues, prepared for it; `None` if it continues none.
    fn follow(&mut self, chunk: &StatusChunk) -> Option<usize> {
        // There was no room for its bytes.
        if chunk.skipped > 0 && chunk.bytes.is_empty() {
            return None;
        }
        let Some(index) = self.files.iter().position(|file| file.path == chunk.path) else {
            if self.files.len() >= STATUS_FILES || chunk.start_offset != chunk.skipped {
                return None;
            }
            self.files.push(StatusFile::new(chunk));
            return Some(self.files.len() - 1);
        };
        let file = &mut self.files[index];
        if chunk.restarted || file.inode != chunk.inode {
            let rewritten = file.rewritten && file.inode == chunk.inode;
            *file = StatusFile { rewritten, ..StatusFile::new(chunk) };
            return (chunk.start_offset == chunk.skipped).then_some(index);
        }
        if chunk.skipped > 0 {
            return (chunk.start_offset - chunk.skipped == file.offset).then_some(index);
        }
        let overlap =
            usize::try_from(file.offset).map_or(STATUS_OVERLAP, |offset| offset.min(STATUS_OVERLAP));
        if chunk.start_offset != file.offset || chunk.before.len() != overlap {
            return None;
        }
        if overlap_hash(&chunk.before, &[]) != file.overlap_hash {
            // It was truncated and has grown beyond the read position: all of it is new.
            *file = StatusFile { rewritten: true, ..StatusFile::new(chunk) };
            return None;
        }
        Some(index)
    }
}

impl StatusFile {
    fn new(chunk: &StatusChunk) -> Self {
        Self {
            path: chunk.path.clone(),
            inode: chunk.inode,
            offset: 0,
            written_at: 0,
            overlap_hash: overlap_hash(&[], &[]),
            skipping: false,
            rewritten: false,
            failure: None,
        }
    }
}

/// Takes in one line.
fn read_into(
    file: &mut StatusFile,
    text: Text<'_>,
    fresh: bool,
    progress: &mut Progress,
    events: &mut Vec<StatusEvent>,
    reading: Reading<'_>,
) {
    let Some((line, data)) = read_line(text) else { return };
    if let Some(line) = line.as_ref().filter(|_| fresh) {
        match line.word {
            Some(StatusWord::Failure) => {
                file.failure.get_or_insert_with(|| line.message.clone().unwrap_or_default());
            }
            Some(StatusWord::Started | StatusWord::Running | StatusWord::Success) => file.failure = None,
            None => {}
        }
        progress.absorb(std::slice::from_ref(line), reading.now);
    }
    let (Text::Whole(bytes) | Text::Start(bytes)) = text;
    record(file, data, bytes.len() as u64, fresh, progress, events, reading);
}

/// Makes an event, up to the limits.
fn record(
    file: &StatusFile,
    data: Value,
    bytes: u64,
    fresh: bool,
    progress: &mut Progress,
    events: &mut Vec<StatusEvent>,
    reading: Reading<'_>,
) {
    let path = file.path.as_str();
    let name = path.strip_prefix(reading.results).map_or(path, |name| name.trim_start_matches('/'));
    let event = |kind, data| StatusEvent { kind, file: name.to_owned(), earlier_run: !fresh, data };
    if progress.events < MAX_EVENTS && progress.event_bytes < MAX_EVENT_BYTES {
        progress.events += 1;
        progress.event_bytes += bytes;
        events.push(event(StatusEventKind::Status, data));
    } else if !progress.events_truncated {
        progress.events_truncated = true;
        events.push(event(StatusEventKind::EventsTruncated, json!({ "lines": progress.events })));
    }
}

/// FNV-1a of the last bytes of two parts. It guards against accidents, not against attacks.
fn overlap_hash(before: &[u8], after: &[u8]) -> u64 {
    let skipped = (before.len() + after.len()).saturating_sub(STATUS_OVERLAP);
    let bytes = before.iter().chain(after).skip(skipped);
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests;
