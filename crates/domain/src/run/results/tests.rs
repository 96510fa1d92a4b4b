//! What is found in files and lines.

use serde_json::{Value, json};
use test_case::test_case;

use super::*;

const HOME: &str = "/lustre/tao/results/1";

fn rule(name: &str, source: ResultSource) -> ResultRule {
    ResultRule { name: name.parse().unwrap(), source, required: false }
}

fn places() -> ResultPlaces {
    ResultPlaces {
        home: HOME.parse().unwrap(),
        logs: Some("/lustre/tao/slurm-logs/job-1-7".parse().unwrap()),
    }
}

fn file() -> ResultSource {
    ResultSource::JsonFile { path: "scores.json".to_owned() }
}

fn line() -> ResultSource {
    ResultSource::JsonLine { prefix: "R:".to_owned(), log: LogOf { component: None, log: LogStream::Out } }
}

fn regex(pattern: &str) -> ResultSource {
    ResultSource::Regex { pattern: pattern.to_owned(), log: LogOf { component: None, log: LogStream::Err } }
}

fn bytes(text: impl AsRef<[u8]>) -> PartFound {
    PartFound::Bytes(text.as_ref().to_vec())
}

fn read(source: ResultSource, found: PartFound) -> Result<Value, String> {
    let results = read_results(&[rule("a", source)], &places(), &[found]);
    let [TaskResult { value, problem, .. }] = results.try_into().unwrap();
    problem.map_or(Ok(value), Err)
}

#[test]
fn each_part_is_asked_for_once() {
    let rules = [rule("a", regex("a")), rule("b", line()), rule("c", regex("c")), rule("d", file())];
    let parts = result_parts(&rules, &places());
    assert_eq!(
        parts,
        [
            ResultPart::Tail(JobLog::Err),
            ResultPart::Line { log: JobLog::Out, prefix: "R:".to_owned() },
            ResultPart::File(format!("{HOME}/scores.json").parse().unwrap()),
        ]
    );
    let found = [bytes("a1 c2"), bytes("R:3\n"), bytes("4")];
    let results = read_results(&rules, &places(), &found);
    let values: Vec<_> = results.into_iter().map(|result| result.value).collect();
    assert_eq!(values, [json!("a"), json!(3), json!("c"), json!(4)]);
}

#[test]
fn the_log_of_a_component_is_that_of_its_first_process() {
    let log = LogOf { component: Some("score".parse().unwrap()), log: LogStream::Err };
    let rules = [rule("a", ResultSource::Regex { pattern: "a".to_owned(), log })];
    let file = "/lustre/tao/slurm-logs/job-1-7/score/0.err".parse().unwrap();
    assert_eq!(result_parts(&rules, &places()), [ResultPart::Tail(JobLog::File(file))]);
    let unknown = ResultPlaces { logs: None, ..places() };
    assert_eq!(result_parts(&rules, &unknown), []);
    let found = read_results(&rules, &places(), &[PartFound::Missing]);
    assert_eq!(found[0].problem.as_deref(), Some("no line in the last MiB of score/0.err matches \"a\""));
}

#[test_case("{\"loss\": NaN, \"b\": [Infinity, -Infinity], \"t\": \"NaN\"}"
    => json!({"loss": "NaN", "b": ["Infinity", "-Infinity"], "t": "NaN"}); "what Python writes")]
#[test_case("NaN\n" => json!("NaN"); "nothing else")]
#[test_case(r#"{"text": "a \" NaN", "x": NaN}"# => json!({"text": "a \" NaN", "x": "NaN"}); "a text with quotes")]
#[test_case(" 0.5\r\n" => json!(0.5); "spaces")]
#[test_case("\"a\\u0000b\"" => json!("a\0b"); "NUL")]
fn json_is_read_tolerantly(text: &str) -> Value {
    assert_eq!(read(line(), bytes(format!("R:{text}"))), read(file(), bytes(text)));
    read(file(), bytes(text)).unwrap()
}

#[test_case(b"", "EOF while parsing a value at line 1 column 0"; "an empty file")]
#[test_case(b"{\"a\": 1", "EOF while parsing an object at line 1 column 7"; "half of a file")]
#[test_case(b"{} {}", "trailing characters at line 1 column 4"; "two documents")]
#[test_case(b"NaNa", "trailing characters at line 1 column 6"; "no word of Python")]
#[test_case(&[b'['; 200], "recursion limit exceeded at line 1 column 128"; "a deep document")]
#[test_case(b"1e999", "number out of range at line 1 column 5"; "a huge number")]
fn what_is_not_json_has_a_reason(text: &[u8], reason: &str) {
    assert_eq!(read(file(), bytes(text)).unwrap_err(), format!("scores.json is not JSON: {reason}"));
}

