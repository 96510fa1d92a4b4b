//! The query parameters of `GET /jobs/{id}/logs` and of the search.

use domain::{AttemptNo, Job, LogFile, LogRole, LogStream};
use strum::EnumString;
use utoipa::{IntoParams, ToSchema};

use crate::{
    calls::jobs::tasks::no_such_task,
    http::extract::{FromQuery, Parameters},
    problem::Problem,
};

const DEFAULT_TAIL: u32 = 500;
const LONGEST_TAIL: u32 = 10_000;
const LAST_TASK: u32 = 999_999;

/// The selected streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, ToSchema)]
#[strum(serialize_all = "lowercase")]
#[schema(rename_all = "lowercase")]
pub(super) enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
    /// Standard output, then standard error.
    All,
    /// The same as `role=controller`.
    Controller,
    /// The same as `role=policy`.
    Policy,
    /// The same as `role=rollout`.
    Rollout,
}

impl Stream {
    /// The role and the streams.
    fn parts(self) -> (Option<&'static str>, &'static [LogStream]) {
        match self {
            Self::Out => (None, &[LogStream::Out]),
            Self::Err => (None, &[LogStream::Err]),
            Self::All => (None, &LogStream::BOTH),
            Self::Controller => (Some("controller"), &LogStream::BOTH),
            Self::Policy => (Some("policy"), &LogStream::BOTH),
            Self::Rollout => (Some("rollout"), &LogStream::BOTH),
        }
    }
}

/// What is shown of lines that were written again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, ToSchema)]
#[strum(serialize_all = "lowercase")]
#[schema(rename_all = "lowercase")]
pub(super) enum Rewrites {
    /// Every byte.
    All,
    /// Each line as it was last.
    Last,
}

/// Selects logs.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "the fields document the query that `Selection` reads")]
pub(crate) struct LogParameters {
    /// The streams. Default: `all`; with `offset`, `out`.
    #[param(inline)]
    stream: Option<Stream>,
    /// The logs of a role's tasks instead of the job's own, such as `policy`: a directory below the attempt's logs.
    #[param(pattern = "^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$")]
    role: Option<String>,
    /// Of a job with an array: the task, which must be given. Of another job: only this process of the role, counted from 0. Default:
    /// all; with `offset`, 0.
    #[param(maximum = 999_999)]
    task: Option<u32>,
    /// The attempt, counted from 1. Default: the newest.
    #[param(minimum = 1, maximum = 2_147_483_647)]
    attempt: Option<u32>,
    /// The last lines of each log. Default: 500; with `follow`, the whole log.
    #[param(minimum = 1, maximum = 10_000)]
    tail: Option<u32>,
    /// The byte at which to begin, in one log.
    offset: Option<u64>,
    /// The maximum number of bytes of each log; only with `offset` or `tail`. With `tail` they are the last ones, and the first line may be cut.
    /// An answer can be shorter, and has at most 8 MiB.
    #[param(minimum = 1)]
    limit: Option<u64>,
    /// Stream the logs until the job has finished.
    follow: Option<bool>,
    /// `last`: a line that was written again and again with carriage returns, such as a bar of progress, is as a terminal shows it last.
    /// Offsets stay those of the log, and the part ends with a whole line if it has one. Not with `follow`. Default: `all`.
    #[param(inline)]
    rewrites: Option<Rewrites>,
}

/// The selected logs of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Which {
    pub(super) role: Option<LogRole>,
    /// The process of the role.
    pub(super) task: Option<u32>,
    streams: &'static [LogStream],
}

impl Which {
    #[cfg(test)]
    pub(super) fn from_text(stream: &str) -> Self {
        let (role, streams) = stream.parse::<Stream>().unwrap().parts();
        Self { role: role.and_then(|role| role.parse().ok()), task: None, streams }
    }

    /// The logs if their names are known; otherwise the tasks of the role must be listed.
    pub(super) fn files(&self) -> Option<Vec<LogFile>> {
        let named = |stream: &LogStream| match (&self.role, self.task) {
            (None, _) => Some(LogFile::Main(*stream)),
            (Some(role), Some(task)) => Some(LogFile::Task { role: role.clone(), task, stream: *stream }),
            (Some(_), None) => None,
        };
        self.streams.iter().map(named).collect()
    }

    /// The selected logs among the names in the role's directory, in the order of the tasks.
    pub(super) fn among(&self, names: &[String]) -> Vec<LogFile> {
        let Some(role) = &self.role else { return Vec::new() };
        let mut files: Vec<_> = names.iter().filter_map(|name| LogFile::of_role(role, name)).collect();
        files.retain(|file| self.streams.contains(&file.stream()));
        files.sort();
        files
    }
}

/// The selected part of each log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// The last lines of each log, and at most so many bytes.
    Tail {
        lines: u32,
        limit: u64,
    },
    Bytes {
        offset: u64,
        limit: u64,
    },
}

