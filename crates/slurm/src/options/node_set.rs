//! Sets of nodes that a job names (`--nodelist`, `--exclude`).

use std::collections::HashSet;

use crate::{NodeName, names::text_type::word_type, node_list};

word_type!(
    /// Different nodes in Slurm's notation: `node[01-04,07],gpu1`. At most 1,023 of them.
    NodeSet, "list of nodes", "different nodes, such as node[01-04],gpu7", max 1024,
    |text| {
        // A slash would make Slurm read a file.
        let plain = |c: char| c.is_ascii_alphanumeric() || ".-[],".contains(c);
        let has_gap = text.is_empty() || text.starts_with(',') || text.ends_with(',') || text.contains(",,");
        let mut seen = HashSet::new();
        let mut is_new = |name: &String| name.parse::<NodeName>().is_ok_and(|node| seen.insert(node));
        !has_gap && text.chars().all(plain) && node_list::expand(text).iter().all(&mut is_new)
    }
);

impl NodeSet {
    /// Each node.
    pub fn nodes(&self) -> Vec<NodeName> {
        // `check` has parsed every name.
        node_list::expand(&self.0).iter().filter_map(|name| name.parse().ok()).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use test_case::test_case;

    use super::*;

    #[test]
    fn a_set_is_expanded() {
        let set: NodeSet = "node[01-02],gpu7".parse().unwrap();
        let nodes: Vec<String> = set.nodes().iter().map(ToString::to_string).collect();
        assert_eq!(nodes, ["node01", "node02", "gpu7"]);
        assert_eq!(set.to_string(), "node[01-02],gpu7");
    }

    #[test_case(""; "empty")]
    #[test_case("a,"; "an empty part")]
    #[test_case("a,a"; "a node twice")]
    #[test_case("n[1-2],n1"; "a node in a range and by name")]
    #[test_case("/etc/nodes"; "a file")]
    #[test_case("n[1-"; "half a range")]
    #[test_case("n[1-9999]"; "too many")]
    #[test_case("-w"; "an option")]
    #[test_case("a b"; "a space")]
    #[test_case("(null)"; "no node")]
    fn other_texts_are_refused(text: &str) {
        assert!(text.parse::<NodeSet>().is_err());
    }

    proptest! {
        #[test]
        fn what_parses_needs_no_quoting(text in "[ -~\n]{0,20}|[a-c0-9,\\[\\]-]{0,12}") {
            if let Ok(set) = text.parse::<NodeSet>() {
                let plain = |c: char| c.is_ascii_alphanumeric() || ".-[],".contains(c);
                prop_assert!(set.as_str().chars().all(plain) && !set.as_str().starts_with('-'));
                prop_assert!(!set.nodes().is_empty());
            }
        }
    }
}
