//! The results of a job: what is read of each task when it has ended.

use std::{collections::BTreeSet, fmt};

use regex::bytes::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};
use slurm::{ComponentName, RemotePath};
use strum::{Display, EnumString};
use utoipa::ToSchema;

use crate::{
    request::{component::JobComponent, text::Word},
    violation::{Faults, pointer},
};

const MAX_RULES: usize = 50;
const MAX_PREFIX: usize = 200;
const MAX_REGEX: usize = 1000;
/// The first column of the table of results.
const TASK: &str = "task";

/// A result: a name, and one of `json_line`, `json_file` and `regex`.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResultRequest {
    /// Its name: letters, digits, `_`, `-` and `.`. Each result has another name.
    pub name: String,
    /// The value is the JSON after this text in the last line of the log that begins with it.
    pub json_line: Option<String>,
    /// The value is the JSON in this file: a path in the job's results directory, such as `eval/scores.json`.
    pub json_file: Option<String>,
    /// The value is the text of the last match in the last MiB of the log: of the first group, or of the whole expression
    /// without a group. Each line is searched on its own. The syntax is that of the regex crate of Rust; classes such as `\d`
    /// are ASCII.
    pub regex: Option<String>,
    /// The log for `json_line` and `regex`. Default: `out`.
    pub log: Option<LogStream>,
    /// The step or service whose log it is, of a job with several; the log of its first process. `json_line` and `regex` of such a
    /// job need it.
    pub component: Option<String>,
    /// Whether a task without this result ends in `Error`. Default: false.
    pub required: Option<bool>,
}

/// The log in which a result is found: standard output or standard error of the job.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Serialize,
    Deserialize,
    ToSchema,
    Display,
    EnumString,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
#[schema(as = ResultLog)]
pub enum LogStream {
    #[default]
    Out,
    Err,
}

impl LogStream {
    pub const BOTH: [Self; 2] = [Self::Out, Self::Err];
}

/// A validated result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultRule {
    pub name: Word,
    pub source: ResultSource,
    /// A task without it ends in Error.
    pub required: bool,
}

/// Where a result is found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum ResultSource {
    /// After this text in the last line of the log that begins with it.
    JsonLine {
        prefix: String,
        #[serde(flatten)]
        log: LogOf,
    },
    /// In this file below the results directory of the task.
    JsonFile { path: String },
    /// In the last match in the log.
    Regex {
        pattern: String,
        #[serde(flatten)]
        log: LogOf,
    },
}

/// The log of a job, or of one of its programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogOf {
    /// Its first process; none: the batch script.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component: Option<ComponentName>,
    pub log: LogStream,
}

/// The file below the directory of the job's logs.
impl fmt::Display for LogOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { component, log } = self;
        match component {
            Some(component) => write!(f, "{component}/0.{log}"),
            None => write!(f, "main.{log}"),
        }
    }
}

/// The validated results of a request.
///
/// `home`: the results directory of the job, if its caller has chosen its id.
pub(super) fn result_rules(
    asked: Vec<ResultRequest>,
    home: Option<&RemotePath>,
    faults: &mut Faults,
) -> Vec<ResultRule> {
    if asked.len() > MAX_RULES {
        faults.add("/results", "too_many", format_args!("must have at most {MAX_RULES} results"));
    }
    let mut names = BTreeSet::new();
    let mut rules = Vec::new();
    for (place, asked) in asked.into_iter().take(MAX_RULES).enumerate() {
        let at = pointer("/results", &place.to_string());
        let name: Option<Word> = faults.parse(&format!("{at}/name"), &asked.name);
        if asked.name == TASK {
            faults.add(
                format!("{at}/name"),
                "reserved",
                "is a column of every table of results; use another name",
            );
        }
        if !names.insert(asked.name.clone()) {
            let detail = format_args!("is {:?}, as of an earlier result; give each its own name", asked.name);
            faults.add(format!("{at}/name"), "repeated", detail);
        }
        let required = asked.required.unwrap_or_default();
        if let (Some(source), Some(name)) = (source(&at, asked, home, faults), name) {
            rules.push(ResultRule { name, source, required });
        }
    }
    rules
}

