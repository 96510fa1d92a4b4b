//! The worker's real loops against a cluster that lives by itself, in virtual time, with everything going wrong.
//!
//! One seed is one history: several workers with clocks that disagree, jobs and wishes of callers at random moments,
//! crashes, pauses and failures at any call of a port, and a cluster that loses replies, acts late, forgets and lies. At the
//! end the faults stop, everything settles, and the audit compares what the service says with what really happened.
//!
//! The same seed is the same history, to the last line of its trace. `SEEDS` says how many are run, `SEED` which one alone.

mod audit;
mod callers;
mod chaos;
pub(super) mod clocks;
mod link;
mod programs;
mod stops;
mod world;

use std::{
    env,
    fmt::Write as _,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use chaos::History;

/// Enough to notice a broken rule, and few enough for a build that is not optimised.
const FEW: u64 = 40;

/// Runs one history. With `traced` it keeps what happened.
fn run(seed: u64, traced: bool) -> History {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(chaos::live(seed, traced))
}

#[expect(clippy::disallowed_methods, reason = "which histories are run is said where the tests are started")]
fn number(name: &str) -> Option<u64> {
    env::var(name).ok()?.parse().ok()
}

/// The seeds that are run: `SEED` alone, or the first `SEEDS`.
fn seeds() -> (u64, u64) {
    match number("SEED") {
        Some(seed) => (seed, seed + 1),
        None => (0, number("SEEDS").unwrap_or(FEW)),
    }
}

#[test]
#[expect(clippy::print_stdout, reason = "what has happened in all the histories is worth a line")]
fn no_history_breaks_an_invariant() {
    let (first, end) = seeds();
    let next = AtomicU64::new(first);
    let broken = Mutex::new(Vec::new());
    let sums = Mutex::new(std::collections::BTreeMap::<String, u64>::new());
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end {
                        return;
                    }
                    let history = run(seed, false);
                    let mut sums = sums.lock().unwrap_or_else(PoisonError::into_inner);
                    for (what, count) in history.counts {
                        *sums.entry(what).or_default() += count;
                    }
                    if !history.violations.is_empty() {
                        broken.lock().unwrap_or_else(PoisonError::into_inner).push(seed);
                    }
                }
            });
        }
    });
    let mut broken = broken.into_inner().unwrap_or_else(PoisonError::into_inner);
    broken.sort_unstable();
    let sums = sums.into_inner().unwrap_or_else(PoisonError::into_inner);
    println!("{} histories: {sums:?}", end - first);
    if let Some(seed) = broken.first() {
        let again = run(*seed, true);
        // Looks for something to do that found nothing are most of it.
        let idle = |line: &&String| line.contains(" next_") || line.contains(" acquire_");
        let told: Vec<&str> = again.trace.iter().filter(|line| !idle(line)).map(String::as_str).collect();
        let mut text = told.join("\n");
        let _ = write!(text, "\n\nseed {seed} breaks what must hold (all that do: {broken:?}):\n");
        text.extend(again.violations.iter().map(|violation| format!("  - {violation}\n")));
        let _ = write!(text, "Again: SEED={seed} make simulate");
        panic!("{text}");
    }
}

#[test]
fn the_same_seed_is_the_same_history() {
    for seed in [3, 14, 159] {
        let (one, other) = (run(seed, true), run(seed, true));
        assert!(one.trace.len() > 100, "{} lines", one.trace.len());
        assert_eq!(one.trace, other.trace, "seed {seed}");
    }
}
