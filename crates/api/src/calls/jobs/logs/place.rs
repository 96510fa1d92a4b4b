//! Where the logs of an attempt are, and why there are none.

use domain::{AttemptNo, AttemptPlace, Job, JobId, JobPaths, LogFile, LogRole, Phase};
use remote::{LogFrom, LogQuestion};
use slurm::{InvalidName, RemotePath};

use crate::{
    problem::{Kind, Problem},
    state::App,
};

/// The most tasks of a role; each has two logs.
const MOST_TASKS: u32 = 256;

/// The selected attempt, by default the newest. None while the job has no attempt.
pub(super) async fn attempt(
    app: &App,
    job: &Job,
    task: Option<u32>,
    no: Option<AttemptNo>,
) -> Result<Option<AttemptPlace>, Problem> {
    if let Some(task) = task {
        return attempt_of_task(app, job, task, no).await;
    }
    let newest = job.attempt.as_ref();
    let Some(no) = no.filter(|no| newest.is_none_or(|newest| newest.no != *no)) else {
        return Ok(newest.map(AttemptPlace::from));
    };
    // The first attempt of a job without attempts will be its newest.
    if newest.is_none() && no == AttemptNo::FIRST {
        return Ok(None);
    }
    if let Some(place) = app.store.find_attempt_place(job.id, no, None).await? {
        return Ok(Some(place));
    }
    let had = newest.map_or(0, |newest| newest.no.get());
    let detail = match had {
        0 => format!("The job has not been submitted to Slurm yet, so attempt {no} does not exist."),
        had => format!("Attempt {no} does not exist; the newest is {had}."),
    };
    Err(Problem::new(Kind::AttemptNotFound, detail))
}

/// The selected attempt of a task, by default that of its newest run. None while the task has no run.
async fn attempt_of_task(
    app: &App,
    job: &Job,
    task: u32,
    no: Option<AttemptNo>,
) -> Result<Option<AttemptPlace>, Problem> {
    let no = match no {
        Some(no) => no,
        None => match app.store.newest_runs(job.id, &[task]).await?.remove(&task) {
            Some(newest) => newest.attempt,
            None => return Ok(None),
        },
    };
    let place = app.store.find_attempt_place(job.id, no, Some(task)).await?;
    let missing =
        || Problem::new(Kind::AttemptNotFound, format!("The job has no attempt {no} with task {task}."));
    place.ok_or_else(missing).map(Some)
}

/// The question for a part of a log.
pub(super) fn part_of(
    job: JobId,
    place: &AttemptPlace,
    file: &LogFile,
    from: LogFrom,
    max_bytes: u64,
) -> Result<LogQuestion, InvalidName> {
    let paths = paths_of(job, place, file)?;
    Ok(LogQuestion::Part { subject: place.key(job).subject, paths, from, max_bytes })
}

/// Where a log may be.
pub(super) fn paths_of(
    job: JobId,
    place: &AttemptPlace,
    file: &LogFile,
) -> Result<Vec<RemotePath>, InvalidName> {
    JobPaths::new(&place.job_dir, job)?.log_file(place, file)
}

/// The question for a role's logs; none until Slurm has accepted the attempt.
pub(super) fn files_of(
    job: JobId,
    place: &AttemptPlace,
    role: &LogRole,
) -> Result<Option<LogQuestion>, InvalidName> {
    let directory = JobPaths::new(&place.job_dir, job)?.role_logs(place, role)?;
    let subject = place.key(job).subject;
    Ok(directory.map(|directory| LogQuestion::Files { subject, directory, most: 2 * MOST_TASKS }))
}

/// An invalid path of our own: a defect, or a row that another program has written.
pub(super) fn no_path(job: JobId, error: &InvalidName) -> Problem {
    tracing::error!(%error, job.id = %job, "a job's log paths are not valid");
    Problem::internal()
}

/// Why there is no log.
pub(super) fn why_no_log(job: &Job, attempt: Option<AttemptNo>, role: Option<&LogRole>) -> String {
    let newest = job.attempt.as_ref().map(|attempt| attempt.no);
    match (newest, job.phase) {
        (None, Phase::Ended) => {
            "The job finished before it was submitted to Slurm, so it never wrote a log.".to_owned()
        }
        (None, _) => "The job has not been submitted to Slurm yet; its log begins when it runs.".to_owned(),
        (Some(newest), phase) if attempt.is_some_and(|no| no < newest) || phase == Phase::Ended => {
            let (role, no) = (role_text(role), attempt.unwrap_or(newest));
            format!(
                "Attempt {no} is over, and the cluster has no log {role}of it: it never ran, or the log was removed."
            )
        }
        (Some(newest), _) => format!(
            "Attempt {newest} has not written a log {}yet; the log begins when it runs. Now: {}",
            role_text(role),
            job.message
        ),
    }
}

fn role_text(role: Option<&LogRole>) -> String {
    role.map(|role| format!("of the role `{role}` ")).unwrap_or_default()
}
