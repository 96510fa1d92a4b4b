use serde_json::json;
use test_case::test_case;

use super::*;

fn read_text(text: &str) -> anyhow::Result<Vec<u8>> {
    as_json("job.yaml", text.as_bytes().to_vec(), "a job")
}

fn value(text: &str) -> Value {
    serde_json::from_slice(&read_text(text).unwrap()).unwrap()
}

fn refused(text: &str) -> String {
    read_text(text).unwrap_err().to_string()
}

#[test]
fn json_is_sent_as_it_is() {
    let text = "\n {\"gpus\": 18446744073709551616, \"b\": 1.10}\n";
    assert_eq!(read_text(text).unwrap(), text.as_bytes());
}

#[test]
fn yaml_becomes_json_in_its_order() {
    let text = "# a comment\nname: night\nlabels: &l {b: x, a: y}\njobs:\n  prep:\n    labels: *l\n    command: |\n      a\n      b\n    needs: []\n";
    let json = r#"{"name":"night","labels":{"b":"x","a":"y"},"jobs":{"prep":{"labels":{"b":"x","a":"y"},"command":"a\nb\n","needs":[]}}}"#;
    assert_eq!(String::from_utf8(read_text(text).unwrap()).unwrap(), json);
}

#[test_case("true" => json!(true))]
#[test_case("no" => json!("no"); "no is a word")]
#[test_case("on" => json!("on"); "on is a word")]
#[test_case("null" => Value::Null)]
#[test_case("~" => Value::Null; "a tilde")]
#[test_case("" => Value::Null; "nothing")]
#[test_case("007" => json!("007"); "leading zeros")]
#[test_case("1_000" => json!("1_000"); "underscores")]
#[test_case("12:30:00" => json!("12:30:00"); "a time")]
#[test_case("2026-11-21" => json!("2026-11-21"); "a date")]
#[test_case("-3" => json!(-3))]
#[test_case("18446744073709551615" => json!(u64::MAX))]
#[test_case("1e-4" => json!(1e-4); "a small number")]
#[test_case("\"1\"" => json!("1"); "a number in quotes")]
fn a_value_means_what_it_shows(text: &str) -> Value {
    value(&format!("a: {text}"))["a"].clone()
}

#[test_case("a: 1\nb:\n  c: 1\n  c: 2\n" => "job.yaml:4:3: the key `c` occurs twice; remove one"; "a duplicate key")]
#[test_case("a: 1\n---\nb: 1\n" => "job.yaml:3:1: a second document begins here; put each one into a file of its own"; "a second document")]
#[test_case("{\n  \"a\": {\"b\": 1, \"b\": 2}\n}" => "job.yaml:2:19: the key `b` occurs twice; remove one"; "a duplicate key in JSON")]
#[test_case("{\"a\": 1}\n{\"a\": 1}" => "job.yaml:2:1: trailing characters"; "a second document in JSON")]
#[test_case("{\n\"a\" 1}" => "job.yaml:2:5: expected `:`"; "broken JSON")]
#[test_case(" \n" => "job.yaml is empty; it must contain a job as JSON or YAML"; "an empty file")]
#[test_case("just text" => "job.yaml has no fields; it must contain a job as JSON or YAML, such as `image: …`"; "no object")]
fn a_wrong_file_is_refused_with_its_place(text: &str) -> String {
    refused(text)
}

#[test_case("a: 1\n b: 2\n", ":2:"; "indentation")]
#[test_case("a: 1\nb: [1, 2\n", ":"; "an open list")]
#[test_case("a: .inf\n", "not a finite number"; "infinity")]
#[test_case("a: !secret b\n", ":1:"; "an unknown tag")]
#[test_case("a: 1\nb: \"\\x1b[2J\n", ":2:"; "an open quote")]
fn broken_yaml_is_refused(text: &str, part: &str) {
    let error = refused(text);
    assert!(error.starts_with("job.yaml:") && error.contains(part), "{error}");
    assert!(!error.contains('\u{1b}') && !error.contains('\n'), "{error}");
}

#[test]
fn aliases_cannot_fill_the_memory() {
    let level = |level: u32| {
        let alias = format!("*a{}", level - 1);
        format!("a{level}: &a{level} [{}]\n", vec![alias; 10].join(", "))
    };
    let text: String =
        ["a0: &a0 [x, x, x, x, x]\n".to_owned()].into_iter().chain((1..12).map(level)).collect();
    assert!(refused(&text).starts_with("job.yaml"));
}

#[test]
fn text_that_is_not_utf8_is_refused_with_its_place() {
    let error = as_json("job.yaml", b"a: 1\nb: \xff\n".to_vec(), "a job").unwrap_err().to_string();
    assert_eq!(error, "job.yaml:2:4: the file is not UTF-8; save it as UTF-8");
}

#[test]
fn a_file_that_is_too_large_is_refused() {
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len(LARGEST + 1).unwrap();
    let error = read(file.path(), "a job").unwrap_err().to_string();
    assert!(error.ends_with("has more than 4 MiB; make it smaller"), "{error}");
}

#[test]
fn a_missing_file_is_named() {
    let error = format!("{:#}", read(Path::new("/missing/job.yaml"), "a job").unwrap_err());
    assert!(error.starts_with("cannot read /missing/job.yaml: "), "{error}");
}
