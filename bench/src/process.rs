//! CPU time and memory of a process, as the kernel counts them.

use std::{fs, iter::Sum, time::Duration};

use anyhow::Context;

/// The kernel's `USER_HZ`, the unit of CPU time in /proc: 100 on every Linux platform that runs this.
const TICKS_PER_SECOND: u64 = 100;

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Usage {
    /// CPU time of all threads, with a resolution of 10 ms.
    pub(crate) cpu: Duration,
    /// Resident memory, in bytes.
    pub(crate) memory: u64,
    /// Peak resident memory, in bytes.
    pub(crate) memory_peak: u64,
}

impl Usage {
    pub(crate) fn of(pid: u32) -> anyhow::Result<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        Self::parse(&stat, &status).with_context(|| format!("cannot parse /proc/{pid}"))
    }

    /// The usage of this program: the cost of the load generator.
    pub(crate) fn own() -> anyhow::Result<Self> {
        Self::of(std::process::id())
    }

    /// The CPU time since `before`, and the current memory.
    pub(crate) fn since(self, before: Self) -> Self {
        Self { cpu: self.cpu.saturating_sub(before.cpu), ..self }
    }

    fn parse(stat: &str, status: &str) -> Option<Self> {
        let bytes = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            let kib: u64 = line.trim().trim_end_matches(" kB").parse().ok()?;
            Some(kib * 1024)
        };
        Some(Self { cpu: Times::parse(stat)?.1.own, memory: bytes("VmRSS:")?, memory_peak: bytes("VmHWM:")? })
    }
}

/// The CPU time of a process, in user and system mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Times {
    pub(crate) own: Duration,
    /// CPU time of the children that it has waited for, and of their descendants.
    pub(crate) of_ended_children: Duration,
}

impl Times {
    /// The name of a process and its times, as in `/proc/PID/stat` (proc(5)).
    pub(crate) fn parse(stat: &str) -> Option<(String, Self)> {
        // The name is in parentheses and may contain anything; the four times begin 12 fields later.
        let (before, after) = stat.rsplit_once(')')?;
        let (_, name) = before.split_once('(')?;
        let ticks: Vec<u64> =
            after.split_whitespace().skip(11).take(4).map(str::parse).collect::<Result<_, _>>().ok()?;
        let [user, system, of_children, system_of_children] = ticks[..] else { return None };
        let time = |ticks: u64| Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND);
        let times =
            Self { own: time(user + system), of_ended_children: time(of_children + system_of_children) };
        Some((name.to_owned(), times))
    }
}

/// CPU time of all processes of the machine.
pub(crate) fn machine_worked() -> anyhow::Result<Duration> {
    parse_machine(&fs::read_to_string("/proc/stat")?).context("cannot parse /proc/stat")
}

/// The sum of the first line without idle and iowait, the fourth and fifth number (proc(5)).
fn parse_machine(stat: &str) -> Option<Duration> {
    let numbers = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace().map(str::parse::<u64>);
    // The guest times at the end are included in the first two numbers.
    let ticks: Vec<u64> = numbers.take(8).collect::<Result<_, _>>().ok()?;
    let worked = ticks.iter().sum::<u64>() - ticks.get(3)? - ticks.get(4)?;
    Some(Duration::from_millis(worked * 1000 / TICKS_PER_SECOND))
}

impl Sum for Usage {
    fn sum<I: Iterator<Item = Self>>(each: I) -> Self {
        each.fold(Self::default(), |all, one| Self {
            cpu: all.cpu + one.cpu,
            memory: all.memory + one.memory,
            memory_peak: all.memory_peak + one.memory_peak,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_parsed_after_any_process_name() {
        let stat = "42 (a) b) S 1 42 42 0 -1 4194560 900 0 0 0 150 50 7 8 20 0 9 0 100 1 2 3";
        let status = "Name:\ta\nVmHWM:\t    4096 kB\nVmRSS:\t    2048 kB\n";
        let usage = Usage::parse(stat, status).unwrap();
        assert_eq!(usage.cpu, Duration::from_secs(2));
        let times = Times { own: usage.cpu, of_ended_children: Duration::from_millis(150) };
        assert_eq!(Times::parse(stat), Some(("a) b".to_owned(), times)));
        assert_eq!((usage.memory, usage.memory_peak), (2 << 20, 4 << 20));
    }

    #[test]
    fn idle_time_is_not_counted() {
        let stat = "cpu  100 20 30 9000 700 5 6 39 11 12\ncpu0 1 2 3 4 5 6 7 8 9 10\n";
        assert_eq!(parse_machine(stat), Some(Duration::from_secs(2)));
        assert_eq!(parse_machine("intr 5"), None);
    }

    #[test]
    fn the_usage_of_this_process_and_machine_can_be_read() {
        assert!(machine_worked().unwrap() > Duration::ZERO);
        assert!(Usage::own().unwrap().memory > 0);
    }
}
