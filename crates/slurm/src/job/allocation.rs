//! What Slurm accounts for: the nodes and GPUs that a job held.

use crate::{SlurmJobId, SlurmState, time::timestamp::parse as time};

/// One time that a job held nodes, in accounting: `sacct -D --units=K -o MaxRSS,JobIDRaw,State,Start,ElapsedRaw,Partition,AllocTRES,TotalCPU,JobName`,
/// with the largest `MaxRSS` of its steps. A job has one for each of its runs, a job with an array one for each run of each task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allocation {
    /// The job's id; of a task its own.
    pub id: SlurmJobId,
    /// The state at its end, or now.
    pub state: SlurmState,
    /// When it began, in seconds since 1970; `None` if it never did.
    pub start: Option<i64>,
    /// How long it lasted without the time in which it was suspended, in seconds, as Slurm accounts for it.
    pub elapsed: u64,
    /// The partition.
    pub partition: String,
    /// The number of GPUs; 0 if Slurm does not account for them (`AccountingStorageTRES` in slurm.conf(5)).
    pub gpus: u32,
    /// The number of processors.
    pub cpus: u32,
    /// The number of nodes.
    pub nodes: u32,
    /// The CPU seconds of its processes, if Slurm knows them.
    pub cpu_seconds: Option<u32>,
    /// The most memory of one of its tasks, as Slurm looks at it from time to time, in MiB, if Slurm knows it.
    pub most_memory: Option<u32>,
    /// The job's name.
    pub name: String,
}

impl Allocation {
    /// Parses a row whose columns are separated by the control character US.
    pub fn read(row: &str) -> Option<Self> {
        let mut fields = row.splitn(9, '\u{1f}');
        let mut next = || fields.next();
        let most_memory = next()?
            .parse()
            .ok()
            .map(|kib: u64| u32::try_from(kib.div_ceil(1024)).map_or(MOST, |mib| mib.min(MOST)));
        let id = next()?.parse().ok()?;
        let Ok(state) = next()?.parse::<SlurmState>();
        let (start, elapsed) = (time(next()?), next()?.parse::<u32>().ok()?.into());
        let partition = next()?.chars().filter(|c| !c.is_control()).take(64).collect();
        let resources = next()?;
        let cpu_seconds = seconds(next()?);
        let name = next()?.to_owned();
        let [gpus, cpus, nodes] = [gpus(resources), number(resources, "cpu"), number(resources, "node")]
            .map(|count| count.min(MOST));
        Some(Self { id, state, start, elapsed, partition, gpus, cpus, nodes, cpu_seconds, most_memory, name })
    }

    /// Whether it has ended: its time and its state stay.
    pub fn is_over(&self) -> bool {
        self.state.is_final() || self.state == SlurmState::Requeued
    }
}

/// The GPUs in a list like `billing=4,cpu=4,gres/gpu=2,gres/gpu:a100=2,node=1`. The one without a type is the sum.
fn gpus(resources: &str) -> u32 {
    let typed = || {
        let of_type = |entry: &str| entry.strip_prefix("gres/gpu:")?.rsplit_once('=')?.1.parse::<u32>().ok();
        resources.split(',').filter_map(of_type).fold(0, u32::saturating_add)
    };
    entry(resources, "gres/gpu").unwrap_or_else(typed)
}

fn number(resources: &str, name: &str) -> u32 {
    entry(resources, name).unwrap_or(0)
}

/// The seconds of a time like `1-02:03:04` or `03:04.567` (sacct(1), `TotalCPU`).
fn seconds(time: &str) -> Option<u32> {
    let time = time.split_once('.').map_or(time, |(whole, _)| whole);
    let (days, clock) = time.split_once('-').unwrap_or(("0", time));
    let parts = clock.split(':').map(|part| part.parse::<u32>().ok()).collect::<Option<Vec<_>>>()?;
    let parts = Some(parts).filter(|parts| matches!(parts.len(), 2 | 3))?;
    let of_clock = parts.into_iter().try_fold(0_u32, |sum, part| sum.checked_mul(60)?.checked_add(part))?;
    days.parse::<u32>().ok()?.checked_mul(86_400)?.checked_add(of_clock)
}

/// More than this is no number of anything: it would not fit into the database.
const MOST: u32 = i32::MAX.unsigned_abs();

