//! What a rule about a line of a log says.

use crate::job::failure::FailureCategory;

/// One line of the table.
#[derive(Debug)]
pub(crate) struct Rule {
    /// The rule's unique name in replies, logs and metrics.
    pub(crate) id: &'static str,
    /// A regular expression for one line.
    pub(crate) pattern: &'static str,
    /// The rule does not count if this matches any line: that line explains the log otherwise.
    pub(crate) unless: Option<&'static str>,
    /// What is at fault, for the decision about a retry; `None` if the line does not decide that.
    pub(crate) fault: Option<Fault>,
    /// The kind of the failure.
    pub(crate) category: FailureCategory,
    /// The line's place among the lines of a failure.
    pub(crate) standing: Standing,
    /// The cause in a clause for people.
    pub(crate) why: &'static str,
    /// What to do about it, in a sentence or two; empty for lines that are never blamed.
    pub(crate) advice: &'static str,
    /// Recorded lines that match.
    #[cfg_attr(not(test), expect(dead_code, reason = "the examples are for the tests and for readers"))]
    pub(crate) matching: &'static [&'static str],
    /// Similar lines with another meaning, which must not match.
    #[cfg_attr(not(test), expect(dead_code, reason = "the examples are for the tests and for readers"))]
    pub(crate) others: &'static [&'static str],
}

/// What a line of a log says to be at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    User,
    /// The registry does not have the image, or refuses the login: a fault of the job that no other node changes.
    Refused,
    /// The file of the image does not exist: the job's fault if the job names the file.
    MissingFile,
    /// The file of the image cannot be used: the job's fault if the job names the file.
    DamagedFile,
    Infrastructure,
    /// The infrastructure, unless another line says more: Pyxis prints such a line after every failure.
    Consequence,
}

/// The place of a line among the lines of a failure. The first cause is the earliest line of the best standing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Standing {
    /// It explains the failure by itself.
    Cause,
    /// It reports that a process died, without a reason.
    Death,
    /// A failed process or a failed network causes it: it is the cause if nothing else is there.
    Symptom,
    /// It looks like an error, and no rule knows it.
    Hint,
    /// It waited for a failed process, or repeats what another line says: it is the cause if there is no other line.
    Echo,
    /// It follows from a failure elsewhere, and is never blamed.
    Consequence,
    /// It looks like an error and is none.
    Noise,
}
