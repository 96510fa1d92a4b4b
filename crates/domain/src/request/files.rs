//! What a job brings along: files, lines of setup, and its working directory.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::{
    request::text::is_blank,
    violation::{Faults, pointer},
};

const MOST_FILES: usize = 64;
const MOST_BYTES: usize = 256 * 1024;
const LONGEST_NAME: usize = 200;
const MOST_LINES: usize = 100;
const LONGEST_LINE: usize = 4096;

/// A file of a job: its content as one of `text`, `json` and `base64`.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FileRequest {
    /// The content as text.
    #[schema(max_length = 262_144)]
    pub text: Option<String>,
    /// The content as a JSON value, written compactly.
    #[schema(value_type = Option<Object>)]
    pub json: Option<Value>,
    /// The content in base64.
    #[schema(max_length = 349_528)]
    pub base64: Option<String>,
    /// The mode in octal, such as `0755`. Default: `0644`.
    pub mode: Option<String>,
}

/// A validated file of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobFile {
    /// The content in base64.
    pub base64: String,
    pub mode: u32,
}

impl JobFile {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        // It was checked when the job was created.
        STANDARD.decode(&self.base64).unwrap_or_default()
    }
}

/// The validated files, by their paths below the job's directory of files.
pub(super) fn files(asked: &BTreeMap<String, FileRequest>, faults: &mut Faults) -> BTreeMap<String, JobFile> {
    let mut files = BTreeMap::new();
    let mut bytes = 0;
    if asked.len() > MOST_FILES {
        faults.add("/files", "too_many", format_args!("must have at most {MOST_FILES} files"));
        return files;
    }
    for (path, file) in asked {
        let at = pointer("/files", path);
        if !is_plain(path) {
            let detail = format_args!(
                "must be a relative path of 1 to {LONGEST_NAME} of A-Z a-z 0-9 . _ - / without `.` and `..` as a part"
            );
            faults.add(at.clone(), "invalid", detail);
        }
        let within = asked
            .keys()
            .any(|other| other.strip_prefix(path.as_str()).is_some_and(|rest| rest.starts_with('/')));
        if within {
            faults.add(at.clone(), "contradiction", "is a file, and the directory of another one");
        }
        let mode = file.mode.as_deref().map_or(Some(0o644), mode);
        if mode.is_none() {
            faults.add(
                format!("{at}/mode"),
                "invalid",
                "must be three octal digits, such as `0644` or `755`",
            );
        }
        match content(file) {
            Ok(content) => {
                bytes += content.len();
                files.insert(
                    path.clone(),
                    JobFile { base64: STANDARD.encode(content), mode: mode.unwrap_or(0o644) },
                );
            }
            Err((field, code, detail)) => faults.add(format!("{at}{field}"), code, detail),
        }
    }
    if bytes > MOST_BYTES {
        let detail = format_args!("have {bytes} bytes together; at most {MOST_BYTES} are allowed");
        faults.add("/files", "too_large", detail);
    }
    files
}

fn is_plain(path: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let part = |part: &str| !matches!(part, "" | "." | "..") && part.chars().all(plain);
    path.len() <= LONGEST_NAME && path.split('/').all(part)
}

fn mode(text: &str) -> Option<u32> {
    let digits = text.strip_prefix('0').filter(|rest| rest.len() == 3).unwrap_or(text);
    let is_mode = digits.len() == 3 && digits.bytes().all(|digit| (b'0'..=b'7').contains(&digit));
    u32::from_str_radix(digits, 8).ok().filter(|_| is_mode)
}

/// The bytes of the file, or the fault: the field, the code and what must be done.
fn content(file: &FileRequest) -> Result<Vec<u8>, (&'static str, &'static str, &'static str)> {
    match (&file.text, &file.json, &file.base64) {
        (Some(text), None, None) => Ok(text.clone().into_bytes()),
        (None, Some(json), None) => Ok(json.to_string().into_bytes()),
        (None, None, Some(base64)) => {
            STANDARD.decode(base64).map_err(|_| ("/base64", "invalid", "must be base64"))
        }
        _ => Err(("", "contradiction", "must have one of text, json and base64")),
    }
}

/// The lines that run before the program of each task.
pub(super) fn setup(lines: &[String], faults: &mut Faults) -> Vec<String> {
    if lines.len() > MOST_LINES {
        faults.add("/setup", "too_many", format_args!("must have at most {MOST_LINES} lines"));
    }
    for (place, line) in lines.iter().enumerate() {
        if is_blank(line) || line.len() > LONGEST_LINE || line.contains('\0') {
            let detail = format_args!("must be 1 to {LONGEST_LINE} bytes without NUL");
            faults.add(format!("/setup/{place}"), "invalid", detail);
        }
    }
    lines.to_vec()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use test_case::test_case;

    use super::*;

    fn read(body: Value) -> (BTreeMap<String, JobFile>, Vec<String>) {
        let mut faults = Faults::default();
        let files = files(&serde_json::from_value(body).unwrap(), &mut faults);
        (files, faults.0.into_iter().map(|fault| fault.pointer).collect())
    }

    #[test]
    fn content_is_text_json_or_base64() {
        let (files, faults) = read(json!({
            "a/run.sh": {"text": "echo é\n", "mode": "0755"},
            "b.json": {"json": {"x": [1, null]}},
            "c.bin": {"base64": "AAH/", "mode": "600"},
        }));
        assert_eq!(faults, Vec::<String>::new());
        let content: Vec<(&str, Vec<u8>, u32)> =
            files.iter().map(|(path, file)| (path.as_str(), file.bytes(), file.mode)).collect();
        assert_eq!(
            content,
            [
                ("a/run.sh", "echo é\n".as_bytes().to_vec(), 0o755),
                ("b.json", br#"{"x":[1,null]}"#.to_vec(), 0o644),
                ("c.bin", vec![0, 1, 255], 0o600),
            ]
        );
    }

    #[test_case(json!({"/etc/x": {"text": ""}}), &["/files/~1etc~1x"] ; "an absolute path")]
    #[test_case(json!({"a/../../x": {"text": ""}}), &["/files/a~1..~1..~1x"] ; "a way out")]
    #[test_case(json!({"a b": {"text": ""}}), &["/files/a b"] ; "a blank")]
    #[test_case(json!({"a": {"text": "", "json": 1}}), &["/files/a"] ; "two contents")]
    #[test_case(json!({"a": {}}), &["/files/a"] ; "no content")]
    #[test_case(json!({"a": {"base64": "?"}}), &["/files/a/base64"] ; "no base64")]
    #[test_case(json!({"a": {"text": "", "mode": "4755"}}), &["/files/a/mode"] ; "a set-user-id bit")]
    #[test_case(json!({"a": {"text": ""}, "a/b": {"text": ""}}), &["/files/a"] ; "a file as a directory")]
    fn what_is_no_file_is_refused_with_its_place(body: Value, pointers: &[&str]) {
        assert_eq!(read(body).1, pointers);
    }

    #[test]
    fn files_are_small() {
        let half = "x".repeat(MOST_BYTES / 2 + 1);
        assert_eq!(read(json!({"a": {"text": half}, "b": {"text": half}})).1, ["/files"]);
    }
}
