//! What a running job tells of its use of nodes and GPUs.

use serde::{Deserialize, Serialize};
use slurm::SlurmJobId;

/// `usage`: written atomically by the batch script, about once a minute. Sums are since its beginning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageMarker {
    /// The job that wrote it.
    pub slurm_id: SlurmJobId,
    /// The run of it that wrote it.
    pub restart: u32,
    /// When, in seconds since 1970 by the clock of the first node.
    pub at: i64,
    /// When the measurement began, by the same clock.
    pub began: i64,
    /// The nodes, in no order.
    pub nodes: Vec<NodeUse>,
}

/// What the job uses of one node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeUse {
    /// Its name.
    pub name: String,
    /// The CPU seconds used.
    pub cpu_seconds: u64,
    /// The most memory, in MiB.
    pub most_memory: u64,
    /// Its GPUs.
    pub gpus: Vec<GpuUse>,
}

/// What the job uses of one GPU, as `nvidia-smi` tells it at each sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuUse {
    /// Its number on the node, as the job sees it.
    pub index: u32,
    /// How often it was looked at; at least once.
    pub samples: u32,
    /// The sum of its utilization at these times, in percent.
    pub sum: u64,
    /// The highest of them.
    pub most: u8,
    /// The most memory in use, in MiB.
    pub most_memory: u64,
    /// All its memory, in MiB.
    pub memory: u64,
}

impl UsageMarker {
    /// The bytes of it that count. The batch script tells of at most 512 GPUs and their nodes.
    pub const MOST_BYTES: usize = 24 * 1024;

    /// `JOB RESTART TIME BEGAN`, and for each node ` NAME CPU MEMORY GPU…;`. An entry without its semicolon was cut.
    pub fn read(text: &str) -> Option<Self> {
        let (head, entries) = match text.match_indices(' ').nth(3) {
            Some((at, _)) => text.split_at(at),
            None => (text, ""),
        };
        let mut words = head.split(' ');
        let mut next = || words.next();
        let (slurm_id, restart) = (next()?.parse().ok()?, next()?.parse().ok()?);
        let (at, began): (i64, i64) = (next()?.parse().ok()?, next()?.parse().ok()?);
        let whole = entries.split_inclusive(';').filter_map(|entry| entry.strip_suffix(';'));
        let nodes = whole.filter_map(node).collect();
        // A job can write this file too: times before 1970 or after 9999 are none.
        (0 <= began && began <= at && at < 253_402_300_800).then_some(Self {
            slurm_id,
            restart,
            at,
            began,
            nodes,
        })
    }
}

fn node(text: &str) -> Option<NodeUse> {
    let mut words = text.trim_start().split(' ');
    let name = words.next().filter(|name| is_name(name))?.to_owned();
    let (cpu_seconds, most_memory) = (count(words.next()?)?, count(words.next()?)?);
    Some(NodeUse { name, cpu_seconds, most_memory, gpus: words.filter_map(gpu).collect() })
}

fn gpu(word: &str) -> Option<GpuUse> {
    let numbers: [&str; 6] = word.split(':').collect::<Vec<_>>().try_into().ok()?;
    let [index, samples, sum, most, most_memory, memory] = numbers;
    let (samples, sum): (u32, _) = (samples.parse().ok()?, count(sum)?);
    let most = most.parse().ok().filter(|most| *most <= 100)?;
    // Of a sum within what the samples can have.
    let is_sound = samples > 0 && sum <= u64::from(samples) * u64::from(most);
    is_sound.then_some(GpuUse {
        index: index.parse().ok()?,
        samples,
        sum,
        most,
        most_memory: count(most_memory)?,
        memory: count(memory)?,
    })
}

fn is_name(word: &str) -> bool {
    !word.is_empty()
        && word.len() <= 64
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
}

/// A number that any database takes.
fn count(word: &str) -> Option<u64> {
    word.parse().ok().filter(|number| *number < 1 << 50)
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    const GPU: GpuUse =
        GpuUse { index: 1, samples: 3, sum: 120, most: 90, most_memory: 70_000, memory: 81_920 };

    #[test]
    fn a_marker_tells_what_each_node_and_gpu_was_used_for() {
        let text = "42 1 1060 1000 node01 12 300 0:3:0:0:4:81920 1:3:120:90:70000:81920; node02 7 20;node03 9 1 0:1:";
        let read = UsageMarker::read(text).unwrap();
        assert_eq!((read.slurm_id.get(), read.restart, read.at, read.began), (42, 1, 1060, 1000));
        let [first, second] = read.nodes.as_slice() else { panic!("{:?}", read.nodes) };
        assert_eq!((first.name.as_str(), first.cpu_seconds, first.most_memory), ("node01", 12, 300));
        assert_eq!(first.gpus, [GpuUse { index: 0, sum: 0, most: 0, most_memory: 4, ..GPU }, GPU]);
        assert_eq!((second.name.as_str(), second.gpus.len()), ("node02", 0));
        assert!(UsageMarker::read("42 0 1000 1000").unwrap().nodes.is_empty());
    }

    #[test_case("" ; "nothing")]
    #[test_case("42 0 1000" ; "a time is missing")]
    #[test_case("x 0 1000 1000 n 1 1;" ; "no job")]
    #[test_case("42 0 999 1000 n 1 1;" ; "it ends before it begins")]
    #[test_case("42 0 9999999999999 1000 n 1 1;" ; "no time")]
    fn a_marker_that_the_job_has_written_itself_is_none(text: &str) {
        assert_eq!(UsageMarker::read(text), None);
    }

    #[test_case("n 1 1 1:3:120:90:70000:81920", 1 ; "sound")]
    #[test_case("n 1 1 1:3:271:90:70000:81920", 0 ; "more than all samples can have")]
    #[test_case("n 1 1 1:0:0:0:0:1", 0 ; "no sample")]
    #[test_case("n 1 1 1:3:120:101:1:1", 0 ; "more than all of it")]
    #[test_case("n 1 1 1:3:120:90:70000", 0 ; "a number is missing")]
    #[test_case("n 1 1 1:3:120:90:-1:1 x 1:3:120:90:1:1", 1 ; "the others count")]
    fn a_gpu_counts_if_its_numbers_fit_together(entry: &str, gpus: usize) {
        let read = UsageMarker::read(&format!("42 0 1000 1000 {entry};")).unwrap();
        assert_eq!(read.nodes[0].gpus.len(), gpus);
    }

    #[test_case("../n 1 1" ; "no name")]
    #[test_case("n -1 1" ; "a negative number")]
    #[test_case("n 9999999999999999 1" ; "a number that no database takes")]
    #[test_case("n 1" ; "a number is missing")]
    fn a_node_counts_if_its_words_are_sound(entry: &str) {
        assert!(UsageMarker::read(&format!("42 0 1000 1000 {entry};")).unwrap().nodes.is_empty());
    }
}
