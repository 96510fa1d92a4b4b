//! From the document of a request to a job that could be stored: the same way for sending and for validating.

use chrono::SubsecRound;
use domain::{Cluster, Job, JobId, JobRequest, JobSpec, Secrets, Violation};
use serde_json::Value;

use crate::{
    auth::Caller, extract::Sent, known_partitions::beyond_limits, layers, problem::Problem, state::App,
};

/// A job that has passed every check but those of its id.
pub(super) struct Accepted<'a> {
    pub(super) job: Job,
    pub(super) secrets: Secrets,
    pub(super) cluster: &'a Cluster,
}

pub(super) async fn accept(
    app: &App,
    caller: Caller,
    Sent { document, value: request }: Sent<JobRequest>,
) -> Result<Accepted<'_>, Problem> {
    let lists = lists_for_objects(&document);
    if !lists.is_empty() {
        return Err(Problem::fields(lists));
    }
    let id = JobId::new(request.id.unwrap_or_else(|| app.ids.job()));
    let (spec, secrets, cluster) = JobSpec::from_request(request, &app.clusters).map_err(Problem::fields)?;
    layers::name_job(id);
    let beyond = beyond_limits(app, cluster, &spec).await?;
    // Limits change, and the same request again has the same answer.
    if !beyond.is_empty() && app.store.find_job(id, &caller.viewer()).await?.is_none() {
        return Err(Problem::fields(beyond));
    }
    // Postgres keeps microseconds; what is answered now has to be what is answered later.
    let now = app.clock.now().trunc_subsecs(6);
    let job = Job::accepted(id, caller.owner, cluster.name.clone(), spec, now);
    Ok(Accepted { job, secrets, cluster })
}

/// serde fills a struct from a list too, by position. Nobody means that, and the document does not offer it.
fn lists_for_objects(document: &Value) -> Vec<Violation> {
    let objects = ["resources", "container", "retry", "backend_details"];
    let lists = objects.into_iter().filter(|field| document[*field].is_array());
    lists
        .map(|field| Violation::new(format!("/{field}"), "wrong_type", "must be an object, not an array"))
        .collect()
}
