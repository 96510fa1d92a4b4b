//! The commands that change a job: `cancel`, `pause`, `resume`, `retry` and `delete`. They return at once; the status
//! shows when the cluster has followed.

use std::process::ExitCode;

use serde_json::{Map, Value, json};

use super::{output::Output, request_file};
use crate::{
    cli::{CancelArgs, DeleteArgs, JobArgs, RetryArgs},
    client::{Client, StatusDocument, with_query},
};

/// Calls `POST /jobs/{id}/{action}` and prints the job's new status.
pub(super) fn post(args: &JobArgs, action: &str, body: &[u8]) -> anyhow::Result<ExitCode> {
    let answer = Client::new(&args.server).post(&format!("/jobs/{}/{action}", args.id), body)?;
    Output::new().show(&args.server, &answer, |job: StatusDocument| job.line() + "\n")
}

pub(super) fn cancel(args: &CancelArgs) -> anyhow::Result<ExitCode> {
    let body = args.tasks.as_ref().map(|tasks| json!({"tasks": tasks.to_string()}).to_string());
    post(&args.job, "cancel", body.unwrap_or_default().as_bytes())
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
    post(&args.job, "retry", &body)
}

pub(super) fn delete(args: &DeleteArgs) -> anyhow::Result<ExitCode> {
    let JobArgs { id, server } = &args.job;
    let artifacts = args.artifacts.then(|| "true".to_owned());
    Client::new(server).delete(&with_query(&format!("/jobs/{id}"), [("artifacts", artifacts)]))?;
    if !server.json {
        let files = if args.artifacts { "; its files on the cluster are being deleted" } else { "" };
        Output::new().line(&format!("{id} deleted{files}"))?;
    }
    Ok(ExitCode::SUCCESS)
}
