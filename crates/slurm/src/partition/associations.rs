//! Which accounts and QOS a user may charge jobs to (sacctmgr(1)).

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::Partition;

/// The associations of the service's user in one partition.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Associations {
    /// Whether Slurm refuses other accounts (`AccountingStorageEnforce`).
    pub enforced: bool,
    /// Whether Slurm refuses other QOS.
    pub qos_enforced: bool,
    /// Each account with its QOS; an empty set if they are not known.
    pub accounts: BTreeMap<String, BTreeSet<String>>,
}

impl Associations {
    /// `enforce`: the words of `AccountingStorageEnforce`. Each of `all`, `associations`, `limits`, `qos` and `safe` includes
    /// the associations (slurm.conf(5)).
    pub fn new(enforce: &str) -> Self {
        let has = |words: &[&str]| enforce.split(',').any(|word| words.contains(&word.trim()));
        Self {
            enforced: has(&["all", "associations", "limits", "qos", "safe", "wckeys"]),
            qos_enforced: has(&["all", "qos"]),
            accounts: BTreeMap::new(),
        }
    }

    /// Adds an association.
    pub fn add(&mut self, association: &Association) {
        let qos = association.qos.iter().cloned();
        self.accounts.entry(association.account.clone()).or_default().extend(qos);
    }
}

/// A row of `sacctmgr -n -P show assoc format=Cluster,Account,Partition,QOS`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Association {
    /// The cluster that it is for.
    pub cluster: String,
    /// The account.
    pub account: String,
    /// The only partition that it is for; `None` for all.
    pub partition: Option<Partition>,
    /// Its QOS.
    pub qos: BTreeSet<String>,
}

impl Association {
    /// Parses one row.
    pub fn from_sacctmgr(text: &str) -> Option<Self> {
        let fields: Vec<&str> = text.split('|').map(str::trim).collect();
        let [cluster, account, partition, qos] = fields[..] else { return None };
        let partition = match partition {
            "" => None,
            name => Some(name.parse().ok()?),
        };
        let word =
            |text: &str| (1..=200).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        let qos = qos.split(',').filter(|name| word(name)).map(str::to_owned).collect();
        let names_words = word(cluster) && word(account);
        names_words.then(|| Self { cluster: cluster.to_owned(), account: account.to_owned(), partition, qos })
    }
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test]
    fn a_row_is_read() {
        let read = Association::from_sacctmgr("dgx|vision|polar|high,normal").unwrap();
        assert_eq!((read.cluster.as_str(), read.account.as_str()), ("dgx", "vision"));
        assert_eq!(read.partition, Some("polar".parse().unwrap()));
        assert_eq!(read.qos.into_iter().collect::<Vec<_>>(), ["high", "normal"]);
        assert_eq!(Association::from_sacctmgr("dgx|vision||").unwrap().qos, BTreeSet::new());
        assert_eq!(Association::from_sacctmgr("dgx||"), None);
        assert_eq!(Association::from_sacctmgr("sacctmgr: error"), None);
    }

    #[test_case("none" => (false, false))]
    #[test_case("associations" => (true, false))]
    #[test_case("associations,limits,qos" => (true, true))]
    #[test_case("all" => (true, true))]
    #[test_case("" => (false, false))]
    fn enforcement_is_slurms_own_word(enforce: &str) -> (bool, bool) {
        let found = Associations::new(enforce);
        (found.enforced, found.qos_enforced)
    }
}
