//! Where the logs of an attempt are, and why there may be none.

use domain::{AttemptNo, AttemptPlace, Job, JobId, JobPaths, LogFile, LogRole, Phase};
use remote::{LogFrom, LogQuestion};
use slurm::InvalidName;

use crate::{
    problem::{Kind, Problem},
    state::App,
};

/// The most tasks of a role that are looked at; each has two logs.
const MOST_TASKS: u32 = 256;

/// The attempt that is asked for: the newest, unless another is named. None as long as the job has none.
pub(super) async fn attempt(
    app: &App,
    job: &Job,
    no: Option<AttemptNo>,
) -> Result<Option<AttemptPlace>, Problem> {
    let newest = job.attempt.as_ref();
    let Some(no) = no.filter(|no| newest.is_none_or(|newest| newest.no != *no)) else {
        return Ok(newest.map(AttemptPlace::from));
    };
    // The first attempt of a job that has none yet is the newest to come.
    if newest.is_none() && no == AttemptNo::FIRST {
        return Ok(None);
    }
    if let Some(place) = app.store.find_attempt_place(job.id, no).await? {
        return Ok(Some(place));
    }
    let had = newest.map_or(0, |newest| newest.no.get());
    let detail = match had {
        0 => format!("The job has not been sent to Slurm yet, so there is no attempt {no}."),
        had => format!("There is no attempt {no}; the newest is {had}."),
    };
    Err(Problem::new(Kind::AttemptNotFound, detail))
}

/// The question for a part of a log.
pub(super) fn part_of(
    job: JobId,
    place: &AttemptPlace,
    file: &LogFile,
    from: LogFrom,
    max_bytes: u64,
) -> Result<LogQuestion, InvalidName> {
    let paths = JobPaths::new(&place.job_dir, job)?.log_file(place, file)?;
    Ok(LogQuestion::Part { subject: place.key(job).subject, paths, from, max_bytes })
}

/// The question for the logs that a role has; none as long as Slurm has not taken the attempt.
pub(super) fn files_of(
    job: JobId,
    place: &AttemptPlace,
    role: &LogRole,
) -> Result<Option<LogQuestion>, InvalidName> {
    let directory = JobPaths::new(&place.job_dir, job)?.role_logs(place, role)?;
    let subject = place.key(job).subject;
    Ok(directory.map(|directory| LogQuestion::Files { subject, directory, most: 2 * MOST_TASKS }))
}

/// A path of ours that is none: a defect, or a row that somebody else has written.
pub(super) fn no_path(job: JobId, error: &InvalidName) -> Problem {
    tracing::error!(%error, job.id = %job, "the paths of a job are not valid");
    Problem::internal()
}

/// Why there is no log, in a sentence.
pub(super) fn why_no_log(job: &Job, asked: Option<AttemptNo>, role: Option<&LogRole>) -> String {
    let newest = job.attempt.as_ref().map(|attempt| attempt.no);
    match (newest, job.phase) {
        (None, Phase::Ended) => {
            "The job ended before it was sent to Slurm, so it never wrote a log.".to_owned()
        }
        (None, _) => "The job has not been sent to Slurm yet; it writes its log once it runs.".to_owned(),
        (Some(newest), phase) if asked.is_some_and(|asked| asked < newest) || phase == Phase::Ended => {
            let (which, no) = (role_text(role), asked.unwrap_or(newest));
            format!(
                "Attempt {no} is over, and no log {which}of it is on the cluster: it never ran, or the log was removed."
            )
        }
        (Some(newest), _) => format!(
            "Attempt {newest} has not written a log {}yet; it will once it runs. Now: {}",
            role_text(role),
            job.message
        ),
    }
}

fn role_text(role: Option<&LogRole>) -> String {
    role.map(|role| format!("of a role `{role}` ")).unwrap_or_default()
}
