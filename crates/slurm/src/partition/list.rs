//! The partitions of a job, in the order that the user gave.

use std::collections::HashSet;

use crate::{Partition, names::text_type::word_type};

word_type!(
    /// One or more different comma-separated partitions, as for `sbatch --partition`. The limit is far above any real site's, and far below
    /// that of an `#SBATCH` line.
    PartitionList, "partition list", "one or more different partitions, separated by commas", max 1024,
    |text| {
        let mut seen = HashSet::new();
        text.split(',').all(|part| part.parse::<Partition>().is_ok_and(|partition| seen.insert(partition)))
    }
);

impl PartitionList {
    /// The partitions, in order.
    pub fn iter(&self) -> impl Iterator<Item = Partition> + '_ {
        // `check` has parsed every part, so none is dropped here.
        self.0.split(',').filter_map(|part| part.parse().ok())
    }
}

impl From<Partition> for PartitionList {
    fn from(partition: Partition) -> Self {
        Self(partition.to_string())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_list_keeps_its_order() {
        let list: PartitionList = "polar,grizzly,polar3".parse().unwrap();
        let names: Vec<String> = list.iter().map(|p| p.to_string()).collect();
        assert_eq!(names, ["polar", "grizzly", "polar3"]);
        assert_eq!(list.to_string(), "polar,grizzly,polar3");
    }

    #[test]
    fn an_empty_part_a_repetition_and_a_space_are_refused() {
        for text in ["", ",", "polar,", "polar,polar", "polar, grizzly", "polar\n"] {
            assert!(text.parse::<PartitionList>().is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn what_parses_needs_no_quoting(text in "[ -~\n\té]{0,30}|[a-z,]{0,12}") {
            if let Ok(list) = text.parse::<PartitionList>() {
                let plain = |c: char| c.is_ascii_alphanumeric() || "_.+-,".contains(c);
                prop_assert!(list.as_str().chars().all(plain) && !list.as_str().starts_with('-'));
                prop_assert_eq!(list.iter().map(|one| one.to_string()).collect::<Vec<_>>().join(","), text);
            }
        }
    }
}
