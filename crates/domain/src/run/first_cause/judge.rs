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

/// The rule of exceptions that no other rule knows.
const EXCEPTION: &str = "exception";

/// The rule of what Slurm says when it ends a step.
const STEP_ENDED: &str = "step-ended";

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
    /// The line before was the code of a frame, or marked a place in it: the traceback goes on, or ends with its exception.
    ends_frame: bool,
    /// Where its last line with a text is in what was judged.
    last: Option<usize>,
}

/// What a line is.
struct Verdict {
    rule: Option<&'static Rule>,
    is_exception: bool,
}

/// Judges all lines.
pub(super) fn judge<'t>(logs: &[&'t LogErrors]) -> Vec<Judged<'t>> {
    let mut judged = Vec::new();
    for (log, errors) in logs.iter().enumerate() {
        let mut processes: HashMap<String, Process> = HashMap::new();
        let mut time = None;
        let mut step_is_ended = false;
        for found in &errors.lines {
            let line = Line::of(&found.text);
            time = line.time.or(time);
            let process = processes.entry(line.source.clone()).or_default();
            if is_chain(&line.body)
                && let Some(last) = process.last.and_then(|last| judged.get_mut(last))
            {
                process.end_traceback(last);
            }
            let Verdict { mut rule, is_exception } = process.judge(&line);
            if step_is_ended && is_kill_by_slurm(&line.body) {
                rule = rule_with_id(STEP_ENDED);
            }
            step_is_ended |= ends_step(&line.body);
            if !line.body.trim().is_empty() {
                process.last = Some(judged.len());
            }
            judged.push(Judged { log, found, line, rule, is_exception, time });
        }
    }
    void(&mut judged);
    judged
}

impl Process {
    fn judge(&mut self, line: &Line<'_>) -> Verdict {
        let body = line.body.as_ref();
        // A frame may quote the text of an error.
        let is_frame = body.trim_start().starts_with("File \"") && body.contains(", line ");
        let is_code = std::mem::replace(&mut self.shows_code, is_frame) && body.starts_with("    ");
        let is_raise = body.trim_start().starts_with("raise ");
        let was_in_frame = std::mem::replace(&mut self.ends_frame, is_code || is_raise);
        if is_frame || is_code || is_raise {
            return Verdict { rule: None, is_exception: false };
        }
        if was_in_frame && is_place(body) {
            self.ends_frame = true;
            return Verdict { rule: None, is_exception: false };
        }
        let ends_traceback = was_in_frame && is_name_of_class(body);
        let is_exception = is_exception(body) || ends_traceback;
        let mut rule = rule_of(body, is_exception);
        if ends_traceback {
            rule = rule.filter(|rule| rule.id != HINT).or_else(|| rule_with_id(EXCEPTION));
        }
        if body.contains("Exception ignored in") {
            self.is_ignored = true;
        } else if is_chain(body) {
            self.follows = self.has_raised;
        } else if is_exception {
            let (ignored, follows) = (self.is_ignored, self.follows);
            (self.is_ignored, self.follows) = (false, false);
            if ignored || follows {
                return Verdict { rule: rule_with_id(FRAME), is_exception };
            }
            self.has_raised = rule.is_some_and(|rule| rule.standing == Standing::Cause);
        }
        Verdict { rule: by_level(line, rule), is_exception }
    }

    /// The line before the words that chain two exceptions ends a traceback, whatever the name of its exception is.
    fn end_traceback(&mut self, last: &mut Judged<'_>) {
        if last.rule.is_none_or(|rule| rule.id == HINT) && is_name_of_class(&last.line.body) {
            let is_frame = std::mem::take(&mut self.follows) || std::mem::take(&mut self.is_ignored);
            last.rule = rule_with_id(if is_frame { FRAME } else { EXCEPTION });
            last.is_exception = true;
            self.has_raised = true;
        }
    }
}

/// The rule of a message, by the level that the line shows.
fn by_level(line: &Line<'_>, rule: Option<&'static Rule>) -> Option<&'static Rule> {
    let body = line.body.as_ref();
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

/// The words between two exceptions of a chain.
fn is_chain(body: &str) -> bool {
    body.starts_with("During handling of the above") || body.starts_with("The above exception was")
}

/// Whether it marks a place in the line of code above.
fn is_place(body: &str) -> bool {
    body.starts_with("    ") && body.trim().chars().all(|mark| matches!(mark, '^' | '~'))
}

/// Whether it may be the last line of a traceback, by an exception whose name does not say that it is one: `ShapeLimitHit: 5 shapes`.
fn is_name_of_class(body: &str) -> bool {
    static NAME: LazyLock<Option<Regex>> =
        LazyLock::new(|| // Of two words or with its module: `Training: 3 of 9 steps` is none.
        Regex::new(r"^(?:(?:[A-Za-z_]\w*\.)+[A-Z]\w*|[A-Z][a-z0-9]+[A-Z]\w*): \S").ok());
    NAME.as_ref().is_some_and(|name| name.is_match(body))
}

/// Whether Slurm ends all tasks of the step from this line on.
fn ends_step(body: &str) -> bool {
    body.starts_with("srun: Job step aborted")
        || body.contains("error: *** ") && body.contains(" CANCELLED AT ")
}

/// Whether it says that a task was killed: by srun, once it ends the step.
fn is_kill_by_slurm(body: &str) -> bool {
    static KILL: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"^srun: error: \S+: tasks? [\d,-]+: Killed$").ok());
    KILL.as_ref().is_some_and(|kill| kill.is_match(body.trim_end()))
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