fn source(
    at: &str,
    asked: ResultRequest,
    home: Option<&RemotePath>,
    faults: &mut Faults,
) -> Option<ResultSource> {
    let component = asked.component.as_deref().map(|name| faults.parse(&format!("{at}/component"), name));
    let log = LogOf { component: component.flatten(), log: asked.log.unwrap_or_default() };
    match (asked.json_line, asked.json_file, asked.regex) {
        (Some(prefix), None, None) => {
            let is_line =
                (1..=MAX_PREFIX).contains(&prefix.chars().count()) && !prefix.contains(char::is_control);
            if !is_line {
                let detail = format_args!("must be 1 to {MAX_PREFIX} characters without control characters");
                faults.add(format!("{at}/json_line"), "invalid", detail);
            }
            is_line.then_some(ResultSource::JsonLine { prefix, log })
        }
        (None, Some(path), None) => {
            for (field, is_given) in [("log", asked.log.is_some()), ("component", asked.component.is_some())]
            {
                if is_given {
                    let detail = "is only for json_line and regex; leave it out";
                    faults.add(format!("{at}/{field}"), "contradiction", detail);
                }
            }
            let path = results_file(&path, home);
            if path.is_none() {
                let detail =
                    "must be a file in the job's results directory: a relative path such as scores.json";
                faults.add(format!("{at}/json_file"), "invalid", detail);
            }
            path.map(|path| ResultSource::JsonFile { path })
        }
        (None, None, Some(pattern)) => {
            let checked = expression(&pattern);
            checked
                .map_err(|detail| faults.add(format!("{at}/regex"), "invalid", detail))
                .map(|_| ResultSource::Regex { pattern, log })
                .ok()
        }
        (None, None, None) => {
            faults.add(at, "required", "must have one of json_line, json_file and regex");
            None
        }
        _ => {
            faults.add(at, "contradiction", "must have only one of json_line, json_file and regex");
            None
        }
    }
}

/// Whether each log is one that the job has. `components`: its programs; none if it has one.
pub(super) fn check_logs(rules: &[ResultRule], components: Option<&[JobComponent]>, faults: &mut Faults) {
    for (place, rule) in rules.iter().enumerate() {
        let at = format!("/results/{place}/component");
        let Some(LogOf { component, .. }) = rule.source.log() else { continue };
        match (component, components) {
            (None, Some(_)) => {
                let detail = "must be the step or service that writes it, because each has its own log";
                faults.add(at, "required", detail);
            }
            (Some(_), None) => {
                let detail = "is only for a job with steps or services; leave it out";
                faults.add(at, "contradiction", detail);
            }
            (Some(name), Some(known)) if known.iter().all(|one| one.name != *name) => {
                faults.add(at, "invalid", format_args!("is {name}, which is no step or service of the job"));
            }
            (None, None) | (Some(_), Some(_)) => {}
        }
    }
}

impl ResultSource {
    /// The log in which it is found; none: it is a file.
    pub fn log(&self) -> Option<&LogOf> {
        match self {
            Self::JsonLine { log, .. } | Self::Regex { log, .. } => Some(log),
            Self::JsonFile { .. } => None,
        }
    }
}

/// The path below the results directory, in one spelling. `home`: that directory, if it is known already.
pub(super) fn results_file(text: &str, home: Option<&RemotePath>) -> Option<String> {
    let root: RemotePath = "/results".parse().ok()?;
    let (path, home) = match home.filter(|_| text.starts_with('/')) {
        Some(home) => (text.parse().ok()?, home),
        None if text.starts_with('/') => return None,
        None => (root.join(text).ok()?, &root),
    };
    path.as_str().strip_prefix(home.as_str())?.strip_prefix('/').map(str::to_owned)
}

