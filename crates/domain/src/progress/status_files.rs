//! How far a job's status files have been read, and what is new in them.
//!
//! A line counts once, whatever happens: what was read moves the cursor and becomes an event in one change of the job.
//! Where there are several files, their lines are taken in the order in which the files were written, so that the
//! newest word is the last one: the lines' own `date` and `time` have no zone and are as wrong as their node's clock.
//! A job that has said SUCCESS in one file and, as the last word of another, FAILURE, has failed.

use chrono::TimeDelta;
use remote::{STATUS_FILES, STATUS_OVERLAP, StatusChunk, StatusCursor};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use slurm::RemotePath;

use crate::{
    clock::Timestamp,
    progress::{
        status_file::{StatusWord, cut, read_line, unreadable},
        summary::Progress,
    },
};

/// The status files of one job, as far as they were read.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StatusFiles {
    files: Vec<StatusFile>,
    /// The newest note that a run of the job has left about what it found, as the file system's time of it.
    note_at: Option<i64>,
    /// How often Slurm had requeued the job by that note.
    restart: u32,
    /// The same of the run before: as long as it is the newest, the present run has not begun to write.
    old_note_at: Option<i64>,
    /// The run before the present one, as far as it was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<Box<RunBefore>>,
    /// What was read and is not stored yet.
    #[serde(skip)]
    events: Vec<StatusEvent>,
}

/// What was known of a run when the next one began.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct RunBefore {
    /// How often Slurm had requeued the job by then, as far as was seen.
    requeues: u32,
    progress: Progress,
    status: StatusFiles,
}

/// One status file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct StatusFile {
    path: RemotePath,
    inode: u64,
    /// Everything before this byte was read.
    offset: u64,
    /// When it was last written, as far as it was read.
    written_at: i64,
    /// A checksum of the bytes right before the offset: a file that was cut and has grown beyond it has others.
    seal: u64,
    /// The offset lies within a line that is too long to be read.
    skipping: bool,
    /// The present run has begun the file anew, so that nothing in it is of an earlier one.
    rewritten: bool,
    /// The message of its last word, if that was FAILURE.
    failure: Option<String>,
}

/// Something in a status file that callers see.
#[derive(Debug, Clone, PartialEq)]
pub struct StatusEvent {
    pub kind: StatusEventKind,
    /// The file, below the job's results.
    pub file: String,
    /// An earlier run or attempt has written it.
    pub earlier_run: bool,
    pub data: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum StatusEventKind {
    /// A line.
    Status,
    /// There are too many lines: from here on they move the progress and are not kept.
    EventsTruncated,
}

/// At most so many lines of one job become events, and so many bytes of them.
const MAX_EVENTS: u64 = 100_000;
const MAX_EVENT_BYTES: u64 = 64 * 1024 * 1024;

/// Within which two clocks of one cluster are believed to agree.
pub(crate) const CLOCKS_AGREE: TimeDelta = TimeDelta::seconds(30);

/// What is known about the run whose lines are read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading<'a> {
    /// The directory that the files are below.
    pub(crate) results: &'a str,
    /// When Slurm started the present run.
    pub(crate) started_at: Option<Timestamp>,
    /// How often it has put the attempt back into its queue, as far as was seen.
    pub(crate) requeues: u32,
    /// Nothing of the present run is still to come: what cannot be told from an earlier one is taken for such.
    pub(crate) over: bool,
    pub(crate) now: Timestamp,
}

/// Who wrote what a chunk holds.
enum Writer {
    /// The present run, from this byte on.
    Present {
        from: u64,
    },
    Earlier,
    /// The present run has not said yet what it found.
    Unknown,
}

impl StatusFiles {
    /// How far each file was read.
    pub fn cursors(&self) -> Vec<StatusCursor> {
        let cursor = |file: &StatusFile| StatusCursor {
            path: file.path.clone(),
            inode: file.inode,
            offset: file.offset,
            written_at: file.written_at,
        };
        self.files.iter().map(cursor).collect()
    }

    /// What was read since the job was loaded. It has to be stored with the cursors, or both have to be dropped.
    pub fn events(&self) -> &[StatusEvent] {
        &self.events
    }

    /// As it is loaded again once what was read is stored.
    #[must_use]
    pub fn stored(&self) -> Self {
        Self { events: Vec::new(), ..self.clone() }
    }

