//! What each line is: the first rule that matches it, and what the lines before it make of that.

use std::{collections::HashMap, sync::LazyLock};

use regex::{Regex, RegexSet};
use remote::{LogErrors, LogLine};

use super::line::{Level, Line};
use crate::job::failure::FailureCategory;
use crate::run::diagnosis::{RULES, Rule, Standing, rule_with_id};

/// The rule of lines that frame an error.
pub(super) const FRAME: &str = "frame";

/// The rule of lines that look like errors, and no other rule knows.
const HINT: &str = "error-line";

/// A line, and the rule that says what it is.
pub(super) struct Judged<'t> {
    /// The place of its log.
    pub(super) log: usize,
    pub(super) found: &'t LogLine,
    pub(super) line: Line<'t>,
    /// `None`: it does not look like an error.
    pub(super) rule: Option<&'static Rule>,
    /// Whether it is the last line of a traceback.
    pub(super) is_exception: bool,
    /// Its time, or that of the line before it that has one.
    pub(super) time: Option<f64>,
}

/// A line that can be blamed, and its rule.
pub(super) type Blamable<'j, 't> = (&'j Judged<'t>, &'static Rule);

/// What the lines of one process so far say about its next ones.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "they are independent facts")]
struct Process {
    /// The next exception is not the end of anything.
    is_ignored: bool,
    /// The next exception is raised because of this one.
    follows: bool,
    has_raised: bool,
    /// The next line is the code of a frame of a traceback.
    shows_code: bool,
}

/// Judges all lines.
pub(super) fn judge<'t>(logs: &[&'t LogErrors]) -> Vec<Judged<'t>> {
    let mut judged = Vec::new();
    for (log, errors) in logs.iter().enumerate() {
        let mut processes: HashMap<String, Process> = HashMap::new();
        let mut time = None;
        for found in &errors.lines {
            let line = Line::of(&found.text);
            time = line.time.or(time);
            let process = processes.entry(line.source.clone()).or_default();
            let rule = process.judge(&line);
            let is_exception = is_exception(&line.body);
            judged.push(Judged { log, found, line, rule, is_exception, time });
        }
    }
    void(&mut judged);
    judged
}

impl Process {
    fn judge(&mut self, line: &Line<'_>) -> Option<&'static Rule> {
        let body = line.body.as_ref();
        // A frame may quote the text of an error.
        let is_frame = body.trim_start().starts_with("File \"") && body.contains(", line ");
        let is_code = std::mem::replace(&mut self.shows_code, is_frame) && body.starts_with("    ");
        if is_frame || is_code || body.trim_start().starts_with("raise ") {
            return None;
        }
        let is_exception = is_exception(body);
        let rule = rule_of(body, is_exception);
        if body.contains("Exception ignored in") {
            self.is_ignored = true;
        } else if body.starts_with("During handling of the above")
            || body.starts_with("The above exception was")
        {
            self.follows = self.has_raised;
        } else if is_exception {
            let (ignored, follows) = (self.is_ignored, self.follows);
            (self.is_ignored, self.follows) = (false, false);
            if ignored || follows {
                return rule_with_id(FRAME);
            }
            self.has_raised = rule.is_some_and(|rule| rule.standing == Standing::Cause);
        }
        match line.level {
            // Launchers warn of processes that died.
            Some(Level::Mild) => rule.filter(|rule| {
                rule.standing >= Standing::Echo
                    || rule.standing == Standing::Death
                    || rule.category == FailureCategory::HostMemory
            }),
            // Each line of a longer message has the level; the indented ones say nothing alone.
            Some(Level::Error) if !body.starts_with([' ', '\t']) && !body.is_empty() => {
                rule.or_else(|| rule_with_id(HINT))
            }
            Some(Level::Error) | None => rule,
        }
    }
}

/// Whether it is the last line of a traceback.
fn is_exception(body: &str) -> bool {
    static EXCEPTION: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let patterns = concat!(
            r"^\s*(?:[\w.]*[A-Za-z](?:Error|Exception|Exit|Interrupt|Iteration)\w*(?:\(\w*\))?(?::|$)",
            // Names that are nothing else: `mpi4py.MPI.Exception`, `zlib.error`, `Exception`.
            r"|(?:[A-Za-z_]\w*\.)+(?:Error(?::|$)|error: )|(?:[A-Za-z_]\w*\.)*Exception(?::|$))",
        );
        Regex::new(patterns).ok()
    });
    EXCEPTION.as_ref().is_some_and(|exception| exception.is_match(body))
}

/// The first rule that matches a message. An exception is none of the lines that only look like errors.
pub(super) fn rule_of(body: &str, is_exception: bool) -> Option<&'static Rule> {
    static ALL: LazyLock<RegexSet> = LazyLock::new(|| {
        // A test compiles each pattern, so this cannot fail.
        RegexSet::new(RULES.iter().map(|rule| rule.pattern)).unwrap_or_else(|_| RegexSet::empty())
    });
    let mut rules = ALL.matches(body).into_iter().filter_map(|place| RULES.get(place).copied());
    rules.find(|rule| !is_exception || rule.standing != Standing::Noise)
}

/// Leaves out rules that another line explains otherwise.
fn void(judged: &mut [Judged<'_>]) {
    static UNLESS: LazyLock<Vec<(&str, Regex)>> = LazyLock::new(|| {
        let unless = RULES.iter().filter_map(|rule| Some((rule.id, Regex::new(rule.unless?).ok()?)));
        unless.collect()
    });
    let voided: Vec<&str> = UNLESS
        .iter()
        .filter(|(id, unless)| {
            judged.iter().any(|line| line.rule.is_some_and(|rule| rule.id == *id))
                && judged.iter().any(|line| unless.is_match(&line.found.text))
        })
        .map(|(id, _)| *id)
        .collect();
    for line in judged {
        line.rule = line.rule.filter(|rule| !voided.contains(&rule.id));
    }
}