#[test_case(PartFound::Missing => "scores.json is not in the job's results directory")]
#[test_case(PartFound::Odd => "scores.json is not a regular file in the job's results directory")]
#[test_case(PartFound::Large => "scores.json exceeds the limit of 1 MiB for all results of a task")]
#[test_case(PartFound::Unreadable => "scores.json could not be read")]
fn a_file_that_is_not_there_has_a_reason(found: PartFound) -> String {
    read(file(), found).unwrap_err()
}

#[test]
fn a_line_has_a_limit() {
    let digits = |count| bytes(format!("R:\"{}\"\n", "1".repeat(count)));
    assert!(read(line(), digits(64 * 1024 - 2)).is_ok());
    let problem = read(line(), digits(64 * 1024 - 1)).unwrap_err();
    assert_eq!(problem, "the line after \"R:\" in main.out is longer than 64 KiB");
    assert_eq!(read(line(), PartFound::Missing).unwrap_err(), "no line of main.out begins with \"R:\"");
}

#[test_case(r"loss=(\S+)", "loss=1\nloss=2 loss=3\nend" => Ok(json!("3")); "the last match of the last line")]
#[test_case(r"loss=\d", "loss=1\rloss=2\r" => Ok(json!("loss=2")); "a progress bar")]
#[test_case(r"(?:x(y))?z", "z" => Ok(json!("z")); "a group without a part")]
#[test_case(r"^\w+$", "caf\u{e9}\nok" => Ok(json!("ok")); "anchors of a line")]
#[test_case("é(.+)", "é=1\u{0}\u{1b}" => Ok(json!("=1\u{0}\u{1b}")); "other letters")]
#[test_case("a\nb", "a\nb" => Err("no line in the last MiB of main.err matches \"a\\nb\"".to_owned()); "two lines")]
fn a_match_is_found_in_a_line(pattern: &str, log: &str) -> Result<Value, String> {
    read(regex(pattern), bytes(log))
}

#[test]
fn the_beginning_of_a_cut_line_is_no_line() {
    let cut = [b"oss=1\n".to_vec(), vec![b'x'; RESULT_BYTES]].concat();
    assert!(read(regex("^oss"), bytes(&cut)).is_err());
    assert!(read(regex("^oss"), bytes(&cut[..RESULT_BYTES])).is_ok());
}

#[test]
fn bytes_that_are_no_text_are_shown_as_such() {
    assert_eq!(read(regex("a(.)b"), bytes(b"a\xffb")), Ok(json!("\u{fffd}")));
    assert_eq!(read(file(), bytes(b"\"\xff\"")), Ok(json!("\u{fffd}")));
}

#[test]
fn all_results_of_a_task_have_a_limit() {
    let rules: Vec<_> = (0..3).map(|n| rule(&format!("r{n}"), file())).collect();
    let half = format!("\"{}\"", "1".repeat(RESULT_BYTES / 2 - 2));
    let results = read_results(&rules, &places(), &[bytes(half)]);
    let problems: Vec<_> = results.iter().map(|result| result.problem.is_some()).collect();
    assert_eq!(problems, [false, false, true]);
}

/// A search that is not linear takes hours.
#[test_case("(?:a|a)*b", "a"; "a choice")]
#[test_case("(.*)(.*)(.*)(.*)x", "a"; "groups")]
#[test_case(".*[^A-Z]|[A-Z]", "A"; "matches whose search goes to the end")]
fn a_hostile_expression_takes_a_bounded_time(pattern: &str, text: &str) {
    let log = text.repeat(RESULT_BYTES / 8);
    let begun = std::time::Instant::now();
    let _ = read(regex(pattern), bytes(log));
    assert!(begun.elapsed() < std::time::Duration::from_mins(10), "{:?}", begun.elapsed());
}

#[test]
fn a_file_may_follow_and_a_line_only_if_it_is_required() {
    let rules = [rule("a", file()), rule("b", line()), ResultRule { required: true, ..rule("c", line()) }];
    let results = read_results(&rules, &places(), &[PartFound::Missing, PartFound::Missing]);
    assert_eq!(results.iter().map(|result| result.may_follow).collect::<Vec<_>>(), [true, false, true]);
    let stored = TaskResult::stored(&results).unwrap();
    let read = TaskResult::of_stored(Some(&stored), &rules);
    assert_eq!(read[0].problem, results[0].problem);
    assert!(read.iter().all(|result| !result.may_follow));
}
