//! What comes back may be anything.

use proptest::prelude::*;
use remote::{
    Cancel, Conclude, Concluding, Locate, LogFrom, LogQuestion, Poll, RawOutput, ReadLogs, RemoteCommand,
    Remove, ReportFiles, Sought, SqueueOutcome, Submission, SubmitBatch, Watched,
};
use slurm::RemotePath;

use crate::site::{id, key};

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
    "BYTES",
    "TAIL",
    "TAILS",
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

fn framed(lines: &[&str]) -> RawOutput {
    let end = format!("END {}", lines.len());
    let all: Vec<&str> = lines.iter().copied().chain([end.as_str(), ""]).collect();
    RawOutput { stdout: all.join("\n").into_bytes(), ..RawOutput::default() }
}

fn concluding() -> Concluding {
    Concluding {
        is_bare: false,
        may_have_failed: false,
        role_logs: None,
        key: key("a"),
        id: Some(id(1)),
        state_dir: path("/s"),
        logs: vec![],
        results_dir: path("/r"),
        status: Vec::new(),
        status_backlog: remote::STATUS_BACKLOG,
        results: vec![remote::ResultPart::Tail(remote::JobLog::Out)],
        remove: vec![],
    }
}

fn sought() -> Sought {
    Sought { key: key("a"), state_dir: path("/s"), base_dir: path("/b"), send: 1, cleared: 0 }
}

fn watching(number: u32) -> Watched {
    Watched {
        id: id(number),
        key: key(&format!("job-{number}")),
        results_dir: path("/r"),
        state_dir: path("/s"),
        status: Vec::new(),
        signs_of_life: Some(path("/l")),
        reports: ReportFiles { services: true, progress: Some(path("/p")), usage: Some(1000) },
        index: None,
    }
}

fn poll() -> Poll {
    Poll {
        jobs: vec![watching(1), watching(2)],
        arrays: vec![],
        status_bytes_per_file: 10,
        status_bytes_total: 10,
        others: None,
    }
}

fn parse_all(stdout: &[u8]) {
    let raw = RawOutput { stdout: stdout.to_vec(), ..RawOutput::default() };
    let entry = Submission {
        key: key("a"),
        state_dir: path("/s"),
        files: vec![],
        script_path: path("/x"),
        make_dirs: vec![],
        results_dir: path("/r"),
        inputs: vec!["/lustre/a".parse().unwrap()],
        base_dir: "/lustre".parse().unwrap(),
        send: 1,
        cleared: 0,
    };
    let (job, sought) = (concluding(), sought());
    let _ = poll().parse(&raw);
    let _ = SubmitBatch::new(vec![entry.clone(), entry]).parse(&raw);
    let _ = Locate { jobs: vec![sought], since_unix: 0 }.parse(&raw);
    let _ = Conclude { jobs: vec![job.clone(), job], tail_bytes: 10, status_bytes_total: 10 }.parse(&raw);
    let _ = Cancel { jobs: vec![(id(1), key("a"))], ..Cancel::default() }.parse(&raw);
    let _ = Remove {
        close: vec![path("/s")],
        files: vec![remote::StagedSecret { job: uuid::Uuid::nil(), state_dir: path("/s"), path: path("/s") }],
    }
    .parse(&raw);
    let part = || LogQuestion::Part {
        subject: remote::Subject::Cluster,
        paths: vec![path("/s")],
        from: LogFrom::TailLines(1),
        max_bytes: 1,
    };
    let files = LogQuestion::Files { subject: remote::Subject::Cluster, directory: path("/s"), most: 2 };
    let _ = ReadLogs { questions: vec![part()] }.parse(&raw);
    let _ = ReadLogs { questions: vec![part(), files, part()] }.parse(&raw);
}

fn line() -> impl Strategy<Value = String> {
    let word = "[0-3]|-|new|adopted|exit|started|AAAA|18446744073709551615|/a/b|[ -~]{0,8}";
    (proptest::sample::select(TAGS), proptest::collection::vec(word, 0..7))
        .prop_map(|(tag, words)| format!("{tag} {}", words.join(" ")))
}

