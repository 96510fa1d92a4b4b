//! What comes back may be anything.

use proptest::prelude::*;
use slurm::{
    Cancel, Conclude, Concluding, Locate, LogFrom, LogQuestion, RawOutput, ReadLogs, RemoteCommand,
    RemotePath, Remove, Sought, Submission, SubmitBatch,
};

use crate::site::{id, name};

const TAGS: &[&str] = &[
    "OK",
    "REFUSED",
    "STAGE_FAILED",
    "UNCERTAIN",
    "SKIPPED",
    "TIME",
    "SQUEUE",
    "SACCT",
    "ROW",
    "RECORD",
    "ID",
    "CLAIM",
    "MARK",
    "FILE",
    "DATA",
    "TAIL",
    "KEPT",
    "UNREAD",
    "UNSEEN",
    "LOG",
    "FILE",
    "UNREADABLE",
    "MISSING",
    "FAIL",
    "",
];

fn path(text: &str) -> RemotePath {
    text.parse().unwrap()
}

fn parse_all(stdout: &[u8]) {
    let raw = RawOutput { stdout: stdout.to_vec(), ..RawOutput::default() };
    let entry = Submission {
        key: "a".to_owned(),
        job_name: name("a"),
        state_dir: path("/s"),
        files: vec![],
        script_path: path("/x"),
        make_dirs: vec![],
        results_dir: None,
        inputs: vec!["/lustre/a".parse().unwrap()],
        base_dir: "/lustre".parse().unwrap(),
        send: 1,
        cleared: 0,
    };
    let job = Concluding {
        role_logs: None,
        key: "a".to_owned(),
        id: Some(id(1)),
        state_dir: path("/s"),
        logs: vec![],
        results_dir: None,
        status: Vec::new(),
        remove: vec![],
    };
    let sought = Sought {
        key: "a".to_owned(),
        name: name("a"),
        state_dir: path("/s"),
        base_dir: path("/b"),
        send: 1,
        cleared: 0,
    };
    let _ = SubmitBatch::new(vec![entry.clone(), entry]).parse(&raw);
    let _ = Locate { jobs: vec![sought], since_unix: 0 }.parse(&raw);
    let _ = Conclude { jobs: vec![job.clone(), job], tail_bytes: 10, status_bytes_total: 10 }.parse(&raw);
    let _ = Cancel { jobs: vec![(id(1), name("a"))], names: vec![] }.parse(&raw);
    let _ = Remove { paths: vec![path("/s")] }.parse(&raw);
    let part = || LogQuestion::Part { paths: vec![path("/s")], from: LogFrom::TailLines(1), max_bytes: 1 };
    let files = LogQuestion::Files { directory: path("/s"), most: 2 };
    let _ = ReadLogs { questions: vec![part()] }.parse(&raw);
    let _ = ReadLogs { questions: vec![part(), files, part()] }.parse(&raw);
}

fn line() -> impl Strategy<Value = String> {
    let word = "[0-3]|-|new|adopted|exit|started|AAAA|18446744073709551615|/a/b|[ -~]{0,8}";
    (proptest::sample::select(TAGS), proptest::collection::vec(word, 0..7))
        .prop_map(|(tag, words)| format!("{tag} {}", words.join(" ")))
}

proptest! {
    #[test]
    fn no_bytes_make_a_parser_panic(bytes in any::<Vec<u8>>()) {
        parse_all(&bytes);
    }

    #[test]
    fn no_framed_lines_make_a_parser_panic(lines in proptest::collection::vec(line(), 0..8)) {
        let end = format!("END {}", lines.len());
        let all: Vec<&str> = lines.iter().map(String::as_str).chain([end.as_str(), ""]).collect();
        parse_all(all.join("\n").as_bytes());
    }
}
