//! The followed logs of one attempt: what to ask next, and what the answers mean.

use std::sync::Arc;

use domain::{AttemptPlace, JobId, LogContinuity, LogFile, LogPosition};
use remote::{LogAnswer, LogChunk, LogFrom, LogQuestion};
use slurm::InvalidName;

use super::{
    cursor::Cursor,
    event::LogEvent,
    pieces::pieces,
    place,
    selection::{Part, Which},
};

/// The most bytes of one log in one read. Reads end at multiples of it, so that followers at different positions come to
/// read the same bytes.
const STRIDE: u64 = 512 * 1024;
/// The smallest stride, when many logs share a read.
const LEAST_STRIDE: u64 = 16 * 1024;

/// The bytes from `offset` to the next multiple of the stride; to the second one if only the beginning of a character, which
/// is never passed on alone, could stand before the next.
fn up_to_a_multiple(stride: u64, offset: u64) -> u64 {
    let left = stride - offset % stride;
    if left < 4 { left + stride } else { left }
}

/// The logs of one attempt.
#[derive(Debug)]
pub(super) struct Watched {
    pub(super) place: AttemptPlace,
    which: Which,
    logs: Vec<Log>,
    /// Where logs begin that appear later.
    start: Part,
    has_seen: bool,
}

#[derive(Debug)]
struct Log {
    file: LogFile,
    at: At,
}

#[derive(Debug, Clone, Copy)]
enum At {
    /// Not read yet.
    Start(Part),
    Position(LogPosition),
}

/// The result of a read.
#[derive(Debug, Default)]
pub(super) struct News {
    /// Each with the position after it.
    pub(super) events: Vec<(LogEvent, Cursor)>,
    /// More bytes are there.
    pub(super) more: bool,
    /// New logs were found.
    pub(super) found: bool,
    /// The answers are not conclusive; read again.
    pub(super) doubtful: bool,
    /// The logs that the login user may not read.
    pub(super) unreadable: Vec<LogFile>,
}

impl Watched {
    pub(super) fn new(place: AttemptPlace, which: Which, start: Part) -> Self {
        let log = |file| Log { file, at: At::Start(start) };
        let logs = which.files().unwrap_or_default().into_iter().map(log).collect();
        Self { place, which, logs, start, has_seen: false }
    }

    /// Continues at a client's positions. Logs without a position appeared later.
    pub(super) fn resume(&mut self, positions: &[(LogFile, LogPosition)]) {
        self.start = Part::Bytes { offset: 0, limit: u64::MAX };
        let named = || {
            let names: Vec<_> = positions.iter().filter_map(|(file, _)| self.name_of(file)).collect();
            self.which.among(&names)
        };
        let files = self.which.files().unwrap_or_else(named);
        let at = |file: &LogFile| {
            let known = positions.iter().find(|(known, _)| known == file);
            known.map_or(At::Start(self.start), |(_, position)| At::Position(*position))
        };
        self.logs = files.into_iter().map(|file| Log { at: at(&file), file }).collect();
    }

    /// The name of a log of our role, within its directory.
    fn name_of(&self, file: &LogFile) -> Option<String> {
        let path = file.to_string();
        let (role, name) = path.split_once('/')?;
        self.which.role.as_ref().filter(|ours| ours.as_str() == role).map(|_| name.to_owned())
    }

    /// Whether any log existed.
    pub(super) fn has_seen(&self) -> bool {
        self.has_seen
    }

