//! The logs of one attempt that are followed, each with its place: what to ask next, and what the answers mean.

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

/// The most bytes of one log that one look reads. Reads end at its multiples, so that followers who are behind each
/// by his own distance come to read the same bytes.
const STRIDE: u64 = 512 * 1024;
/// With many logs each gets less, and never less than this.
const LEAST_STRIDE: u64 = 16 * 1024;

/// How many bytes there are from `offset` to a multiple of the stride: to the second one when the next is so near that
/// only the beginning of a character may stand before it, which is never passed on alone.
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
    /// Where logs begin that were not there at the first look.
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
    /// Not looked at yet.
    Start(Part),
    Position(LogPosition),
}

/// What a look brought.
#[derive(Debug, Default)]
pub(super) struct News {
    /// Each with the place after it.
    pub(super) events: Vec<(LogEvent, Cursor)>,
    /// More is there already.
    pub(super) more: bool,
    /// Logs that were not known before.
    pub(super) found: bool,
    /// It has to be looked at again before anything can be said.
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

    /// Goes on where somebody has stopped. Logs of which the cursor says nothing were not there then.
    pub(super) fn resume(&mut self, positions: &[(LogFile, LogPosition)]) {
        self.start = Part::Bytes { offset: 0, limit: u64::MAX };
        let named = || {
            let names: Vec<_> = positions.iter().filter_map(|(file, _)| self.name_of(file)).collect();
            self.which.among(&names)
        };
        let wanted = self.which.files().unwrap_or_else(named);
        let at = |file: &LogFile| {
            let known = positions.iter().find(|(known, _)| known == file);
            known.map_or(At::Start(self.start), |(_, position)| At::Position(*position))
        };
        self.logs = wanted.into_iter().map(|file| Log { at: at(&file), file }).collect();
    }

    /// The name of a log of our role in its directory.
    fn name_of(&self, file: &LogFile) -> Option<String> {
        let path = file.to_string();
        let (role, name) = path.split_once('/')?;
        self.which.role.as_ref().filter(|ours| ours.as_str() == role).map(|_| name.to_owned())
    }

    /// Whether any log was there to be read.
    pub(super) fn has_seen(&self) -> bool {
        self.has_seen
    }

    /// What to ask now; with `search`, also which logs there are.
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
                At::Start(Part::Tail(lines)) => (LogFrom::TailLines(lines), (most / count).max(1)),
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

    /// Takes the answers to [`Self::questions`]. `last`: these logs do not grow any more, so that what has been read
    /// to the end of a file is passed on to the last byte.
    pub(super) fn take(&mut self, answers: &[Arc<LogAnswer>], last: bool) -> News {
        let mut news = News::default();
        for index in 0..self.logs.len() {
            let Some(answer) = answers.get(index) else { break };
            match &**answer {
                LogAnswer::Chunk(chunk) => self.take_chunk(index, chunk, last, &mut news),
                LogAnswer::Unreadable => news.unreadable.push(self.logs[index].file.clone()),
                LogAnswer::Missing | LogAnswer::Files(_) => {
                    let at = &mut self.logs[index].at;
                    // What is not there has no last lines: when it comes, all of it is new.
                    if matches!(at, At::Start(Part::Tail(_))) {
                        *at = At::Start(Part::Bytes { offset: 0, limit: u64::MAX });
                    }
                }
            }
        }
        let names = answers.iter().skip(self.logs.len()).find_map(|answer| match &**answer {
            LogAnswer::Files(names) => Some(names),
            LogAnswer::Chunk(_) | LogAnswer::Missing | LogAnswer::Unreadable => None,
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
            At::Start(Part::Tail(_)) => LogPosition::new(None, chunk.start),
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
        // Bytes of another place are those of a file that was not looked at in one moment.
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

    /// The place after everything that was passed on.
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
