//! The results of a task: which files and lines are read, and what is found in them.

use remote::{JobLog, PartFound, RESULT_BYTES, ResultPart};
use serde_json::Value;
use slurm::RemotePath;

use crate::{
    job::results::TaskResult,
    progress::status_file::without_nan,
    request::{
        results::{LogOf, LogStream, ResultRule, ResultSource, expression},
        spec::JobSpec,
    },
};

/// The most bytes of a value in a line.
const LINE_BYTES: usize = 64 * 1024;
/// How many matches in one line are looked at. The time for each depends on the length of the line.
const MATCHES: usize = 1000;

/// Where the results of a task are found.
#[derive(Debug, Clone)]
pub struct ResultPlaces {
    /// Its results directory.
    pub home: RemotePath,
    /// The directory of its logs, if it is known.
    pub logs: Option<RemotePath>,
}

/// What is read of a task that has ended: for its results, and then its progress file.
pub fn parts_at_the_end(spec: &JobSpec, places: &ResultPlaces) -> Vec<ResultPart> {
    let progress = spec.progress.as_ref().and_then(|file| places.home.join(&file.path).ok());
    result_parts(&spec.results, places).into_iter().chain(progress.map(ResultPart::File)).collect()
}

/// What was found of its progress file.
pub fn progress_at_the_end<'a>(spec: &JobSpec, found: Option<&'a [PartFound]>) -> Option<&'a [u8]> {
    spec.progress.as_ref()?;
    match found?.last()? {
        PartFound::Bytes(bytes) => Some(bytes),
        PartFound::Missing | PartFound::Odd | PartFound::Large | PartFound::Unreadable => None,
    }
}

/// What is read for the results of a task, each part once.
pub(crate) fn result_parts(rules: &[ResultRule], places: &ResultPlaces) -> Vec<ResultPart> {
    let mut parts = Vec::new();
    for part in rules.iter().filter_map(|rule| part(rule, places)) {
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    parts
}

fn part(rule: &ResultRule, places: &ResultPlaces) -> Option<ResultPart> {
    Some(match &rule.source {
        ResultSource::JsonLine { prefix, log } => {
            ResultPart::Line { log: job_log(log, places)?, prefix: prefix.clone() }
        }
        ResultSource::JsonFile { path } => ResultPart::File(places.home.join(path).ok()?),
        ResultSource::Regex { log, .. } => ResultPart::Tail(job_log(log, places)?),
    })
}

fn job_log(of: &LogOf, places: &ResultPlaces) -> Option<JobLog> {
    Some(match (&of.component, of.log) {
        (None, LogStream::Out) => JobLog::Out,
        (None, LogStream::Err) => JobLog::Err,
        (Some(_), _) => JobLog::File(places.logs.as_ref()?.join(&of.to_string()).ok()?),
    })
}

/// The results in what was found of the parts.
pub fn read_results(rules: &[ResultRule], places: &ResultPlaces, found: &[PartFound]) -> Vec<TaskResult> {
    let parts = result_parts(rules, places);
    let mut left = RESULT_BYTES;
    let read = |rule: &ResultRule| {
        let part = part(rule, places);
        let place = parts.iter().position(|asked| Some(asked) == part.as_ref());
        let found = place.and_then(|place| found.get(place)).unwrap_or(&PartFound::Unreadable);
        let value = value(&rule.source, found).and_then(|value| {
            // What is stored, not what was read: escapes make it longer.
            let size = value.to_string().len();
            left = left.checked_sub(size).ok_or_else(|| too_large(&rule.source))?;
            Ok(value)
        });
        match value {
            Ok(value) => TaskResult::found(rule, value),
            Err(problem) => {
                let may_follow = rule.required || matches!(rule.source, ResultSource::JsonFile { .. });
                TaskResult { may_follow, ..TaskResult::lacking(rule, problem) }
            }
        }
    };
    rules.iter().map(read).collect()
}

fn value(source: &ResultSource, found: &PartFound) -> Result<Value, String> {
    let bytes = match found {
        PartFound::Bytes(bytes) => bytes,
        PartFound::Missing => return Err(missing(source)),
        PartFound::Odd => {
            return Err(format!("{} is not a regular file in the job's results directory", place(source)));
        }
        PartFound::Large => return Err(too_large(source)),
        PartFound::Unreadable => return Err(format!("{} could not be read", place(source))),
    };
    match source {
        ResultSource::JsonFile { path } => {
            json(bytes).map_err(|error| format!("{path} is not JSON: {error}"))
        }
        ResultSource::JsonLine { prefix, .. } => {
            let line = bytes.strip_suffix(b"\n").unwrap_or(bytes);
            let rest = line.strip_prefix(prefix.as_bytes()).ok_or_else(|| missing(source))?;
            if rest.len() > LINE_BYTES {
                return Err(format!("the line after {prefix:?} in {} is longer than 64 KiB", place(source)));
            }
            json(rest).map_err(|error| {
                format!("the text after {prefix:?} in {} is not JSON: {error}", place(source))
            })
        }
        ResultSource::Regex { pattern, .. } => {
            let text = last_match(pattern, bytes)?.ok_or_else(|| missing(source))?;
            Ok(String::from_utf8_lossy(text).into())
        }
    }
}

/// The file or log of a result.
fn place(source: &ResultSource) -> String {
    match source {
        ResultSource::JsonFile { path } => path.clone(),
        ResultSource::JsonLine { log, .. } | ResultSource::Regex { log, .. } => log.to_string(),
    }
}

fn missing(source: &ResultSource) -> String {
    match source {
        ResultSource::JsonFile { path } => format!("{path} is not in the job's results directory"),
        ResultSource::JsonLine { prefix, .. } => {
            format!("no line of {} begins with {prefix:?}", place(source))
        }
        ResultSource::Regex { pattern, .. } => {
            format!("no line in the last MiB of {} matches {pattern:?}", place(source))
        }
    }
}

fn too_large(source: &ResultSource) -> String {
    format!("{} exceeds the limit of 1 MiB for all results of a task", place(source))
}

/// Reads JSON. NaN, Infinity and -Infinity, which Python writes, become texts: `float` of Python reads them back.
fn json(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    serde_json::from_slice(bytes).or_else(|_| {
        let text = String::from_utf8_lossy(bytes);
        serde_json::from_str(&without_nan(&text, |word| format!("\"{word}\"")))
    })
}

/// The last match in the last line that has one: its first group, or the whole of it.
fn last_match<'t>(pattern: &str, log: &'t [u8]) -> Result<Option<&'t [u8]>, String> {
    let expression = expression(pattern)?;
    let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
    // A longer log begins within a line.
    let begin = if log.len() > RESULT_BYTES {
        log.iter().position(is_end).map_or(log.len(), |end| end + 1)
    } else {
        0
    };
    Ok(log[begin..].rsplit(is_end).find_map(|line| {
        let line = &line[..line.len().min(LINE_BYTES)];
        let found = expression.captures_iter(line).take(MATCHES).last()?;
        found.get(1).or_else(|| found.get(0)).map(|text| text.as_bytes())
    }))
}

#[cfg(test)]
mod tests;
