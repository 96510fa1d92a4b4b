//! The tables: a pattern of a log line → what it says. Every example is a test.
//!
//! The rules with a fault cover the meaning of TAO's sixteen patterns. Lines that those match by mistake
//! (`NCCL_ASYNC_ERROR_HANDLING`, a weights file that is "not found" for a GPU model, CUDA out of memory) are counterexamples here.
//!
//! A rule is: its fault (`-` if the line does not decide about a retry), category and standing, `"id": pattern`, the cause, the
//! advice, lines that match, and lines that must not.

use std::sync::LazyLock;

use super::Rule;

macro_rules! rules {
    (@unless) => { None };
    (@unless $unless:literal) => { Some($unless) };
    (@fault -) => { None };
    (@fault $fault:ident) => { Some($crate::run::diagnosis::Fault::$fault) };
    ($(#[$doc:meta])* $table:ident: $($fault:tt $category:ident $standing:ident $id:literal:
        $pattern:literal $(unless $unless:literal)?, $why:literal, $advice:literal,
        [$($matching:literal),+ $(,)?], [$($other:literal),* $(,)?];)*) => {
        $(#[$doc])*
        pub(super) const $table: &[$crate::run::diagnosis::Rule] = &[$($crate::run::diagnosis::Rule {
            id: $id,
            pattern: $pattern,
            unless: rules!(@unless $($unless)?),
            fault: rules!(@fault $fault),
            category: $crate::job::failure::FailureCategory::$category,
            standing: $crate::run::diagnosis::Standing::$standing,
            why: $why,
            advice: $advice,
            matching: &[$($matching),+],
            others: &[$($other),*],
        }),*];
    };
}

mod code;
mod communication;
mod consequences;
mod general;
mod hardware;
mod images;
mod job;
mod launchers;
mod noise;
mod processes;
mod registry;
mod scheduler;
mod steps;

/// Every table. On one line, the first rule that matches says what the line is.
const TABLES: [&[Rule]; 13] = [
    noise::NOISE,
    launchers::LAUNCHERS,
    consequences::CONSEQUENCES,
    communication::COMMUNICATION,
    code::CODE,
    job::JOB,
    registry::REGISTRY,
    hardware::HARDWARE,
    images::IMAGES,
    scheduler::SCHEDULER,
    processes::PROCESSES,
    steps::STEPS,
    general::GENERAL,
];

/// Every rule.
pub(crate) static RULES: LazyLock<Vec<&'static Rule>> =
    LazyLock::new(|| TABLES.iter().copied().flatten().collect());

/// The rule with this id.
pub(crate) fn rule_with_id(id: &str) -> Option<&'static Rule> {
    RULES.iter().copied().find(|rule| rule.id == id)
}
