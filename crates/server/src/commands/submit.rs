//! `submit` and `validate`: a job from a file or from standard input.

use std::{path::Path, process::ExitCode};

use anyhow::bail;
use serde::{Deserialize, de::IgnoredAny};

use super::{
    follow,
    output::{Output, note},
    request_file,
};
use crate::{
    cli::{SubmitArgs, ValidateArgs},
    client::{Client, StatusDocument, on_one_line, printable, with_query},
};

pub(super) fn submit(args: &SubmitArgs) -> anyhow::Result<ExitCode> {
    let job = read_job(&args.file)?;
    let client = Client::new(&args.server);
    let answer = client.post("/jobs", &job)?;
    let Accepted { id, warnings } = answer.document()?;
    if !args.server.json {
        warnings.iter().for_each(Warning::note);
    }
    let mut output = Output::new();
    output.show(&args.server, &answer, |job: StatusDocument| job.id + "\n")?;
    if args.watch {
        return follow::status(&client, &id, args.server.json, output);
    }
    Ok(ExitCode::SUCCESS)
}

/// The job in the file.
fn read_job(file: &Path) -> anyhow::Result<Vec<u8>> {
    /// The fields of a pipeline: no job has such.
    #[derive(Deserialize)]
    struct Pipeline {
        #[serde(rename = "jobs")]
        _jobs: IgnoredAny,
    }
    let document = request_file::read(file, "a job")?;
    if serde_json::from_slice::<Pipeline>(&document).is_ok() {
        let name = on_one_line(&file.display().to_string());
        bail!(
            "this is a pipeline; submit it with `tao-slurm pipeline submit {name}`, which stores all its jobs or none"
        );
    }
    Ok(document)
}

#[derive(Deserialize)]
struct Accepted {
    id: String,
    #[serde(default)]
    warnings: Vec<Warning>,
}

/// The parts of the answer that a person sees.
#[derive(Deserialize)]
struct Validation {
    batch_script: String,
    warnings: Vec<Warning>,
    live: Option<Live>,
}

#[derive(Deserialize)]
struct Live {
    accepted: bool,
    sbatch_output: String,
    missing_paths: Vec<String>,
    unknown_paths: Vec<String>,
}

#[derive(Deserialize)]
struct Warning {
    pointer: String,
    detail: String,
}

impl Warning {
    fn note(&self) {
        note(&on_one_line(&format!("warning: {}: {}", self.pointer, self.detail)));
    }
}

pub(super) fn validate(args: &ValidateArgs) -> anyhow::Result<ExitCode> {
    let job = read_job(&args.file)?;
    let path = with_query("/jobs/validate", [("live", args.live.then(|| "true".to_owned()))]);
    let answer = Client::new(&args.server).post(&path, &job)?;
    let mut output = Output::new();
    if args.server.json {
        output.json(&answer)?;
        return Ok(ExitCode::SUCCESS);
    }
    let validation: Validation = answer.document()?;
    output.bytes(printable(validation.batch_script.as_bytes()).as_bytes())?;
    validation.warnings.iter().for_each(Warning::note);
    let Some(live) = validation.live else {
        note("the job is valid");
        return Ok(ExitCode::SUCCESS);
    };
    let verdict = if live.accepted { "would accept" } else { "would reject" };
    note(&on_one_line(&format!("Slurm {verdict} the job: {}", live.sbatch_output)));
    for path in &live.missing_paths {
        let advice = "put it there, or correct the path; the job would end in Error";
        note(&on_one_line(&format!("missing on the cluster: {path} ({advice})")));
    }
    for path in &live.unknown_paths {
        note(&on_one_line(&format!("could not be checked now: {path}")));
    }
    Ok(if live.accepted && live.missing_paths.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