    /// Another run begins: what is in the files now is not its own. `said` is what the one that ends was heard to say, before
    /// which Slurm had requeued the job so often.
    pub fn begin_run(&mut self, said: &Progress, requeues: u32) {
        let was_heard = said.word.is_some() || self.note_at != self.old_note_at;
        if was_heard {
            let status = Self { before: None, ..self.stored() };
            self.before = Some(Box::new(RunBefore { requeues, progress: said.clone(), status }));
        }
        self.old_note_at = self.note_at;
        for file in &mut self.files {
            file.rewritten = false;
            file.failure = None;
        }
    }

    /// No run began after the one before which Slurm had requeued the job so often. Returns what that was heard to say, unless
    /// it is the present one, or was not heard.
    pub(crate) fn resume_run(&mut self, requeues: u32) -> Option<Progress> {
        let before = self.before.take_if(|before| before.requeues == requeues)?;
        let RunBefore { progress, status, .. } = *before;
        *self = Self { events: std::mem::take(&mut self.events), ..status };
        Some(progress)
    }

    /// The restart count of a run that has noted what it found without being expected: after more requeues than were
    /// seen, or after the run that was read.
    pub(crate) fn unseen_run(&self, chunk: &StatusChunk, requeues: u32) -> Option<u32> {
        let restart = chunk.note?.restart;
        let follows =
            self.note_at.is_some_and(|read| restart > self.restart && self.old_note_at != Some(read));
        (restart > requeues || follows).then_some(restart)
    }

    /// Whether nothing was read of a run that began after so many requeues: what was read is of one before it.
    pub(crate) fn were_read_before(&self, restart: u32) -> bool {
        self.note_at.is_some() && self.restart < restart
    }

    /// For the next attempt, which goes on reading where this one ended.
    #[must_use]
    pub(crate) fn inherited(&self) -> Self {
        let mut inherited = self.stored();
        inherited.begin_run(&Progress::default(), 0);
        inherited.before = None;
        inherited.restart = 0;
        inherited
    }

