//! `list_partitions` and `preflight`.

use loopback::Api;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Refused, answer::Of};
use crate::{
    client::{Check, LIST_CLUSTERS, LIST_PARTITIONS, PREFLIGHT as TEST, Partition, PartitionList, Preflight},
    text::{Few, Text},
};

pub(super) const PARTITIONS: &str = "Lists the clusters with their partitions: time limits, GPUs, memory and the states of nodes, as the \
    cluster last reported them. Use it to choose resources.";

pub(super) const PREFLIGHT: &str = "Tests a cluster: logs in to each login host and checks what jobs need. It returns what was observed and \
    how to fix it, and takes up to half a minute.";

/// The clusters whose partitions one answer has.
const MOST: usize = 4;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Which {
    /// The name of a cluster. Default: all of them.
    cluster: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Clusters {
    clusters: Few<Cluster, MOST>,
    /// Clusters without an entry above: ask for each by its name.
    not_shown: Few<Text<64>, 50>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Cluster {
    name: Text<64>,
    is_default: bool,
    /// ok, failing, `auth_required`, unknown or unavailable.
    state: Text<64>,
    /// When the cluster reported its partitions; null if it has not.
    fetched_on: Option<Text<64>>,
    /// Whether the report is old.
    stale: bool,
    error: Option<Text>,
    partitions: Few<Partition, 12>,
}

pub(super) async fn partitions(api: Api, arguments: Which) -> Result<Of<Clusters>, Refused> {
    let known = api.get(&LIST_CLUSTERS, &[], &loopback::Query::new()).await?.clusters;
    let (mut chosen, mut not_shown): (Vec<_>, Vec<_>) = match &arguments.cluster {
        Some(name) => known.into_iter().partition(|cluster| cluster.name == *name),
        None => (known, Vec::new()),
    };
    if let Some(name) = &arguments.cluster {
        not_shown.clear();
        if chosen.is_empty() {
            // The API says which names there are.
            api.get(&LIST_PARTITIONS, &[name], &loopback::Query::new()).await?;
        }
    }
    not_shown.extend(chosen.split_off(chosen.len().min(MOST)));
    let mut clusters = Vec::new();
    for cluster in chosen {
        let read = api.get(&LIST_PARTITIONS, &[&cluster.name], &loopback::Query::new()).await?;
        let PartitionList { fetched_on, stale, error, partitions } = read;
        let (name, state) = (Text::new(&cluster.name), cluster.state);
        clusters.push(Cluster {
            name,
            is_default: cluster.is_default,
            state,
            fetched_on,
            stale,
            error,
            partitions,
        });
    }
    let mut rest: Vec<Text<64>> = not_shown.iter().map(|cluster| Text::new(&cluster.name)).collect();
    loop {
        let (unknown, shown) =
            (clusters.iter().filter(|one| one.fetched_on.is_none()).count(), clusters.len());
        let data = Clusters { clusters: clusters.into(), not_shown: rest.clone().into() };
        let answer = Of::new(said(shown, unknown, &data), &data);
        if answer.fits() || shown <= 1 {
            return Ok(answer);
        }
        clusters = data.clusters.items;
        rest.extend(clusters.pop().map(|cluster| cluster.name));
    }
}

fn said(shown: usize, unknown: usize, data: &Clusters) -> String {
    let mut said = format!("{shown} clusters with their partitions.");
    if unknown > 0 {
        said += " A cluster without `fetched_on` has not reported yet: its empty list is no proof that it has no partitions.";
    }
    if !data.not_shown.items.is_empty() {
        said += " Others are in `not_shown`.";
    }
    said
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Tested {
    /// The name of the cluster, as `list_partitions` shows it. Default: the default cluster.
    cluster: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Report {
    cluster: Text<64>,
    /// pass, warn, fail or skipped.
    outcome: Text<64>,
    /// The checks that did not pass first.
    checks: Few<Check, 20>,
}

pub(super) async fn preflight(api: Api, arguments: Tested) -> Result<Of<Report>, Refused> {
    let name = if let Some(name) = arguments.cluster {
        name
    } else {
        let known = api.get(&LIST_CLUSTERS, &[], &loopback::Query::new()).await?.clusters;
        let default = known.into_iter().find(|cluster| cluster.is_default);
        default.map(|cluster| cluster.name).ok_or_else(|| {
            Refused::new("cluster_not_found", "There is no cluster.", "Ask the operator to add one.")
        })?
    };
    let Preflight { cluster, outcome, mut checks, .. } = api.post(&TEST, &[&name], None).await?;
    checks.sort_by_key(|check| check.outcome.as_str() == "pass");
    let failed = checks.iter().filter(|check| check.outcome.as_str() == "fail").count();
    let said = format!("{} checks, and {failed} of them failed.", checks.len());
    Ok(Of::new(said, &Report { cluster, outcome, checks: checks.into() }))
}