fn entry(resources: &str, name: &str) -> Option<u32> {
    resources.split(',').find_map(|entry| entry.strip_prefix(name)?.strip_prefix('=')?.parse().ok())
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    fn row(resources: &str) -> Allocation {
        let columns = ["1025", "17", "TIMEOUT", "1700000000", "61", "gpu", resources, "01:01.500", "tao-a"];
        Allocation::read(&columns.join("\u{1f}")).unwrap()
    }

    #[test_case("billing=4,cpu=4,gres/gpu=2,mem=8G,node=1", 2; "a count")]
    #[test_case("cpu=4,gres/gpu:a100=2,gres/gpu:h100=1", 3; "types")]
    #[test_case("cpu=4,gres/gpu=3,gres/gpu:a100=2,gres/gpu:h100=1", 3; "types beside their sum")]
    #[test_case("cpu=4,gres/gpumem=3", 0; "something else")]
    #[test_case("", 0; "never began")]
    #[test_case("gres/gpu=-1,gres/gpu:=9999999999", 0; "no numbers")]
    #[test_case("gres/gpu=4294967295", 2_147_483_647; "too many")]
    fn the_gpus_of_a_list_of_resources(resources: &str, gpus: u32) {
        assert_eq!(row(resources).gpus, gpus);
    }

    #[test]
    fn a_row_has_what_slurm_accounts_for() {
        let read = row("billing=8,cpu=8,gres/gpu=2,node=2");
        assert_eq!((read.id.get(), read.start, read.elapsed), (17, Some(1_700_000_000), 61));
        assert_eq!(
            (read.cpus, read.nodes, read.partition.as_str(), read.name.as_str()),
            (8, 2, "gpu", "tao-a")
        );
        assert_eq!((read.cpu_seconds, read.most_memory), (Some(61), Some(2)));
        assert!(read.is_over());
    }

    #[test_case("\u{1f}17\u{1f}PENDING\u{1f}Unknown\u{1f}0\u{1f}gpu\u{1f}\u{1f}00:00:00\u{1f}tao-a", false; "it waits")]
    #[test_case("\u{1f}17\u{1f}RUNNING\u{1f}1700000000\u{1f}5\u{1f}gpu\u{1f}cpu=1\u{1f}00:00:00\u{1f}tao-a", false; "it runs")]
    #[test_case("\u{1f}17\u{1f}REQUEUED\u{1f}1700000000\u{1f}5\u{1f}gpu\u{1f}cpu=1\u{1f}00:00:00\u{1f}tao-a", true; "another run follows")]
    #[test_case("\u{1f}17\u{1f}CANCELLED by 0\u{1f}None\u{1f}0\u{1f}gpu\u{1f}\u{1f}00:00:00\u{1f}tao-a", true; "it was canceled")]
    fn an_allocation_is_over(row: &str, over: bool) {
        assert_eq!(Allocation::read(row).unwrap().is_over(), over);
    }

    #[test_case("00:00:00", Some(0); "none")]
    #[test_case("01:02.500", Some(62); "minutes")]
    #[test_case("10:00:01", Some(36_001); "hours")]
    #[test_case("2-03:04:05", Some(183_845); "days")]
    #[test_case("", None; "nothing")]
    #[test_case("9999999-00:00:00", None; "no time")]
    #[test_case("x:1", None; "no number")]
    fn the_time_of_its_processors(text: &str, expected: Option<u32>) {
        assert_eq!(seconds(text), expected);
    }

    #[test]
    fn a_time_without_end_is_no_allocation() {
        assert_eq!(
            Allocation::read(
                "\u{1f}17\u{1f}TIMEOUT\u{1f}1\u{1f}9999999999\u{1f}gpu\u{1f}cpu=1\u{1f}00:00:00\u{1f}tao-a"
            ),
            None
        );
    }

    #[test]
    fn a_cut_row_is_no_allocation() {
        let whole =
            "\u{1f}17\u{1f}TIMEOUT\u{1f}1700000000\u{1f}61\u{1f}gpu\u{1f}cpu=1\u{1f}00:00:00\u{1f}tao-a";
        for (at, _) in whole.match_indices('\u{1f}') {
            assert_eq!(Allocation::read(&whole[..at]), None);
        }
    }
}
