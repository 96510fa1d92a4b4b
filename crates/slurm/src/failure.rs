//! What a failed command means for the caller. The class decides what happens next; the text never does.
//!
//! The table is data, in [`RULES`]; every example in it is a test.

mod rules;

use serde::{Deserialize, Serialize};

pub use rules::RULES;

/// How much of a text is searched. Slurm says what is wrong in its last lines.
const SEARCHED: usize = 64 * 1024;
/// How much of a text is shown to people, in characters.
const EXCERPT: usize = 400;
/// The `rule_id` of a text that no rule knows.
pub const UNKNOWN: &str = "unknown";

/// What a failure says about the effect the command may have had.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    strum::Display,
    strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum FailureClass {
    /// Surely had no effect: try again.
    NotDone,
    /// May have had its effect: find out by the token before anything else.
    Ambiguous,
    /// The request itself is wrong, and would be wrong again.
    Permanent,
    /// Would work later: keep it queued, and do not count it as an attempt.
    Capacity,
    /// Our path or the site is broken: wait, and leave the job alone.
    Infra,
}

/// One line of the table.
#[derive(Debug)]
pub struct Rule {
    /// The rule's name in logs and metrics; unique.
    pub id: &'static str,
    /// What the text must contain, exactly.
    pub needle: &'static str,
    /// What it means.
    pub class: FailureClass,
    /// Why it means that: the Slurm source, man page or observation behind it.
    pub why: &'static str,
    /// Texts as they were printed.
    pub examples: &'static [&'static str],
}

/// A failed command, understood as far as it can be.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{excerpt}")]
pub struct Failure {
    /// What to do about it.
    pub class: FailureClass,
    /// The rule that said so, or [`UNKNOWN`].
    pub rule_id: &'static str,
    /// What the cluster said: one line, printable, at most 400 characters.
    pub excerpt: String,
}

impl Failure {
    /// A failure whose class does not come from its text: a command that was killed, for instance.
    pub fn known(class: FailureClass, rule_id: &'static str, text: &str) -> Self {
        Self { class, rule_id, excerpt: excerpt(text, "") }
    }

    /// True when the site keeps no accounting, so that there is nothing in it and never will be.
    pub fn is_accounting_disabled(&self) -> bool {
        matches!(self.rule_id, "accounting-disabled" | "accounting-unsupported")
    }

    /// True when nothing is left of the job that was to be acted on.
    pub fn says_the_job_is_over(&self) -> bool {
        matches!(self.rule_id, "job-not-known" | "job-over")
    }
}

/// Classifies what a command that failed printed on stderr. A text that no rule knows is
/// [`FailureClass::Ambiguous`]: looking the job up by its token is cheap, a second training run is not.
pub fn classify(stderr: &str) -> Failure {
    let text = tail(stderr, SEARCHED);
    match RULES.iter().find(|rule| text.contains(rule.needle)) {
        Some(rule) => Failure { class: rule.class, rule_id: rule.id, excerpt: excerpt(text, rule.needle) },
        None => Failure { class: FailureClass::Ambiguous, rule_id: UNKNOWN, excerpt: excerpt(text, "") },
    }
}

/// The same for a command whose exit code is known: one that was killed or ran into its time limit may have had its
/// effect whatever it printed (`timeout(1)` returns 124, or 137 after its SIGKILL). Codes above 192 are no signals:
/// sbatch returns 255 for wrong options, scancel 210 for somebody else's job.
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

/// All the lines in one if they fit, else the line with the needle, else the end.
fn excerpt(text: &str, needle: &str) -> String {
    let one_line = printable(text);
    if one_line.chars().count() <= EXCERPT {
        return one_line;
    }
    let telling = text.lines().find(|line| !needle.is_empty() && line.contains(needle)).map(printable);
    let from = telling.unwrap_or(one_line);
    let skip = from.chars().count().saturating_sub(EXCERPT);
    from.chars().skip(skip).collect()
}

/// The lines in one, each of several equal ones in a row once: mkdir complains about every directory it was given.
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
