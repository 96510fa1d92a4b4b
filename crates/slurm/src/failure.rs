//! The meaning of a failed Slurm command. The class decides what happens next, never the text.
//!
//! The table of texts is [`RULES`]; every example in it is a test.

mod rules;

use serde::{Deserialize, Serialize};
use strum::{Display, IntoStaticStr};

pub use rules::RULES;

/// How much of a text is searched, from its end: Slurm prints the error in its last lines.
const SEARCHED: usize = 64 * 1024;
/// The length of an excerpt, in characters.
const EXCERPT: usize = 400;
/// The `rule_id` of a text without a matching rule.
pub const UNKNOWN: &str = "unknown";

/// Whether a failed command may have had an effect, and what to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, Display, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum FailureClass {
    /// It certainly had no effect: retry.
    NotDone,
    /// It may have had its effect: look for the token first.
    Ambiguous,
    /// The request is wrong, and a retry would fail too.
    Permanent,
    /// It would work later: retry, without counting an attempt.
    Capacity,
    /// The connection or the site is broken: wait, without changing the job.
    Infra,
}

/// One line of the table.
#[derive(Debug)]
pub struct Rule {
    /// The rule's unique name in logs and metrics.
    pub id: &'static str,
    /// The exact text to search for.
    pub needle: &'static str,
    /// The class of the failure.
    pub class: FailureClass,
    /// The reason: the Slurm source, man page or observation behind the rule.
    pub why: &'static str,
    /// Recorded texts.
    pub examples: &'static [&'static str],
}

/// A classified failure of a command.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{excerpt}")]
pub struct Failure {
    /// The class.
    pub class: FailureClass,
    /// The matching rule, or [`UNKNOWN`].
    pub rule_id: &'static str,
    /// The cluster's text: one line, printable, at most 400 characters.
    pub excerpt: String,
}

impl Failure {
    /// A failure whose class does not depend on its text: for instance, a killed command.
    pub fn known(class: FailureClass, rule_id: &'static str, text: &str) -> Self {
        Self { class, rule_id, excerpt: excerpt(text, "") }
    }

    /// Whether the site has no accounting.
    pub fn is_accounting_disabled(&self) -> bool {
        matches!(self.rule_id, "accounting-disabled" | "accounting-unsupported")
    }

    /// Whether Slurm refused because there were too many requests. Its commands wait and retry by themselves, so this is rare.
    pub fn is_rate_limited(&self) -> bool {
        matches!(self.rule_id, "rate-limit" | "rate-limit-waited")
    }

    /// Whether the failure means that the job has already ended.
    pub fn is_job_over(&self) -> bool {
        matches!(self.rule_id, "job-not-known" | "job-over")
    }
}

/// Classifies the stderr of a failed command. A text without a rule is [`FailureClass::Ambiguous`]: looking for the job
/// is cheap, a second training run is not.
pub fn classify(stderr: &str) -> Failure {
    let text = tail(stderr, SEARCHED);
    match RULES.iter().find(|rule| text.contains(rule.needle)) {
        Some(rule) => Failure { class: rule.class, rule_id: rule.id, excerpt: excerpt(text, rule.needle) },
        None => Failure { class: FailureClass::Ambiguous, rule_id: UNKNOWN, excerpt: excerpt(text, "") },
    }
}

/// Classifies a failed command with its exit code. A killed command may have had its effect, whatever it printed
/// (`timeout(1)` returns 124, or 137 after its SIGKILL). Codes above 192 are not signals: sbatch returns 255 for wrong
/// options, scancel 210 for another user's job.
pub fn of_exit(code: i32, stderr: &str) -> Failure {
    if code == 124 || (129..=192).contains(&code) {
        Failure::known(FailureClass::Ambiguous, "killed", stderr)
    } else {
        classify(stderr)
    }
}

fn tail(text: &str, bytes: usize) -> &str {
    let mut start = text.len().saturating_sub(bytes);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

/// All lines joined if they fit, else the line with the needle, else the end of the text.
fn excerpt(text: &str, needle: &str) -> String {
    let one_line = printable(text);
    if one_line.chars().count() <= EXCERPT {
        return one_line;
    }
    let matching = text.lines().find(|line| !needle.is_empty() && line.contains(needle)).map(printable);
    let from = matching.unwrap_or(one_line);
    let skip = from.chars().count().saturating_sub(EXCERPT);
    from.chars().skip(skip).collect()
}

/// The lines joined, without consecutive duplicates: mkdir repeats an error for every directory.
fn printable(text: &str) -> String {
    let mut out = String::new();
    let mut last = "";
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if std::mem::replace(&mut last, line) == line {
            continue;
        }
        if !out.is_empty() {
            out.push_str("; ");
        }
        out.extend(line.chars().map(|c| if c.is_control() { ' ' } else { c }));
    }
    out
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_example_is_found_by_its_own_rule() {
        for rule in RULES {
            assert!(!rule.examples.is_empty(), "{} has no example", rule.id);
            for example in rule.examples {
                let failure = classify(example);
                assert_eq!((failure.rule_id, failure.class), (rule.id, rule.class), "{example}");
            }
        }
    }

    #[test]
    fn no_two_rules_share_an_id() {
        let ids: HashSet<_> = RULES.iter().map(|rule| rule.id).collect();
        assert_eq!(ids.len(), RULES.len());
        assert!(!ids.contains(UNKNOWN));
    }

    #[test]
    fn an_unknown_text_is_ambiguous() {
        let failure = classify("sbatch: error: the moon is full\n");
        assert_eq!(failure.class, FailureClass::Ambiguous);
        assert_eq!(failure.rule_id, UNKNOWN);
        assert_eq!(failure.excerpt, "sbatch: error: the moon is full");
    }

    #[test]
    fn a_doubt_outweighs_a_certainty_in_the_same_text() {
        let failure = classify(
            "sbatch: Slurm temporarily unable to accept job, sleeping and retrying\n\
             sbatch: error: Batch job submission failed: Socket timed out on send/recv operation",
        );
        assert_eq!(failure.class, FailureClass::Ambiguous);
    }

    #[test]
    fn both_lines_of_a_refusal_are_shown() {
        let failure = classify(
            "sbatch: error: invalid partition specified: nopart\n\
             sbatch: error: Batch job submission failed: Invalid partition name specified\n",
        );
        assert_eq!(
            failure.excerpt,
            "sbatch: error: invalid partition specified: nopart; \
             sbatch: error: Batch job submission failed: Invalid partition name specified"
        );
    }

    #[test]
    fn a_line_said_several_times_is_shown_once() {
        assert_eq!(classify("mkdir: no\nmkdir: no\n\nmkdir: no\nb\n").excerpt, "mkdir: no; b");
    }

    #[test]
    fn a_long_text_shows_the_line_that_tells() {
        let text = format!(
            "{}slurm_load_jobs error: Socket timed out on send/recv operation\n",
            "x\ny\n".repeat(900)
        );
        assert_eq!(classify(&text).excerpt, "slurm_load_jobs error: Socket timed out on send/recv operation");
    }

    proptest! {
        #[test]
        fn any_text_gets_a_short_printable_excerpt(text in any::<String>()) {
            let failure = classify(&text);
            prop_assert!(failure.excerpt.chars().count() <= EXCERPT);
            prop_assert!(!failure.excerpt.contains(char::is_control));
        }
    }
}
