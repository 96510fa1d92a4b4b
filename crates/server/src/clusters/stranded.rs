//! Live jobs on clusters that are no longer configured.

use std::collections::HashMap;

use api::KnownClusters;
use domain::ClusterName;
use persistence::Store;

/// Logs a warning that names such clusters.
pub(crate) async fn warn(known: &KnownClusters, store: &Store) {
    match store.live_jobs_by_cluster().await {
        Ok(live) => {
            let known = known.now();
            if let Some(warning) = warning(live, known.all().iter().map(|cluster| &cluster.name)) {
                tracing::warn!("{warning}");
            }
        }
        Err(error) => tracing::warn!(%error, "cannot check for jobs on clusters that are not configured"),
    }
}

fn warning<'a>(
    mut live: HashMap<ClusterName, u64>,
    configured: impl IntoIterator<Item = &'a ClusterName>,
) -> Option<String> {
    for name in configured {
        live.remove(name);
    }
    let mut left: Vec<_> = live.into_iter().filter(|(_, jobs)| *jobs > 0).collect();
    left.sort();
    let each: Vec<String> = left.iter().map(|(name, jobs)| format!("{name} ({jobs})")).collect();
    (!each.is_empty()).then(|| {
        format!(
            "these clusters have live jobs but are not configured: {}; their jobs are not polled and cannot be canceled until \
             you add each cluster again, in a [[clusters]] table or with POST /clusters",
            each.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_clusters_that_are_not_configured_are_named_with_their_jobs() {
        let name = |text: &str| text.parse::<ClusterName>().unwrap();
        let live =
            || HashMap::from([(name("dgx"), 7), (name("old"), 3), (name("gone"), 1), (name("empty"), 0)]);
        let text = warning(live(), &[name("dgx"), name("new")]).unwrap();
        assert!(
            text.contains("gone (1), old (3);") && !text.contains("dgx") && !text.contains("empty"),
            "{text}"
        );
        assert_eq!(warning(live(), &["dgx", "old", "gone"].map(name)), None);
        assert_eq!(warning(HashMap::new(), []), None);
    }
}
