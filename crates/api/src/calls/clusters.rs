//! The calls about clusters. Those that read answer from memory and the database, never from a cluster.

use domain::{Cluster, ClusterName, Job, Violation};
use serde_json::Value;

use crate::{
    http::extract::unusable_cluster,
    ports::ClusterUnavailable,
    problem::{Kind, Problem},
    state::App,
};

pub(crate) mod credentials;
pub(crate) mod read;
pub(crate) mod settings;
pub(crate) mod write;

pub(crate) fn unavailable(cluster: &Cluster, error: ClusterUnavailable) -> Problem {
    match error {
        ClusterUnavailable::Busy => {
            let detail = format!(
                "The cluster `{}` is already running this request for another caller. Try again.",
                cluster.name
            );
            Problem::unavailable(Kind::ClusterBusy, detail)
        }
        ClusterUnavailable::Unanswered { detail } => {
            let detail = format!("The cluster `{}` could not carry out the request: {detail}", cluster.name);
            Problem::unavailable(Kind::ClusterUnavailable, detail)
        }
    }
}

/// Checks that the job's cluster still exists: it may have been removed since the job finished. Returns the incarnation
/// of a stored cluster.
pub(crate) fn is_there(app: &App, job: &Job) -> Result<Option<i64>, Problem> {
    let (known, name) = (app.clusters.now(), &job.cluster);
    if known.get(name).is_some() {
        return Ok(known.incarnation(name));
    }
    Err(known.unusable().get(name).map_or_else(|| gone(name), |unusable| unusable_cluster(name, unusable)))
}

/// The job's cluster was removed or replaced.
pub(crate) fn gone(name: &ClusterName) -> Problem {
    let detail = format!(
        "The job's cluster `{name}` was removed from the service or replaced by another one. This call needs the original \
     cluster."
    );
    Problem::new(Kind::ClusterGone, detail)
}

/// serde also fills a struct from an array, by position. The API accepts objects only.
fn is_object(document: &Value) -> Result<(), Vec<Violation>> {
    if document.is_array() {
        return Err(vec![Violation::new("", "wrong_type", "must be an object, not an array")]);
    }
    Ok(())
}
