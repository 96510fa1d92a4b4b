//! `submit` and `validate`: a job from a file or from standard input.

use std::{path::Path, process::ExitCode};

use anyhow::{Context, bail};
use domain::{Ids, JobId};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::Value;

use super::{
    follow, interrupt, logs,
    output::{Output, note},
    request_file,
};
use crate::{
    cli::{Format, ServerArgs, SubmitArgs, ValidateArgs},
    client::{Client, Resources, on_one_line, printable, with_query},
    process::clock::RandomIds,
};

/// What the command does when the job is stored.
#[derive(Clone, Copy)]
pub(super) enum Then {
    /// It shows the status until the job ends.
    Status,
    /// It prints the log until the job ends.
    Log,
}

pub(super) fn submit(args: &SubmitArgs) -> anyhow::Result<ExitCode> {
    let mut job = read_job(args.file())?;
    if !args.set.is_empty() {
        let mut document: Value = serde_json::from_slice(&job)?;
        for (path, value) in &args.set {
            set(&mut document, path, value.clone()).with_context(|| format!("--set {path}"))?;
        }
        job = serde_json::to_vec(&document)?;
    }
    send(&args.server, &job, args.watch.then_some(Then::Status).or(args.follow.then_some(Then::Log)))
}

/// Puts a value into a document: `resources.num_nodes`, `steps.0.name`. What is missing on the way is made.
fn set(document: &mut Value, path: &str, value: Value) -> anyhow::Result<()> {
    let mut place = document;
    for key in path.split('.') {
        if place.is_null() {
            *place = Value::Object(serde_json::Map::new());
        }
        place = match place {
            Value::Object(fields) => fields.entry(key).or_insert(Value::Null),
            Value::Array(entries) => {
                let (number, length) = (key.parse::<usize>(), entries.len());
                let entry = number.ok().and_then(|number| entries.get_mut(number));
                entry.with_context(|| format!("{key} is no place in a list of {length}"))?
            }
            _ => bail!("{key} would be in a value that has no fields"),
        };
    }
    *place = value;
    Ok(())
}

/// Submits the job and prints its id. A request that got no answer is repeated, and does not make a second job.
pub(super) fn send(server: &ServerArgs, job: &[u8], then: Option<Then>) -> anyhow::Result<ExitCode> {
    let client = Client::new(server)?;
    let key = RandomIds.job().to_string();
    let answer =
        follow::repeated("the job is submitted once", || client.post_once("/jobs", job, Some(&key)))?;
    let Accepted { id, warnings } = answer.document()?;
    if !server.output.is_document() {
        warnings.iter().for_each(Warning::note);
    }
    let mut output = Output::new();
    output.show(server, &answer, |Accepted { id, .. }| format!("{id}\n"))?;
    if then.is_none() && output.is_terminal && server.output == Format::Text {
        note(&format!("Follow it with `tao-slurm logs -f {id}` or `tao-slurm wait {id}`."));
    }
    match then {
        None => Ok(ExitCode::SUCCESS),
        Some(Then::Status) => follow::status(&client, id, server.output, output),
        Some(Then::Log) => {
            // `follow` locks standard output again.
            drop(output);
            interrupt::say(format!(
                "The job goes on. Come back with `tao-slurm logs -f {id}`; end it with `tao-slurm cancel {id}`."
            ));
            logs::follow_to_the_end(&client, id, server.output)
        }
    }
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
    id: JobId,
    #[serde(default)]
    warnings: Vec<Warning>,
}

/// The parts of the answer that a person sees.
#[derive(Deserialize)]
struct Validation {
    job: Job,
    batch_script: String,
    submissions: u32,
    warnings: Vec<Warning>,
    live: Option<Live>,
}

#[derive(Deserialize)]
struct Job {
    name: Option<String>,
    image: Option<String>,
    cluster: String,
    partition: Option<String>,
    resources: Resources,
    tasks: Option<Tasks>,
}

#[derive(Deserialize)]
struct Tasks {
    total: u32,
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

impl Validation {
    /// What the job would be, one line for each fact.
    fn summary(&self) -> String {
        let Self { job, submissions, .. } = self;
        let mut lines = vec![
            format!("job:       {}", job.name.as_deref().unwrap_or("(no name)")),
            format!(
                "cluster:   {}, partition {}",
                job.cluster,
                job.partition.as_deref().unwrap_or("(Slurm's default)")
            ),
            format!("image:     {}", job.image.as_deref().unwrap_or("(none: the command runs on the node)")),
            format!("resources: {}", job.resources),
            format!("CPUs:      {} for each task", job.resources.cpus_per_task),
        ];
        if let Some(Tasks { total }) = &job.tasks {
            lines.push(format!("array:     {total} tasks in {submissions} submissions"));
        }
        lines.iter().map(|line| on_one_line(line) + "\n").collect()
    }
}

pub(super) fn validate(args: &ValidateArgs) -> anyhow::Result<ExitCode> {
    let job = read_job(&args.file)?;
    let path = with_query("/jobs/validate", [("live", args.live.then(|| "true".to_owned()))]);
    let answer = Client::new(&args.server)?.post(&path, &job)?;
    let mut output = Output::new();
    let validation: Validation = answer.document()?;
    if args.server.output.is_document() {
        output.document(args.server.output, &answer.document()?)?;
    } else if args.script {
        output.bytes(printable(validation.batch_script.as_bytes()).as_bytes())?;
    } else {
        output.text(&validation.summary())?;
    }
    if !args.server.output.is_document() {
        validation.warnings.iter().for_each(Warning::note);
    }
    let Some(live) = validation.live else {
        if !args.server.output.is_document() {
            note("The job is valid. `--script` shows its batch script; `--live` asks the cluster, too.");
        }
        return Ok(ExitCode::SUCCESS);
    };
    if !args.server.output.is_document() {
        live.note();
    }
    Ok(if live.accepted && live.missing_paths.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Live {
    fn note(&self) {
        let verdict = if self.accepted { "would accept" } else { "would reject" };
        note(&on_one_line(&format!("Slurm {verdict} the job: {}", self.sbatch_output)));
        for path in &self.missing_paths {
            let advice = "put it there, or correct the path; the job would end in Error";
            note(&on_one_line(&format!("missing on the cluster: {path} ({advice})")));
        }
        for path in &self.unknown_paths {
            note(&on_one_line(&format!("could not be checked now: {path}")));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_is_set_where_its_path_leads() {
        let mut job = json!({"resources": {"num_nodes": 1}, "steps": [{"name": "a"}], "name": "x"});
        for (path, value) in
            [("resources.num_nodes", json!(2)), ("labels.team", json!("v")), ("steps.0.name", json!("b"))]
        {
            set(&mut job, path, value).unwrap();
        }
        let expected = json!({"resources": {"num_nodes": 2}, "steps": [{"name": "b"}], "name": "x", "labels": {"team": "v"}});
        assert_eq!(job, expected);
        for wrong in ["steps.1.name", "steps.x", "name.first"] {
            assert!(set(&mut job, wrong, json!(1)).is_err(), "{wrong}");
        }
        assert_eq!(job, expected);
    }
}