    /// The message of a file whose last word is FAILURE.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.files.iter().find_map(|file| file.failure.as_deref())
    }

    /// Whether it cannot be told yet which run wrote this.
    pub(crate) fn is_held_back(&self, chunk: &StatusChunk, run: u32, reading: Reading<'_>) -> bool {
        matches!(self.writer(chunk, run, reading), Writer::Unknown)
    }

    fn writer(&self, chunk: &StatusChunk, run: u32, reading: Reading<'_>) -> Writer {
        let Some(note) = chunk.note else {
            return if run == 0 || reading.over { Writer::Present { from: 0 } } else { Writer::Unknown };
        };
        // The note of the run before may not have been read: then its count tells, and its time. Not its time alone: the
        // clock of a node may be minutes slow.
        let was_before = |started: Timestamp| {
            note.restart < reading.requeues && note.at < (started - CLOCKS_AGREE).timestamp_micros()
        };
        // Its count alone says so: a file system may still be about to show the note of the present run.
        let may_be_before = |started: Timestamp| note.at < (started + CLOCKS_AGREE).timestamp_micros();
        let is_doubtful =
            run > 0 && note.restart < reading.requeues && reading.started_at.is_none_or(may_be_before);
        let is_old =
            run > 0 && (self.old_note_at == Some(note.at) || reading.started_at.is_some_and(was_before));
        match (is_old, reading.over) {
            (true, true) => Writer::Earlier,
            (true, false) => Writer::Unknown,
            (false, false) if is_doubtful => Writer::Unknown,
            (false, _) => Writer::Present { from: note.fresh_from },
        }
    }

    /// Takes in the complete lines of a chunk. What does not follow on what was read before is left alone, to be
    /// asked for again.
    pub(crate) fn take(&mut self, chunk: &StatusChunk, progress: &mut Progress, reading: Reading<'_>) {
        let from = match self.writer(chunk, progress.run, reading) {
            Writer::Unknown => return,
            Writer::Earlier => u64::MAX,
            Writer::Present { from } => from,
        };
        if let Some(note) = chunk.note {
            (self.note_at, self.restart) = (Some(note.at), note.restart);
        }
        let Some(index) = self.follow(chunk) else { return };
        let file = &mut self.files[index];
        // Shorter than the run found it: the run has cut it.
        file.rewritten |= from != u64::MAX && chunk.size < from;
        let fresh_from = if file.rewritten { 0 } else { from };
        let cut = cut(&chunk.bytes, file.skipping);
        for (at, text) in &cut.lines {
            let fresh = chunk.start_offset + *at as u64 >= fresh_from;
            keep(file, *text, fresh, progress, &mut self.events, reading);
        }
        file.offset = chunk.start_offset + cut.taken as u64;
        file.written_at = chunk.written_at;
        file.skipping = cut.skipping;
        file.seal = seal(&chunk.before, &chunk.bytes[..cut.taken]);
    }

    /// Takes in a last line that was never ended by a newline: nobody writes to it any more.
    pub(crate) fn take_rest(&mut self, chunk: &StatusChunk, progress: &mut Progress, reading: Reading<'_>) {
        let Some(file) = self.files.iter_mut().find(|file| file.path == chunk.path) else { return };
        let read = file.offset.checked_sub(chunk.start_offset).and_then(|read| usize::try_from(read).ok());
        let Some(rest) = read.and_then(|read| chunk.bytes.get(read..)).filter(|rest| !rest.is_empty()) else {
            return;
        };
        if !chunk.complete || file.inode != chunk.inode || file.skipping {
            return;
        }
        let fresh_from = chunk.note.filter(|_| !file.rewritten).map_or(0, |note| note.fresh_from);
        let fresh = file.offset >= fresh_from;
        keep(file, Some(rest), fresh, progress, &mut self.events, reading);
        file.offset += rest.len() as u64;
        file.seal = seal(&chunk.before, &chunk.bytes);
    }

    /// The file that a chunk goes on with, made ready for it; none if it does not.
    fn follow(&mut self, chunk: &StatusChunk) -> Option<usize> {
        let Some(index) = self.files.iter().position(|file| file.path == chunk.path) else {
            if self.files.len() >= STATUS_FILES || chunk.start_offset != 0 {
                return None;
            }
            self.files.push(StatusFile::new(chunk));
            return Some(self.files.len() - 1);
        };
        let file = &mut self.files[index];
        if chunk.restarted || file.inode != chunk.inode {
            let rewritten = file.rewritten && file.inode == chunk.inode;
            *file = StatusFile { rewritten, ..StatusFile::new(chunk) };
            return (chunk.start_offset == 0).then_some(index);
        }
        let overlap =
            usize::try_from(file.offset).map_or(STATUS_OVERLAP, |offset| offset.min(STATUS_OVERLAP));
        if chunk.start_offset != file.offset || chunk.before.len() != overlap {
            return None;
        }
        if seal(&chunk.before, &[]) != file.seal {
            // It was cut, and has grown beyond where we were: all of it is new.
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
            seal: seal(&[], &[]),
            skipping: false,
            rewritten: false,
            failure: None,
        }
    }
}

/// Takes in one line; none is one that was too long to be read.
fn keep(
    file: &mut StatusFile,
    text: Option<&[u8]>,
    fresh: bool,
    progress: &mut Progress,
    events: &mut Vec<StatusEvent>,
    reading: Reading<'_>,
) {
    let Some((line, data)) = text.map_or(Some((None, unreadable(b"a line that is too long"))), read_line)
    else {
        return;
    };
    if let Some(line) = line.as_ref().filter(|_| fresh) {
        match line.word {
            Some(StatusWord::Failure) => file.failure = Some(line.message.clone().unwrap_or_default()),
            Some(StatusWord::Started | StatusWord::Running | StatusWord::Success) => file.failure = None,
            None => {}
        }
        progress.absorb(std::slice::from_ref(line), reading.now);
    }
    let path = file.path.as_str();
    let name = path.strip_prefix(reading.results).map_or(path, |name| name.trim_start_matches('/'));
    let event = |kind, data| StatusEvent { kind, file: name.to_owned(), earlier_run: !fresh, data };
    if progress.events < MAX_EVENTS && progress.event_bytes < MAX_EVENT_BYTES {
        progress.events += 1;
        progress.event_bytes += text.map_or(0, <[u8]>::len) as u64;
        events.push(event(StatusEventKind::Status, data));
    } else if !progress.events_truncated {
        progress.events_truncated = true;
        events.push(event(StatusEventKind::EventsTruncated, json!({ "lines": progress.events })));
    }
}

/// FNV-1a of the last bytes of two parts: against accident, not against malice.
fn seal(before: &[u8], after: &[u8]) -> u64 {
    let skipped = (before.len() + after.len()).saturating_sub(STATUS_OVERLAP);
    let bytes = before.iter().chain(after).skip(skipped);
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests;
