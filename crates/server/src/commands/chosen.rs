//! Which job a user means: its id, the beginning of its id, or its name.

use std::fmt::Write as _;

use domain::JobId;
use serde::Deserialize;

use crate::{
    cli::JobRef,
    client::{Client, ClientError, on_one_line, seconds, with_query},
};

/// A user who means one of more jobs must name it by its id.
const MOST_PAGES: usize = 5;
/// How many jobs a message lists.
const SHOWN: usize = 5;
/// A name that is further away is not what the user meant.
const FAR: usize = 3;

#[derive(Deserialize)]
struct Page {
    jobs: Vec<Job>,
    next_page_token: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
struct Job {
    id: JobId,
    name: Option<String>,
    status: String,
    created_on: String,
}

/// The job, which is asked for only if its id is not known.
pub(super) fn job(client: &Client, meant: &JobRef) -> anyhow::Result<JobId> {
    let text = match meant {
        JobRef::Id(id) => return Ok(*id),
        JobRef::Prefix(text) | JobRef::Name(text) => text,
    };
    let found = search(client, Some(text))?;
    if let Some(id) = the_one(meant, &found)? {
        return Ok(id);
    }
    let near = nearest(text, &search(client, None)?);
    let near = near.map(|name| format!(" (did you mean `{}`?)", on_one_line(&name))).unwrap_or_default();
    let text = on_one_line(text);
    let message = format!(
        "no job has the id or name {text}{near}\nSee `tao-slurm list`, or search with `tao-slurm list -q {text}`."
    );
    Err(ClientError::NotFound(message).into())
}

/// The jobs that have the text in their name or at the beginning of their id; without a text the newest ones.
fn search(client: &Client, text: Option<&str>) -> Result<Vec<Job>, ClientError> {
    let (mut jobs, mut token) = (Vec::new(), None);
    for _ in 0..if text.is_some() { MOST_PAGES } else { 1 } {
        let query =
            [("limit", Some("200".to_owned())), ("q", text.map(str::to_owned)), ("page_token", token)];
        let page: Page = client.get(&with_query("/jobs", query))?.document()?;
        jobs.extend(page.jobs);
        token = page.next_page_token;
        if token.is_none() {
            break;
        }
    }
    Ok(jobs)
}

fn the_one(meant: &JobRef, found: &[Job]) -> anyhow::Result<Option<JobId>> {
    let (JobRef::Prefix(text) | JobRef::Name(text)) = meant else { return Ok(None) };
    let begins =
        |job: &&Job| matches!(meant, JobRef::Prefix(_)) && job.id.to_string().starts_with(text.as_str());
    let is_named = |job: &&Job| job.name.as_deref() == Some(text.as_str());
    let mut chosen: Vec<_> = found.iter().filter(begins).collect();
    if chosen.is_empty() {
        chosen = found.iter().filter(is_named).collect();
    }
    match chosen.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(one.id)),
        several => {
            let mut message =
                format!("{} jobs are called {}; use the id of one:", several.len(), on_one_line(text));
            for Job { id, name, status, created_on } in several.iter().take(SHOWN) {
                let name = on_one_line(name.as_deref().unwrap_or_default());
                let _ = write!(
                    message,
                    "\n  {id}  {}  {}  {name}",
                    on_one_line(status),
                    seconds(&on_one_line(created_on))
                );
            }
            if several.len() > SHOWN {
                message += "\n  …";
            }
            anyhow::bail!(message)
        }
    }
}

/// The name that is written nearly so.
fn nearest(text: &str, jobs: &[Job]) -> Option<String> {
    let names = jobs.iter().filter_map(|job| job.name.as_ref());
    let near =
        names.map(|name| (strsim::damerau_levenshtein(&text.to_lowercase(), &name.to_lowercase()), name));
    let (distance, name) = near.min_by_key(|(distance, _)| *distance)?;
    (distance < FAR && distance < text.chars().count()).then(|| name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jobs(entries: &[(&str, &str)]) -> Vec<Job> {
        let job = |(id, name): &(&str, &str)| Job {
            id: id.parse().unwrap(),
            name: Some((*name).to_owned()),
            status: "Done".to_owned(),
            created_on: "2026-11-21T03:04:05Z".to_owned(),
        };
        entries.iter().map(job).collect()
    }

    const A: &str = "01a21687-3d58-727b-af43-d5f40bfcf423";
    const B: &str = "01a21687-3d58-727b-af43-d5f5b2ec7c0e";

    #[test]
    fn a_job_is_found_by_the_beginning_of_its_id_or_by_its_whole_name() {
        let found = jobs(&[(A, "train"), (B, "train-2")]);
        let one = |text: &str| the_one(&text.parse().unwrap(), &found).unwrap().map(|id| id.to_string());
        assert_eq!(one("01a21687-3d58-727b-af43-d5f4").as_deref(), Some(A));
        assert_eq!(one("train").as_deref(), Some(A));
        assert_eq!(one("train-2").as_deref(), Some(B));
        assert_eq!(one("trai"), None);
        // A name that could be the beginning of an id.
        assert_eq!(the_one(&"cafe".parse().unwrap(), &jobs(&[(A, "cafe")])).unwrap().unwrap().to_string(), A);
    }

    #[test]
    fn of_several_jobs_none_is_guessed() {
        let refused = the_one(&"01a21687".parse().unwrap(), &jobs(&[(A, "x"), (B, "y\u{1b}")]))
            .unwrap_err()
            .to_string();
        assert!(
            refused.starts_with("2 jobs are called 01a21687; use the id of one:\n  01a21687-3d58"),
            "{refused}"
        );
        assert!(!refused.contains('\u{1b}'), "{refused}");
    }

    #[test]
    fn a_typing_error_is_answered_with_the_nearest_name() {
        let known = jobs(&[(A, "segformer"), (B, "resnet50")]);
        assert_eq!(nearest("resent50", &known).as_deref(), Some("resnet50"));
        assert_eq!(nearest("llama", &known), None);
        assert_eq!(nearest("x", &jobs(&[(A, "y")])), None);
    }
}