/// Numbers of any length, and anything else that a job may have put into a file, a name or a time.
fn words() -> impl Strategy<Value = String> {
    proptest::collection::vec("[0-9]{1,25}|-[0-9]{1,20}|-|/a/b|/a%b|[ -~]{0,12}", 0..11)
        .prop_map(|words| words.join(" "))
}

proptest! {
    #[test]
    fn whatever_is_said_of_one_job_the_others_are_seen(texts in proptest::collection::vec(words(), 5)) {
        let [file, alive, claim, mark, free] = texts.as_slice() else { unreachable!() };
        let own = [
            format!("ROW 1|{free}"),
            format!("RECORD 1\u{1f}{free}"),
            format!("CLAIM 0 {claim}"),
            format!("MARK 0 exit {mark}"),
            format!("MARK 0 started {mark}"),
            format!("MARK 0 requeued {mark}"),
            format!("FILE 0 {file}"),
            "DATA 3".to_owned(),
        ];
        let own: Vec<&str> = own.iter().map(String::as_str).collect();
        let files = ["MARK 1 exit 2 0 3 1", "CLAIM 1 2", "FILE 1 9 1 0 0 0 5 - 0 0 /r/status.json", "DATA 1", "BYTES AAAAQQ=="];
        let alive = format!("ALIVE 0 {alive}");
        let answer = poll().parse(&framed(
            &[
                &["TIME 1", "SQUEUE 1 0 -", "ROW 2|RUNNING|job-2|1|2|3|polar|n1|None", "SACCT 1 0 -"],
                &own[..],
                &files,
                &[&alive, "ALIVE 1 1 2 3"],
            ]
            .concat(),
        )).unwrap();
        let SqueueOutcome::Answered(rows) = answer.squeue else { panic!("answered") };
        prop_assert!(rows.contains_key(&id(2)));
        prop_assert!(answer.status.iter().any(|chunk| chunk.key == "job-2" && chunk.bytes == b"A"));
        prop_assert!(answer.markers["job-2"].exit.is_some() && answer.markers["job-2"].run_claim.is_some());
        prop_assert_eq!(answer.signs_of_life["job-2"].bytes, 2);

        let concluded = Conclude { jobs: vec![concluding(), concluding()], tail_bytes: 10, status_bytes_total: 10 }
            .parse(&framed(&[&own[2..], &files, &["TAIL 0 0 0 0 0 0 0 0", "TAIL 1 0 0 0 0 0 0 0", "LATER 0", "PART 1 0 missing 0"]].concat()))
            .unwrap();
        prop_assert_eq!(&concluded[1].status[0].bytes, b"A");
        prop_assert!(concluded[1].markers.exit.is_some() && concluded[1].readable && concluded[1].removed);
        prop_assert_eq!(&concluded[1].results, &Some(vec![remote::PartFound::Missing]));

        let (id_file, record) = (format!("ID 0 {claim}"), format!("RECORD 1|{free}"));
        let lines = [
            "TIME 1", "SQUEUE 0 -", own[0], "SACCT 0 -", &record, &id_file, "ID 1 7", own[2], "CLAIM 1 8",
        ];
        let located = Locate { jobs: vec![sought(), sought()], since_unix: 0 }.parse(&framed(&lines)).unwrap();
        prop_assert_eq!((located.located[1].id_file, located.located[1].run_claim), (Some(id(7)), Some(id(8))));
    }
}

proptest! {
    #[test]
    fn no_bytes_make_a_parser_panic(bytes in any::<Vec<u8>>()) {
        parse_all(&bytes);
    }

    #[test]
    fn no_framed_lines_make_a_parser_panic(lines in proptest::collection::vec(line(), 0..8)) {
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        parse_all(&framed(&lines).stdout);
    }
}
