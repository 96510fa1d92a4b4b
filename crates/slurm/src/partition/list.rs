//! The partitions of a job, in the order that the user gave.

use std::collections::HashSet;

use serde_with::{DeserializeFromStr, SerializeDisplay};

use crate::{InvalidName, Partition, text_type};

/// The longest list, in bytes: far above any real site's, far below the limit of an `#SBATCH` line.
const MAX_BYTES: usize = 1024;

/// One or more different comma-separated partitions, as for `sbatch --partition`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, SerializeDisplay, DeserializeFromStr)]
pub struct PartitionList(String);

text_type!(PartitionList);

impl PartitionList {
    /// The partitions, in order.
    pub fn iter(&self) -> impl Iterator<Item = Partition> + '_ {
        // `check` has parsed every part, so none is dropped here.
        self.0.split(',').filter_map(|part| part.parse().ok())
    }

    fn check(text: &str) -> Result<String, InvalidName> {
        let refused = || {
            InvalidName::new("partition list", "one or more different partitions, separated by commas", text)
        };
        if text.len() > MAX_BYTES {
            return Err(refused());
        }
        let mut seen = HashSet::new();
        for part in text.split(',') {
            let partition: Partition = part.parse().map_err(|_| refused())?;
            if !seen.insert(partition) {
                return Err(refused());
            }
        }
        Ok(text.to_owned())
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
