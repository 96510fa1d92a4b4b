//! A pipeline: jobs that are stored together and need each other by name.

use std::collections::{BTreeMap, HashMap};

use serde::Deserialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{
    request::{
        body::JobRequest,
        spec::labels,
        text::{Label, Word},
        webhook::WebhookRequest,
    },
    violation::{Faults, Violation, pointer},
};

/// The most jobs of a pipeline.
const MAX_JOBS: usize = 1000;
/// The most names of jobs in a message.
const SHOWN: usize = 20;

/// Jobs that are stored together, all or none.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PipelineRequest {
    /// The caller's own UUID for the pipeline. Default: a new one.
    pub id: Option<Uuid>,
    /// A display name.
    #[schema(max_length = 500)]
    pub name: Option<String>,
    /// Labels of all its jobs; a job's own label of the same name overrides it.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// The jobs by their names in the pipeline, 1 to 1,000. The `needs` of a job may name another one.
    pub jobs: BTreeMap<String, JobRequest>,
    /// The receiver of the status changes of all its jobs that name none themselves.
    #[schema(write_only)]
    pub webhook: Option<WebhookRequest>,
}

/// A job of a pipeline, with ids in the place of names.
#[derive(Debug)]
pub struct PipelineJob {
    pub name: Word,
    pub request: JobRequest,
}

impl PipelineRequest {
    /// The jobs, each after those that it needs. `new_id`: an id for a job without one.
    pub fn into_jobs(self, mut new_id: impl FnMut() -> Uuid) -> Result<Vec<PipelineJob>, Vec<Violation>> {
        let mut faults = Faults::default();
        if !(1..=MAX_JOBS).contains(&self.jobs.len()) {
            let detail = format_args!("has {} jobs; must have 1 to {MAX_JOBS}", self.jobs.len());
            faults.add("/jobs", "out_of_range", detail);
            return Err(faults.0);
        }
        if let Some(name) = &self.name {
            faults.parse::<Label>("/name", name);
        }
        labels(&self.labels, &mut faults);
        if !faults.0.is_empty() {
            return Err(faults.0);
        }
        let mut jobs = Vec::with_capacity(self.jobs.len());
        for (name, mut request) in self.jobs {
            let Some(name) = faults.parse::<Word>(&pointer("/jobs", &name), &name) else { continue };
            request.id.get_or_insert_with(&mut new_id);
            request.webhook = request.webhook.or_else(|| self.webhook.clone());
            for (key, value) in &self.labels {
                request.labels.entry(key.clone()).or_insert_with(|| value.clone());
            }
            jobs.push(PipelineJob { name, request });
        }
        resolve(&mut jobs, &mut faults);
        if !faults.0.is_empty() {
            return Err(faults.0);
        }
        in_order(jobs).map_err(|cycle| vec![cycle])
    }
}

/// Puts the ids of the jobs in the place of their names.
fn resolve(jobs: &mut [PipelineJob], faults: &mut Faults) {
    let mut ids: HashMap<String, Uuid> = HashMap::new();
    for PipelineJob { name, request } in &*jobs {
        let Some(id) = request.id else { continue };
        if ids.values().any(|other| *other == id) {
            let place = format!("{}/id", pointer("/jobs", name.as_str()));
            faults.add(place, "repeated", "is the id of another job of the pipeline");
        }
        ids.insert(name.to_string(), id);
    }
    let mut known: Vec<String> = ids.keys().cloned().collect();
    known.sort_unstable();
    for PipelineJob { name, request } in jobs {
        for (at, need) in request.needs.iter_mut().enumerate() {
            if let Some(id) = ids.get(&need.job) {
                need.name.get_or_insert_with(|| need.job.clone());
                need.job = id.to_string();
            } else if let Ok(id) = need.job.parse::<Uuid>() {
                // In one spelling: it may be the id of a job of the pipeline.
                need.job = id.to_string();
            } else {
                let place = format!("{}/needs/{at}/job", pointer("/jobs", name.as_str()));
                let names: Vec<&str> = known.iter().take(SHOWN).map(String::as_str).collect();
                let (names, more) = (names.join(", "), if known.len() > SHOWN { " and others" } else { "" });
                let detail = format_args!(
                    "names no job of the pipeline: {}; its jobs are {names}{more}",
                    slurm::shown(&need.job)
                );
                faults.add(place, "unknown_job", detail);
            }
        }
    }
}

/// The jobs, each after those that it needs; or those that need each other in a cycle.
fn in_order(jobs: Vec<PipelineJob>) -> Result<Vec<PipelineJob>, Violation> {
    let place: HashMap<String, usize> =
        jobs.iter().zip(0..).filter_map(|(job, at)| Some((job.request.id?.to_string(), at))).collect();
    let needed: Vec<Vec<usize>> = jobs
        .iter()
        .map(|job| job.request.needs.iter().filter_map(|need| place.get(&need.job).copied()).collect())
        .collect();
    let mut needing: Vec<Vec<usize>> = vec![Vec::new(); jobs.len()];
    for (at, needed) in needed.iter().enumerate() {
        for other in needed {
            needing[*other].push(at);
        }
    }
    let mut open: Vec<usize> = needed.iter().map(Vec::len).collect();
    let mut order: Vec<usize> = (0..jobs.len()).filter(|at| open[*at] == 0).collect();
    let mut next = 0;
    while let Some(at) = order.get(next).copied() {
        next += 1;
        for other in &needing[at] {
            open[*other] -= 1;
            if open[*other] == 0 {
                order.push(*other);
            }
        }
    }
    if order.len() < jobs.len() {
        return Err(cycle(&jobs, &needed, &open));
    }
    let mut jobs: Vec<_> = jobs.into_iter().map(Some).collect();
    Ok(order.into_iter().filter_map(|at| jobs[at].take()).collect())
}

/// One cycle. `open`: how many of the needs of each job are not in order.
fn cycle(jobs: &[PipelineJob], needed: &[Vec<usize>], open: &[usize]) -> Violation {
    let next = |at: usize| needed[at].iter().position(|other| open[*other] > 0);
    let mut path: Vec<usize> = Vec::new();
    let mut at = open.iter().position(|count| *count > 0).unwrap_or_default();
    while !path.contains(&at) {
        path.push(at);
        at = next(at).map_or(at, |need| needed[at][need]);
    }
    let begin = path.iter().position(|one| *one == at).unwrap_or_default();
    let names = path[begin..].iter().chain([&at]).map(|at| jobs[*at].name.as_str());
    let names: Vec<&str> = names.collect();
    let place = pointer("/jobs", jobs[at].name.as_str());
    let detail = format!("needs itself in the end: {}", names.join(" needs "));
    Violation::new(format!("{place}/needs/{}/job", next(at).unwrap_or_default()), "cycle", detail)
}

#[cfg(test)]
mod tests;
