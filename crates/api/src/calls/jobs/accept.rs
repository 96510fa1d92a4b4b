//! Turns a request body into a job: the checks that `POST /jobs` and `POST /jobs/validate` share.

use chrono::SubsecRound;
use domain::{
    Cluster, Job, JobId, JobRequest, JobSpec, Note, Secrets, Violation, Webhook,
    limits::{self, PartitionLimits},
};
use persistence::StoreError;
use serde_json::Value;

use crate::{
    auth::Caller,
    caches::known_clusters::ClusterSet,
    http::extract::{Sent, name_job},
    problem::Problem,
    state::App,
};

/// A job that has passed every check except the check of its id.
pub(crate) struct Accepted {
    pub(crate) job: Job,
    pub(crate) secrets: Secrets,
    pub(crate) webhook: Option<Webhook>,
    pub(super) cluster: Cluster,
    /// The incarnation of a stored cluster; none for one of the configuration file.
    pub(crate) incarnation: Option<i64>,
}

pub(crate) async fn accept(
    app: &App,
    caller: Caller,
    Sent { document, value: mut request }: Sent<JobRequest>,
) -> Result<Accepted, Problem> {
    let lists = lists_for_objects(&document);
    if !lists.is_empty() {
        return Err(Problem::fields(lists));
    }
    let id = JobId::new(request.id.unwrap_or_else(|| app.ids.job()));
    let webhook = request.webhook.take();
    let webhook = webhook.map(|webhook| Webhook::from_request(&webhook, &app.webhook_networks)).transpose();
    let known = app.clusters.now();
    let job = usable(&request, &known).and_then(|()| JobSpec::from_request(request, known.all()));
    let ((mut spec, secrets, cluster), webhook) = both(job, webhook).map_err(Problem::fields)?;
    name_job(id);
    let limits = known_limits(app, cluster).await?;
    // Postgres stores microseconds; this answer must equal later ones.
    let now = app.clock.now().trunc_subsecs(6);
    let mut beyond = limits::check(&spec, &limits);
    beyond.extend(limits::too_late(&spec, now));
    spec.notes = limits::doubts(&spec, &limits).into_iter().map(Note::from).collect();
    // Limits change and time passes, but a repeated request must get the same answer.
    if !beyond.is_empty() && app.store.find_job(id, &caller.viewer()).await?.is_none() {
        return Err(Problem::fields(beyond));
    }
    let job = Job::accepted(id, caller.owner, cluster.name.clone(), spec, now);
    let (cluster, incarnation) = (cluster.clone(), known.incarnation(&cluster.name));
    Ok(Accepted { job, secrets, webhook, cluster, incarnation })
}

/// These needs name no job of the caller. Another owner's job gets the same answer.
pub(super) fn needs_unknown(places: &[usize]) -> Problem {
    Problem::fields(places.iter().map(|place| unknown_need("", *place)).collect())
}

/// `at`: the pointer of the job.
pub(crate) fn unknown_need(at: &str, place: usize) -> Violation {
    let detail = "names no job of yours: it may have been deleted";
    Violation::new(format!("{at}/needs/{place}/job"), "unknown_job", detail)
}

/// An existing cluster with invalid settings gets its own error, not `unknown_cluster`.
fn usable(request: &JobRequest, known: &ClusterSet) -> Result<(), Vec<Violation>> {
    let named = request.backend_details.cluster_name.as_ref().and_then(|name| name.parse().ok());
    if named.is_some_and(|name| known.unusable().contains_key(&name)) {
        let detail =
            "cannot be used, because its stored settings are invalid; an administrator must correct them";
        return Err(vec![Violation::new("/backend_details/cluster_name", "unusable_cluster", detail)]);
    }
    Ok(())
}

/// Both values, or all faults.
fn both<A, B>(
    one: Result<A, Vec<Violation>>,
    other: Result<B, Vec<Violation>>,
) -> Result<(A, B), Vec<Violation>> {
    match (one, other) {
        (Ok(one), Ok(other)) => Ok((one, other)),
        (one, other) => Err([one.err(), other.err()].into_iter().flatten().flatten().collect()),
    }
}

/// serde also fills a struct from an array, by position. The API accepts objects only.
fn lists_for_objects(document: &Value) -> Vec<Violation> {
    let objects = ["array", "resources", "container", "retry", "backend_details", "webhook"];
    let lists = objects.into_iter().filter(|field| document[*field].is_array());
    lists
        .map(|field| Violation::new(format!("/{field}"), "wrong_type", "must be an object, not an array"))
        .collect()
}

/// The limits of a cluster's partitions, as far as they are known.
async fn known_limits(app: &App, cluster: &Cluster) -> Result<PartitionLimits, StoreError> {
    let known = app.partitions().await?;
    let reported = known.get(&cluster.name).and_then(|known| known.limits(app.clock.now()));
    Ok(PartitionLimits { max_time_hours: cluster.max_time_hours, reported })
}