/// The compiled expression of a rule. A job's owner chooses it and the text that it searches, so its size is limited.
pub(crate) fn expression(pattern: &str) -> Result<Regex, String> {
    if pattern.is_empty() || pattern.len() > MAX_REGEX {
        return Err(format!("must be 1 to {MAX_REGEX} bytes"));
    }
    let compiled =
        RegexBuilder::new(pattern).unicode(false).size_limit(64 * 1024).dfa_size_limit(1024 * 1024).build();
    compiled.map_err(|error| {
        if matches!(error, regex::Error::CompiledTooBig(_)) {
            return "is too large; use a shorter expression or fewer repetitions".to_owned();
        }
        // It ends with the reason, after a drawing of the place.
        let text = error.to_string();
        let reason = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
        format!("is not a regular expression: {reason}")
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use test_case::test_case;

    use super::*;

    const HOME: &str = "/lustre/tao/results/0f8fad5b-d9cb-469f-a165-70867728950e";

    fn read(request: Value) -> Result<Vec<ResultRule>, Vec<String>> {
        let mut faults = Faults::default();
        let home = HOME.parse().unwrap();
        let rules = result_rules(serde_json::from_value(request).unwrap(), Some(&home), &mut faults);
        let faults: Vec<_> =
            faults.0.iter().map(|fault| format!("{} {}", fault.pointer, fault.code)).collect();
        if faults.is_empty() { Ok(rules) } else { Err(faults) }
    }

    #[test]
    fn each_kind_is_stored_whole() {
        let rules = read(json!([
            {"name": "line", "json_line": "RESULT:", "required": true},
            {"name": "file", "json_file": "eval//scores.json"},
            {"name": "loss", "regex": "loss=([0-9.]+)", "log": "err", "required": null},
            {"name": "best", "regex": "best=(.*)", "component": "score"},
        ]))
        .unwrap();
        let stored = serde_json::to_value(&rules).unwrap();
        assert_eq!(stored[1]["source"], json!({"kind": "json_file", "path": "eval/scores.json"}));
        assert_eq!(rules.iter().map(|rule| rule.required).collect::<Vec<_>>(), [true, false, false, false]);
        assert_eq!(serde_json::from_value::<Vec<ResultRule>>(stored).unwrap(), rules);
    }

    #[test_case("results/x.json" => Some("results/x.json".to_owned()); "a directory named results")]
    #[test_case(&format!("{HOME}/a/b.json") => Some("a/b.json".to_owned()); "an absolute path")]
    #[test_case("/elsewhere/b.json" => None; "a file elsewhere")]
    #[test_case(HOME => None; "the directory itself")]
    #[test_case(&format!("{HOME}x/b.json") => None; "a directory with a longer name")]
    #[test_case("../x.json" => None; "a file above")]
    #[test_case("a/../../x.json" => None; "a detour")]
    #[test_case("a\u{0}" => None; "NUL")]
    #[test_case("" => None; "nothing")]
    fn a_file_is_in_the_results_directory(path: &str) -> Option<String> {
        results_file(path, Some(&HOME.parse().unwrap()))
    }

    #[test]
    fn an_absolute_path_needs_a_known_directory() {
        assert!(
            results_file(&format!("{HOME}/a.json"), None).is_none()
                && results_file("/results/a", None).is_none()
        );
    }

    #[test_case(json!([{"name": "a"}]), "/results/0 required"; "no kind")]
    #[test_case(json!([{"name": "a", "regex": "a", "json_file": "b"}]), "/results/0 contradiction"; "two kinds")]
    #[test_case(json!([{"name": "a", "json_file": "b", "log": "out"}]), "/results/0/log contradiction"; "the log of a file")]
    #[test_case(json!([{"name": "task", "regex": "a"}]), "/results/0/name reserved"; "the column of tasks")]
    #[test_case(json!([{"name": "a b", "regex": "a"}]), "/results/0/name invalid"; "two words")]
    #[test_case(json!([{"name": "a", "json_line": ""}]), "/results/0/json_line invalid"; "an empty prefix")]
    #[test_case(json!([{"name": "a", "json_line": "a\nb"}]), "/results/0/json_line invalid"; "a prefix of two lines")]
    #[test_case(json!([{"name": "a", "json_line": "é".repeat(201)}]), "/results/0/json_line invalid"; "a long prefix")]
    #[test_case(json!([{"name": "a", "regex": "("}]), "/results/0/regex invalid"; "no expression")]
    #[test_case(json!([{"name": "a", "regex": "(a{100}){100}"}]), "/results/0/regex invalid"; "a huge expression")]
    #[test_case(json!([{"name": "a", "regex": "a".repeat(1001)}]), "/results/0/regex invalid"; "a long expression")]
    fn a_fault_names_its_field(request: Value, fault: &str) {
        assert_eq!(read(request).unwrap_err(), [fault]);
    }

    #[test_case(json!({"regex": "a"}), false, &[]; "of a job with one program")]
    #[test_case(json!({"regex": "a", "component": "score"}), true, &[]; "of a step")]
    #[test_case(json!({"json_file": "a"}), true, &[]; "a file")]
    #[test_case(json!({"regex": "a"}), true, &["/results/0/component required"]; "of no step")]
    #[test_case(json!({"regex": "a", "component": "scores"}), true, &["/results/0/component invalid"]; "of another step")]
    #[test_case(json!({"regex": "a", "component": "score"}), false, &["/results/0/component contradiction"]; "of a step that cannot be")]
    fn a_log_is_one_that_the_job_has(mut rule: Value, has_steps: bool, expected: &[&str]) {
        rule["name"] = "a".into();
        let component = json!({"name": "score", "text": "", "first_node": 0, "nodes": 1});
        let components = [serde_json::from_value(component).unwrap()];
        let mut faults = Faults::default();
        check_logs(&read(json!([rule])).unwrap(), has_steps.then_some(&components[..]), &mut faults);
        let found: Vec<_> =
            faults.0.iter().map(|fault| format!("{} {}", fault.pointer, fault.code)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn names_are_unique() {
        let rule = json!({"name": "a", "regex": "a"});
        assert_eq!(read(json!([rule, rule])).unwrap_err(), ["/results/1/name repeated"]);
    }

    #[test]
    fn there_are_at_most_fifty() {
        let rules = |count: usize| {
            (0..count).map(|n| json!({"name": format!("r{n}"), "regex": "a"})).collect::<Value>()
        };
        assert!(read(rules(50)).is_ok());
        assert_eq!(read(rules(5000)).unwrap_err(), ["/results too_many"]);
    }

    #[test]
    fn the_reason_of_a_wrong_expression_is_one_line() {
        assert_eq!(expression("a(b").unwrap_err(), "is not a regular expression: unclosed group");
    }
}
