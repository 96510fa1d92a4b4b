//! Reads a part of the logs, byte for byte.

use axum::{
    http::{HeaderName, HeaderValue, header},
    response::{IntoResponse, Response},
};
use domain::{AttemptNo, AttemptPlace, Job, LogFile, last_rewrites};
use remote::{LogAnswer, LogChunk, LogFrom, LogQuestion};
use tokio::{sync::OwnedSemaphorePermit, time::timeout};

use super::{
    place,
    selection::{Part, Rewrites, Selection},
};
use crate::{
    problem::{Kind, Problem},
    state::App,
};

const SIZE: HeaderName = HeaderName::from_static("x-log-size");
const OFFSET: HeaderName = HeaderName::from_static("x-log-offset");
const NEXT_OFFSET: HeaderName = HeaderName::from_static("x-log-next-offset");
const ATTEMPT: HeaderName = HeaderName::from_static("x-log-attempt");

/// The part of one log.
struct Read {
    file: LogFile,
    chunk: LogChunk,
}

/// Reads the logs and returns the answer.
pub(super) async fn respond(app: &App, job: &Job, selection: &Selection) -> Result<Response, Problem> {
    let Some(place) = place::attempt(app, job, selection.task, selection.attempt).await? else {
        return Err(no_log(job, selection));
    };
    let _turn = turn(app, job).await?;
    let files = files(app, job, &place, selection).await?;
    let read = parts(app, job, &place, files, selection.part).await?;
    if read.is_empty() { Err(no_log(job, selection)) } else { Ok(answer(read, place.no, selection.rewrites)) }
}

/// Why there is no log.
pub(super) fn no_log(job: &Job, selection: &Selection) -> Problem {
    let why = place::why_no_log(job, selection.attempt, selection.which.role.as_ref());
    Problem::new(Kind::NoLogYet, why)
}

/// Waits for the right to read. Many readers must neither queue on a login host nor fill this process's memory.
pub(super) async fn turn(app: &App, job: &Job) -> Result<OwnedSemaphorePermit, Problem> {
    let turn = timeout(app.limits.log_patience, app.log_reads.turn(&job.cluster)).await;
    turn.ok().flatten().ok_or_else(|| busy(app.limits.log_reads))
}

fn busy(most: usize) -> Problem {
    let detail = format!("{most} requests are reading logs, the limit for a cluster. Try again.");
    Problem::unavailable(Kind::LogsBusy, detail)
}

/// The selected logs.
pub(super) async fn files(
    app: &App,
    job: &Job,
    place: &AttemptPlace,
    selection: &Selection,
) -> Result<Vec<LogFile>, Problem> {
    let which = &selection.which;
    let (None, Some(role)) = (which.files(), &which.role) else {
        return Ok(which.files().unwrap_or_default());
    };
    let question = place::files_of(job.id, place, role).map_err(|error| place::no_path(job.id, &error))?;
    let Some(question) = question else { return Ok(Vec::new()) };
    let answers = ask(app, job, vec![question]).await?;
    let names = answers.into_iter().find_map(|answer| match answer {
        LogAnswer::Files(names) => Some(names),
        _ => None,
    });
    Ok(which.among(&names.unwrap_or_default()))
}

async fn parts(
    app: &App,
    job: &Job,
    place: &AttemptPlace,
    files: Vec<LogFile>,
    part: Part,
) -> Result<Vec<Read>, Problem> {
    if files.is_empty() {
        return Ok(Vec::new());
    }
    let share = app.limits.log_bytes / u64::try_from(files.len()).unwrap_or(u64::MAX).max(1);
    let (from, most) = match part {
        Part::Tail { lines, limit } => (LogFrom::TailLines(lines), share.min(limit)),
        Part::Bytes { offset, limit } => (LogFrom::Offset(offset), share.min(limit)),
    };
    let questions: Result<Vec<LogQuestion>, _> =
        files.iter().map(|file| place::part_of(job.id, place, file, from, most.max(1))).collect();
    let questions = questions.map_err(|error| place::no_path(job.id, &error))?;
    let answers = ask(app, job, questions).await?;
    let mut read = Vec::new();
    for (file, answer) in files.into_iter().zip(answers) {
        match answer {
            LogAnswer::Chunk(chunk) => read.push(Read { file, chunk }),
            LogAnswer::Unreadable => return Err(unreadable(&file)),
            _ => {}
        }
    }
    Ok(read)
}

pub(super) async fn ask(
    app: &App,
    job: &Job,
    questions: Vec<LogQuestion>,
) -> Result<Vec<LogAnswer>, Problem> {
    app.log_reads.at_once(&job.cluster, questions).await.map_err(|unavailable| {
        let detail = format!("The log cannot be read now: {}", unavailable.detail);
        Problem::unavailable(Kind::ClusterUnavailable, detail)
    })
}

