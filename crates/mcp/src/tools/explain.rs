//! `explain_job`: why a job waits or failed, and what to do next.

use loopback::{Api, Failure, Query};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Refused, answer::Of, status::is_final};
use crate::{
    client::{
        Diagnosis, GET_JOB, JOB_DIAGNOSIS, JOB_STATUS, JOB_USAGE, Job, JobStatus, Memory, Resources, Usage,
    },
    text::{Few, Text},
};

pub(super) const ABOUT: &str = "Says why a job waits, runs badly or failed: the reason of Slurm, the first cause in its logs with the line, \
    what it used, what it asked for, and changes for retry_job where more of something helps.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The id of the job.
    job_id: String,
    /// The task of an array. Default: the first one that failed.
    task: Option<u32>,
    /// Default: the newest attempt.
    attempt: Option<u32>,
}

/// Why a job is as it is.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Explained {
    job: JobStatus,
    /// The first cause; null if the job has not failed.
    diagnosis: Option<Diagnosis>,
    /// What the job used; null if that is not known.
    used: Option<Used>,
    /// What it asked for.
    asked_for: Resources,
    /// What to do next.
    advice: &'static str,
    /// `changes` for `retry_job` that may help; null if no change of resources helps.
    suggested_changes: Option<Value>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Used {
    /// What the figures mean.
    notes: Few<Text, 6>,
    /// The most memory of a node, as Slurm accounts for it when the job has ended.
    most_memory_mib: Option<u64>,
}

pub(super) async fn run(api: Api, arguments: Arguments) -> Result<Of<Explained>, Refused> {
    let id = [arguments.job_id.as_str()];
    let details: Value = api.get(&GET_JOB, &id, &Query::new()).await?;
    let unreadable = |_| Refused::from(Failure::Unreadable);
    let resources = serde_json::from_value::<Job>(details).map_err(unreadable)?.resources;
    let job = api.get(&JOB_STATUS, &id, &Query::new()).await?;
    let chosen = Query::new().with_if("task", arguments.task).with_if("attempt", arguments.attempt);
    let diagnosis = match api.get(&JOB_DIAGNOSIS, &id, &chosen).await {
        Ok(diagnosis) => Some(diagnosis),
        Err(failure) if failure.is("not_failed") => None,
        Err(failure) => return Err(failure.into()),
    };
    let task = Query::new().with_if("task", arguments.task);
    // Only an addition: an array has it for each task.
    let used = api.get(&JOB_USAGE, &id, &task).await.ok().map(|usage| {
        let Usage { notes, accounted } = usage;
        Used { notes, most_memory_mib: accounted.most_memory_mib }
    });
    let category = diagnosis.as_ref().map(|diagnosis| diagnosis.category.as_str());
    let suggested_changes = category.and_then(|category| suggestion(category, &resources));
    let advice = advice(&job, category, suggested_changes.is_some());
    let said = said(&job, diagnosis.as_ref(), advice);
    let explained = Explained { job, diagnosis, used, asked_for: resources, advice, suggested_changes };
    Ok(Of::new(said, &explained))
}

fn advice(job: &JobStatus, category: Option<&str>, has_changes: bool) -> &'static str {
    match category {
        None if job.pending.is_some() => {
            "Read `pending`: if needs_action is true, the job does not start before someone acts. Otherwise wait."
        }
        None if is_final(job) => "The job has not failed.",
        None => "The job has not failed. Wait with get_status.",
        Some("host_memory") if has_changes => {
            "Call retry_job with suggested_changes and dry_run=true, then without dry_run."
        }
        Some("host_memory") => {
            "Call retry_job with changes.resources.memory, as far as list_partitions allows."
        }
        Some("time_limit") => {
            "Call retry_job with a longer time, as far as list_partitions allows; a training that saves checkpoints can be retried as it is."
        }
        Some("gpu_memory") => {
            "Let the program use less memory of a GPU, such as a smaller batch, or ask for more or larger GPUs with changes of retry_job."
        }
        Some("code" | "environment" | "data") => {
            "Fix the program or its data. A retry without a change fails again."
        }
        Some("gpu" | "network" | "storage" | "slurm") => {
            "The infrastructure failed. Call retry_job without changes."
        }
        Some("image") => "Check the image. If it exists, call retry_job without changes.",
        Some(_) => "Read the logs with get_logs; search for error.",
    }
}

/// Twice the memory, or half as much time again. The dry run says whether the cluster has it.
fn suggestion(category: &str, resources: &Resources) -> Option<Value> {
    match category {
        "host_memory" => doubled(resources.memory.as_ref()?),
        "time_limit" => Some(json!({"resources": {"time_hours": resources.time_hours * 1.5}})),
        _ => None,
    }
}

fn doubled(memory: &Memory) -> Option<Value> {
    let given = [("per_node", &memory.per_node), ("per_cpu", &memory.per_cpu), ("per_gpu", &memory.per_gpu)];
    let (name, text) = given.into_iter().find_map(|(name, value)| Some((name, value.as_ref()?.as_str())))?;
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let number = digits.parse::<u64>().ok().filter(|number| *number > 0)?.checked_mul(2)?;
    Some(json!({"resources": {"memory": {name: format!("{number}{}", &text[digits.len()..])}}}))
}

fn said(job: &JobStatus, diagnosis: Option<&Diagnosis>, advice: &str) -> String {
    let (id, status) = (job.id.as_str(), job.status.as_str());
    let Some(diagnosis) = diagnosis else { return format!("The job {id} is {status}. {advice}") };
    let gaps = if diagnosis.has_gaps {
        " A part of the logs was not searched, so an earlier cause is possible."
    } else {
        ""
    };
    format!(
        "The job {id} is {status}; the cause is of the kind {}.{gaps} {advice}",
        diagnosis.category.as_str()
    )
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test_case(json!({"per_node": "64G"}) => Some(json!({"per_node": "128G"})))]
    #[test_case(json!({"per_gpu": "500"}) => Some(json!({"per_gpu": "1000"})))]
    #[test_case(json!({"per_node": "0"}) => None; "all of the node")]
    #[test_case(json!({"per_node": "99999999999999999999G"}) => None; "no number")]
    #[test_case(json!({}) => None; "none")]
    fn twice_the_memory(memory: Value) -> Option<Value> {
        doubled(&serde_json::from_value(memory).unwrap())
            .map(|changes| changes["resources"]["memory"].clone())
    }
}
