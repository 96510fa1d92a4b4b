//! Jobs that nobody can tend any more, because their cluster was taken out of the configuration.

use std::collections::HashMap;

use domain::ClusterName;

/// One sentence that names such clusters with the number of their jobs; none when there are none.
pub(crate) fn warning<'a>(
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
            "there are jobs on clusters that are not configured, and until they are, nobody watches, ends or \
             cancels them: {}; add each again where it was, in a [[clusters]] table or by POST /clusters",
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
        let said = warning(live(), &[name("dgx"), name("new")]).unwrap();
        assert!(
            said.contains("gone (1), old (3);") && !said.contains("dgx") && !said.contains("empty"),
            "{said}"
        );
        assert_eq!(warning(live(), &["dgx", "old", "gone"].map(name)), None);
        assert_eq!(warning(HashMap::new(), []), None);
    }
}