/// The parsed query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Selection {
    pub(super) which: Which,
    pub(super) attempt: Option<AttemptNo>,
    pub(super) part: Part,
    pub(super) follow: bool,
    pub(super) rewrites: Rewrites,
    /// Whether it begins at a byte, so that a role's first process is meant.
    by_bytes: bool,
    /// The task of the job's array.
    pub(super) task: Option<u32>,
}

fn contradiction(name: &str, detail: &str) -> Problem {
    Problem::parameter(name, "contradiction", detail)
}

fn which(parameters: &Parameters, by_bytes: bool) -> Result<Which, Problem> {
    let stream: Option<Stream> =
        parameters.parse("stream", "one of out, err, all, controller, policy, rollout")?;
    let role: Option<LogRole> = parameters
        .parse("role", "a letter or digit, then letters, digits, - and _, at most 32 characters")?;
    let task = parameters.number("task", 0..=LAST_TASK)?;
    let short = stream.and_then(|stream| stream.parts().0);
    if short.is_some() && role.is_some() {
        return Err(contradiction(
            "role",
            "contradicts the stream, which also names a role; use stream=out, err or all",
        ));
    }
    let role = role.or_else(|| short.and_then(|role| role.parse().ok()));
    let stream = stream.unwrap_or(if by_bytes { Stream::Out } else { Stream::All });
    Ok(Which { role, task, streams: stream.parts().1 })
}

impl Selection {
    /// The logs that are searched, each from this byte on.
    pub(super) fn for_search(parameters: &Parameters, from: Option<u64>) -> Result<Self, Problem> {
        let attempt = parameters.number("attempt", 1..=i32::MAX.unsigned_abs())?.and_then(AttemptNo::new);
        let which = which(parameters, from.is_some())?;
        if from.is_some() && which.streams.len() > 1 {
            return Err(contradiction("from", "is a position in one file; use stream=out or stream=err"));
        }
        let part = Part::Bytes { offset: from.unwrap_or(0), limit: u64::MAX };
        let (follow, rewrites, by_bytes) = (false, Rewrites::All, from.is_some());
        Ok(Self { which, attempt, part, follow, rewrites, by_bytes, task: None })
    }

    /// The selection for this job.
    pub(super) fn of(mut self, job: &Job) -> Result<Self, Problem> {
        let (role, task) = (self.which.role.is_some(), self.which.task);
        let process = (role && self.by_bytes).then_some(0);
        if job.array.is_none() {
            if task.is_some() && !role {
                return Err(contradiction("task", "needs a role; add the parameter role"));
            }
            self.which.task = task.or(process);
            return Ok(self);
        }
        let tasks = job.spec.tasks();
        let needed =
            || Problem::parameter("task", "required", format!("is required; the job's tasks are {tasks}"));
        let task = task.ok_or_else(needed)?;
        if !tasks.contains(task) {
            return Err(no_such_task(job, task));
        }
        (self.which.task, self.task) = (process, Some(task));
        Ok(self)
    }
}

impl FromQuery for Selection {
    const KNOWN: &'static [&'static str] =
        &["stream", "role", "task", "attempt", "tail", "offset", "limit", "follow", "rewrites"];

    fn from_query(parameters: &Parameters) -> Result<Self, Problem> {
        let tail = parameters.number("tail", 1..=LONGEST_TAIL)?;
        let offset = parameters.number("offset", 0..=i64::MAX.unsigned_abs())?;
        let limit = parameters.number("limit", 1..=i64::MAX.unsigned_abs())?;
        let attempt = parameters.number("attempt", 1..=i32::MAX.unsigned_abs())?;
        let follow = parameters.parse("follow", "true or false")?.unwrap_or(false);
        let rewrites = parameters.parse("rewrites", "all or last")?.unwrap_or(Rewrites::All);
        if tail.is_some() && offset.is_some() {
            return Err(contradiction("tail", "counts lines from the end; leave out offset"));
        }
        if limit.is_some() && offset.is_none() && tail.is_none() {
            return Err(contradiction("limit", "needs a place; add the parameter offset or tail"));
        }
        if limit.is_some() && follow {
            return Err(contradiction("limit", "cannot be combined with follow; leave out one of them"));
        }
        if rewrites == Rewrites::Last && follow {
            return Err(contradiction(
                "rewrites",
                "a followed log has every byte; leave out rewrites or follow",
            ));
        }
        let which = which(parameters, offset.is_some())?;
        // Byte offsets of different files are unrelated.
        if offset.is_some() && which.streams.len() > 1 {
            return Err(contradiction("offset", "is a position in one file; use stream=out or stream=err"));
        }
        let part = match (offset, tail) {
            (Some(offset), _) => Part::Bytes { offset, limit: limit.unwrap_or(u64::MAX) },
            (None, Some(lines)) => Part::Tail { lines, limit: limit.unwrap_or(u64::MAX) },
            (None, None) if follow => Part::Bytes { offset: 0, limit: u64::MAX },
            (None, None) => Part::Tail { lines: DEFAULT_TAIL, limit: u64::MAX },
        };
        let attempt = attempt.and_then(AttemptNo::new);
        Ok(Self { which, attempt, part, follow, rewrites, by_bytes: offset.is_some(), task: None })
    }
}