pub(super) fn unreadable(file: &LogFile) -> Problem {
    let detail = format!("The cluster's login user may not read `{file}`: the file's permissions forbid it.");
    Problem::new(Kind::LogUnreadable, detail)
}

/// What separates the parts. A log may end within a line; the next one begins on a new line. The logs of several tasks get
/// headings like those of tail(1).
fn heading(bytes: &[u8], file: &LogFile, several: bool) -> Vec<u8> {
    let mut heading = Vec::new();
    if bytes.last().is_some_and(|last| *last != b'\n') {
        heading.push(b'\n');
    }
    if several && matches!(file, LogFile::Task { .. }) {
        heading.extend(format!("==> {file} <==\n").into_bytes());
    }
    heading
}

/// The part with each line as it was last. It ends with a whole line, since the next one may be rewritten further.
fn collapsed(mut chunk: LogChunk) -> (u64, Vec<u8>) {
    let end = chunk.start.saturating_add(u64::try_from(chunk.bytes.len()).unwrap_or(u64::MAX));
    let last = chunk.bytes.iter().rposition(|byte| *byte == b'\n').filter(|_| end < chunk.size);
    if let Some(last) = last {
        chunk.bytes.truncate(last + 1);
    }
    let next = chunk.start.saturating_add(u64::try_from(chunk.bytes.len()).unwrap_or(u64::MAX));
    (next, last_rewrites(&chunk.bytes))
}

fn answer(read: Vec<Read>, attempt: AttemptNo, rewrites: Rewrites) -> Response {
    let size: u64 = read.iter().map(|part| part.chunk.size).fold(0, u64::saturating_add);
    let several = read.len() > 1;
    let mut place = None;
    let mut bytes = Vec::with_capacity(read.iter().map(|part| part.chunk.bytes.len() + 64).sum());
    for Read { file, chunk } in read {
        let start = chunk.start;
        let (next, part) = match rewrites {
            Rewrites::Last => collapsed(chunk),
            Rewrites::All => {
                (start.saturating_add(u64::try_from(chunk.bytes.len()).unwrap_or(u64::MAX)), chunk.bytes)
            }
        };
        if several {
            bytes.extend(heading(&bytes, &file, several));
        } else {
            place = Some((start, next));
        }
        bytes.extend(part);
    }
    let fixed = [
        (header::CONTENT_TYPE, "text/plain; charset=utf-8"),
        // Logs contain arbitrary text; browsers must not render it.
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CACHE_CONTROL, "private, no-store"),
    ];
    let measures = [(SIZE, HeaderValue::from(size)), (ATTEMPT, HeaderValue::from(attempt.get()))];
    let place = place.map(|(offset, next)| [(OFFSET, HeaderValue::from(offset)), (NEXT_OFFSET, next.into())]);
    (fixed, measures, place, bytes).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(file: &str, bytes: &[u8]) -> Read {
        let chunk =
            LogChunk { path: "/x".parse().unwrap(), size: 100, inode: 1, start: 7, bytes: bytes.to_vec() };
        Read { file: file.parse().unwrap(), chunk }
    }

    #[test]
    fn one_log_says_where_its_part_begins_and_ends() {
        let response = answer(vec![part("main.err", b"xy")], AttemptNo::FIRST, Rewrites::All);
        let values = [SIZE, ATTEMPT, OFFSET, NEXT_OFFSET].map(|name| response.headers()[name].clone());
        assert_eq!(values, ["100", "1", "7", "9"]);
    }

    #[test]
    fn rewritten_lines_are_as_they_were_last_and_the_offsets_are_those_of_the_log() {
        let shown = |bytes: &[u8], size| {
            let mut read = part("main.err", bytes);
            read.chunk.size = size;
            let (next, bytes) = collapsed(read.chunk);
            (next, String::from_utf8(bytes).unwrap())
        };
        assert_eq!(shown(b" 1%\r 2%\nnext\r 3%", 23), (23, " 2%\n 3%t".to_owned()));
        assert_eq!(shown(b" 1%\r 2%\nnext\r 3%", 100), (15, " 2%\n".to_owned()), "the last line may go on");
        assert_eq!(shown(b" 1%\r 2%", 100), (14, " 2%".to_owned()), "a line that fills the part");
    }

    #[test]
    fn several_logs_have_a_size_and_no_place() {
        let response =
            answer(vec![part("main.out", b"x"), part("main.err", b"y")], AttemptNo::FIRST, Rewrites::All);
        assert_eq!(response.headers()[SIZE], "200");
        assert!(!response.headers().contains_key(OFFSET) && !response.headers().contains_key(NEXT_OFFSET));
    }

    #[test]
    fn only_tasks_have_headings_and_only_among_others() {
        let task = "policy/3.out".parse().unwrap();
        assert_eq!(heading(b"", &task, true), b"==> policy/3.out <==\n");
        assert_eq!(heading(b"x", &task, false), b"\n");
        assert_eq!(heading(b"x", &"main.err".parse().unwrap(), true), b"\n");
    }
}
