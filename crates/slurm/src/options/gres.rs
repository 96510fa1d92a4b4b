//! Generic resources that a job asks for (`--gres`).

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use serde_with::{DeserializeFromStr, SerializeDisplay};
use strum::{Display, EnumString};

use crate::{
    InvalidName, PartitionInfo,
    number::digits,
    options::words::{GresName, GresType},
};

/// The most of one resource: MPS counts 100 for a GPU, and a site may count bytes.
const MAX_COUNT: u32 = 1_000_000;

/// Some of a generic resource on each node: `mps:50`, `shard:2` or `gpu:1g.5gb:2`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, SerializeDisplay, DeserializeFromStr)]
pub struct Gres {
    /// The resource.
    pub name: GresName,
    /// Its type, if the site has types.
    pub kind: Option<GresType>,
    /// How many of them.
    pub count: u32,
}

impl Gres {
    /// The largest count.
    pub const MAX_COUNT: u32 = MAX_COUNT;

    /// Whether these are whole GPUs or instances of MIG.
    pub fn is_gpu(&self) -> bool {
        self.name.as_str() == "gpu"
    }

    /// Whether these are parts of a GPU that Slurm shares. It refuses a job that asks for GPUs and for these (gres.conf(5)).
    pub fn is_shared_gpu(&self) -> bool {
        matches!(self.name.as_str(), "mps" | "shard")
    }

    /// How many of this resource a node of the partition has at most; `None` if the cluster did not report it.
    pub fn most_in(&self, partition: &PartitionInfo) -> Option<u64> {
        let groups = partition.nodes.iter().filter(|group| group.count > 0);
        let counts: Option<Vec<u64>> = groups
            .map(|group| {
                let gres = group.gres.as_ref()?;
                let of_it = |key: &str| key.split(':').next() == Some(self.name.as_str());
                let any = || gres.iter().filter(|(key, _)| of_it(key)).map(|(_, count)| count).sum();
                let typed = self.kind.as_ref().map(|kind| format!("{}:{kind}", self.name));
                Some(typed.map_or_else(any, |key| gres.get(&key).copied().unwrap_or(0)))
            })
            .collect();
        counts?.into_iter().max()
    }
}

impl FromStr for Gres {
    type Err = InvalidName;

    /// `NAME`, `NAME:COUNT`, `NAME:TYPE` or `NAME:TYPE:COUNT`, as in `--gres`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refused = || InvalidName::new("generic resource", "NAME:COUNT or NAME:TYPE:COUNT", text);
        let count = |text: &str| digits(text, 7).filter(|count| (1..=MAX_COUNT).contains(count));
        let parts: Vec<&str> = text.split(':').collect();
        let (name, kind, count) = match parts.as_slice() {
            [name] => (name, None, Some(1)),
            [name, number] if count(number).is_some() => (name, None, count(number)),
            [name, kind] => (name, Some(kind), Some(1)),
            [name, kind, number] => (name, Some(kind), count(number)),
            _ => return Err(refused()),
        };
        let kind = kind.map(|kind| kind.parse()).transpose()?;
        Ok(Self { name: name.parse()?, kind, count: count.ok_or_else(refused)? })
    }
}

impl fmt::Display for Gres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Some(kind) => write!(f, "{}:{kind}:{}", self.name, self.count),
            None => write!(f, "{}:{}", self.name, self.count),
        }
    }
}

/// The option with which a cluster's jobs ask for GPUs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, Display, EnumString)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum GpuRequest {
    /// `--gres=gpu:4`.
    #[default]
    Gres,
    /// `--gpus-per-node=4`.
    GpusPerNode,
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test_case("mps:50", "mps:50" ; "a number")]
    #[test_case("gpu:1g.5gb:2", "gpu:1g.5gb:2" ; "an instance of MIG")]
    #[test_case("gpu:a100", "gpu:a100:1" ; "a type")]
    #[test_case("nvme", "nvme:1" ; "only a name")]
    fn a_resource_has_a_name_perhaps_a_type_and_a_count(text: &str, shown: &str) {
        assert_eq!(text.parse::<Gres>().unwrap().to_string(), shown);
    }

    #[test_case("")]
    #[test_case("mps:0" ; "none of it")]
    #[test_case("gpu:a100:x" ; "no number")]
    #[test_case("gpu:a:1:1" ; "too many parts")]
    #[test_case("a,b:1" ; "two resources")]
    #[test_case("gpu:a b:1" ; "a space")]
    fn other_texts_are_refused(text: &str) {
        assert!(text.parse::<Gres>().is_err());
    }
}