    /// The next questions; with `search`, also for new logs.
    pub(super) fn questions(
        &self,
        job: JobId,
        most: u64,
        search: bool,
    ) -> Result<Vec<LogQuestion>, InvalidName> {
        let count = u64::try_from(self.logs.len()).unwrap_or(u64::MAX).max(1);
        let stride = (STRIDE / count).max(LEAST_STRIDE);
        let mut questions = Vec::with_capacity(self.logs.len() + 1);
        for log in &self.logs {
            let (from, bytes) = match log.at {
                At::Start(Part::Tail { lines, .. }) => (LogFrom::TailLines(lines), (most / count).max(1)),
                At::Start(Part::Bytes { offset, .. }) | At::Position(LogPosition { offset, .. }) => {
                    (LogFrom::Offset(offset), up_to_a_multiple(stride, offset))
                }
            };
            questions.push(place::part_of(job, &self.place, &log.file, from, bytes)?);
        }
        let search = search || self.logs.is_empty();
        if let (true, None, Some(role)) = (search, self.which.files(), &self.which.role) {
            questions.extend(place::files_of(job, &self.place, role)?);
        }
        Ok(questions)
    }

    /// Takes the answers to [`Self::questions`]. `last` means that the logs no longer grow: an incomplete character at the end is
    /// passed on too.
    pub(super) fn take(&mut self, answers: &[Arc<LogAnswer>], last: bool) -> News {
        let mut news = News::default();
        for index in 0..self.logs.len() {
            let Some(answer) = answers.get(index) else { break };
            match &**answer {
                LogAnswer::Chunk(chunk) => self.take_chunk(index, chunk, last, &mut news),
                LogAnswer::Unreadable => news.unreadable.push(self.logs[index].file.clone()),
                _ => {
                    let at = &mut self.logs[index].at;
                    // A log that does not exist yet has no last lines: when it appears, all of it is new.
                    if matches!(at, At::Start(Part::Tail { .. })) {
                        *at = At::Start(Part::Bytes { offset: 0, limit: u64::MAX });
                    }
                }
            }
        }
        let names = answers.iter().skip(self.logs.len()).find_map(|answer| match &**answer {
            LogAnswer::Files(names) => Some(names),
            _ => None,
        });
        for file in self.which.among(names.map_or(&[], Vec::as_slice)) {
            if !self.logs.iter().any(|log| log.file == file) {
                self.logs.push(Log { file, at: At::Start(self.start) });
                news.found = true;
            }
        }
        news
    }

    fn take_chunk(&mut self, index: usize, chunk: &LogChunk, last: bool, news: &mut News) {
        self.has_seen = true;
        let file = self.logs[index].file.clone();
        let mut position = match self.logs[index].at {
            At::Start(Part::Tail { .. }) => LogPosition::new(None, chunk.start),
            At::Start(Part::Bytes { offset, .. }) => LogPosition::new(None, offset),
            At::Position(position) => position,
        };
        let sight = position.check(chunk.inode, chunk.size);
        self.logs[index].at = At::Position(position);
        if let Some(reset) = LogEvent::reset(self.place.no, &file, sight) {
            news.more = true;
            news.events.push((reset, self.cursor()));
            return;
        }
        // Bytes of another offset: the file changed while it was read.
        if sight == LogContinuity::Doubtful || chunk.start != position.offset {
            news.doubtful = true;
            return;
        }
        let length = u64::try_from(chunk.bytes.len()).unwrap_or(u64::MAX);
        let ends = chunk.start.saturating_add(length) >= chunk.size;
        for piece in pieces(&chunk.bytes, last && ends) {
            let event = LogEvent::piece(self.place.no, &file, position.offset, piece);
            position.advance(u64::try_from(piece.len()).unwrap_or(u64::MAX));
            self.logs[index].at = At::Position(position);
            news.events.push((event, self.cursor()));
        }
        news.more |= !ends;
    }

    /// The position after everything that was passed on.
    pub(super) fn cursor(&self) -> Cursor {
        let place = |log: &Log| match log.at {
            At::Position(position) => Some((log.file.clone(), position)),
            At::Start(_) => None,
        };
        Cursor { attempt: self.place.no, files: self.logs.iter().filter_map(place).collect(), is_end: false }
    }
}

#[cfg(test)]
#[path = "watched_tests.rs"]
mod tests;
