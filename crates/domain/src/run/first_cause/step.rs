//! Steps of the job's script that failed, while the script went on: a later step misses what the failed one would have made.

use std::sync::LazyLock;

use regex::Regex;

use super::{
    judge::{Blamable, Judged},
    order::compare,
};
use crate::run::diagnosis::Rule;

/// Rules of lines by which a step reports that it failed.
const STEPS: [&str; 4] = ["shell", "command-missing", "package-missing", "build"];

/// Rules of lines that report something missing.
const MISSING: [&str; 7] =
    ["file-missing", "import-error", "library", "shell", "command-missing", "mpi-program", "build-ended"];

/// How far the failed step is before the line, in bytes: the traceback of the next step fits in between. A program that wrote more
/// since then had not needed what the step should have made.
const NEAR: u64 = 4096;

/// The step whose failure explains that something is missing.
pub(super) fn failed_before<'j, 't>(
    blamable: &[Blamable<'j, 't>],
    first: &Judged<'t>,
    rule: &Rule,
) -> Option<Blamable<'j, 't>> {
    if !MISSING.contains(&rule.id) || !is_of_the_script(first) {
        return None;
    }
    let explains = |(line, rule): &&Blamable<'j, 't>| {
        STEPS.contains(&rule.id)
            && line.log == first.log
            && first
                .found
                .offset
                .checked_sub(line.found.offset)
                .is_some_and(|bytes| 0 < bytes && bytes <= NEAR)
            && is_of_the_script(line)
            && !is_probe(&line.line.body)
    };
    blamable.iter().filter(explains).min_by(|(a, _), (b, _)| compare(a, b)).copied()
}

/// Whether no mark shows that a process of a launcher wrote the line.
fn is_of_the_script(line: &Judged<'_>) -> bool {
    line.line.source.is_empty()
}

/// Whether the command that was not found only shows or prepares the node: scripts call such commands where some nodes lack them.
fn is_probe(body: &str) -> bool {
    static PROBE: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let pattern = r"\b(?:nvidia-smi|rocm-smi|nvcc|ibstat|ibv_devinfo|lspci|lscpu|lstopo|numactl|module|ml|git|stty|tput|clear): (?:command )?not found$";
        Regex::new(pattern).ok()
    });
    PROBE.as_ref().is_some_and(|probe| probe.is_match(body.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::diagnosis::rule_with_id;

    #[test]
    fn each_rule_that_is_named_exists() {
        for id in STEPS.iter().chain(&MISSING) {
            assert!(rule_with_id(id).is_some(), "{id}");
        }
    }
}
