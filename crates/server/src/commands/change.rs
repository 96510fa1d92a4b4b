//! The commands that change a job: `cancel`, `pause`, `resume`, `retry` and `delete`. They return at once; the status
//! shows when the cluster has followed.

use std::process::ExitCode;

use domain::JobId;
use serde_json::{Map, Value, json};

use super::{
    chosen,
    output::{Output, note},
    request_file,
};
use crate::{
    cli::{CancelArgs, DeleteArgs, Format, JobsArgs, RetryArgs},
    client::{Client, ClientError, StatusDocument, with_query},
};

/// Calls `POST /jobs/{id}/{action}` for each job and prints its new status.
pub(super) fn post(args: &JobsArgs, action: &str, body: &[u8]) -> anyhow::Result<ExitCode> {
    each(args, |client, id| {
        let answer = client.post(&format!("/jobs/{id}/{action}"), body)?;
        let is_one = args.jobs.len() == 1;
        Output::new().show(&args.server, &answer, |job: StatusDocument| {
            if is_one { job.colored_line() + "\n" } else { format!("{id} {}\n", job.colored_line()) }
        })
    })
}

/// Does this with each job, also after an error with another one. The exit code is the worst.
pub(super) fn each(
    args: &JobsArgs,
    mut act: impl FnMut(&Client, JobId) -> anyhow::Result<ExitCode>,
) -> anyhow::Result<ExitCode> {
    let client = Client::new(&args.server)?;
    let mut with = |job| chosen::job(&client, job).and_then(|id| act(&client, id));
    if let [job] = args.jobs.as_slice() {
        return with(job);
    }
    let mut codes = Vec::new();
    for job in &args.jobs {
        codes.push(match with(job) {
            Ok(code) if code == ExitCode::SUCCESS => 0,
            Ok(code) if code == ExitCode::from(2) => 2,
            Ok(_) => 1,
            Err(error) => {
                note(&format!("{job}: {error:#}"));
                error.downcast_ref::<ClientError>().map_or(1, ClientError::exit_code)
            }
        });
    }
    Ok(ExitCode::from(worst(&codes)))
}

/// The exit code for several jobs: a request that failed counts most, and a failed job more than a canceled one.
pub(super) fn worst(codes: &[u8]) -> u8 {
    let most = codes.iter().copied().max().unwrap_or(0);
    if most == 2 && codes.contains(&1) { 1 } else { most }
}

pub(super) fn cancel(args: &CancelArgs) -> anyhow::Result<ExitCode> {
    let body = args.tasks.as_ref().map(|tasks| json!({"tasks": tasks.to_string()}).to_string());
    post(&args.jobs, "cancel", body.unwrap_or_default().as_bytes())
}

pub(super) fn retry(args: &RetryArgs) -> anyhow::Result<ExitCode> {
    let mut body = match &args.secrets {
        // Secrets come from a file, because every user of the machine can read the arguments of a process.
        Some(file) => request_file::read(file, "secrets")?,
        None => Vec::new(),
    };
    if let Some(tasks) = &args.tasks {
        let mut request: Map<String, Value> = match body.as_slice() {
            [] => Map::new(),
            secrets => serde_json::from_slice(secrets)?,
        };
        request.insert("tasks".to_owned(), tasks.to_string().into());
        body = serde_json::to_vec(&request)?;
    }
    post(&args.jobs, "retry", &body)
}

pub(super) fn delete(args: &DeleteArgs) -> anyhow::Result<ExitCode> {
    each(&args.jobs, |client, id| {
        let artifacts = args.artifacts.then(|| "true".to_owned());
        client.delete(&with_query(&format!("/jobs/{id}"), [("artifacts", artifacts)]))?;
        let files = if args.artifacts { "; its files on the cluster are being deleted" } else { "" };
        match args.jobs.server.output {
            Format::Text | Format::Wide => Output::new().line(&format!("{id} deleted{files}"))?,
            Format::Name => Output::new().line(&id.to_string())?,
            Format::Json | Format::Yaml => {}
        }
        Ok(ExitCode::SUCCESS)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_job_counts_more_than_a_canceled_one_and_a_failed_request_most() {
        assert_eq!(worst(&[0, 2, 1]), 1);
        assert_eq!(worst(&[0, 2]), 2);
        assert_eq!(worst(&[4, 1, 2]), 4);
        assert_eq!(worst(&[0, 0]), 0);
    }
}
