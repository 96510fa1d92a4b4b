use proptest::prelude::*;

use super::*;
use slurm::FailureClass;

fn key(name: &str) -> AttemptKey {
    AttemptKey { subject: Subject::Cluster, name: name.parse().unwrap() }
}

fn poll(ids: &[u32]) -> Poll {
    let jobs = ids.iter().map(|id| Watched {
        id: SlurmJobId::new(*id).unwrap(),
        key: key(&format!("job-{id}")),
        results_dir: "/r".parse().unwrap(),
        state_dir: "/s".parse().unwrap(),
        status: Vec::new(),
        signs_of_life: None,
        reports: ReportFiles::default(),
        index: None,
    });
    Poll {
        jobs: jobs.collect(),
        arrays: Vec::new(),
        status_bytes_per_file: 1000,
        status_bytes_total: 10_000,
        others: None,
    }
}

fn parse(poll: &Poll, body: &[&str]) -> Result<PollAnswer, ParseError> {
    let end = format!("END {}", body.len());
    let lines: Vec<&str> = body.iter().copied().chain([end.as_str(), ""]).collect();
    let stdout = lines.join("\n");
    poll.parse(&RawOutput { stdout: stdout.into_bytes(), ..RawOutput::default() })
}

#[test]
fn a_malformed_row_costs_only_itself() {
    let answer = parse(
        &poll(&[7, 8]),
        &[
            "TIME 1700000000",
            "SQUEUE 1 0 -",
            "ROW ?",
            "ROW 7|RUNNING|job-7|1|2|3|polar|n1|None",
            "ROW 8|half",
            "SACCT 0 0 -",
        ],
    )
    .unwrap();
    let SqueueOutcome::Answered(rows) = answer.squeue else { panic!("answered") };
    assert_eq!(rows.keys().map(|id| id.get()).collect::<Vec<_>>(), [7]);
    assert_eq!(answer.dropped_rows, 2);
}

#[test]
fn an_id_that_now_belongs_to_another_job_is_shown_under_the_name_of_that_job() {
    let answer = parse(
        &poll(&[7]),
        &[
            "TIME 1",
            "SQUEUE 1 0 -",
            "ROW 7|PENDING|somebody-else|1|2|3|polar|n1|None",
            "SACCT 1 0 -",
            "RECORD 7\u{1f}COMPLETED\u{1f}0:0\u{1f}allocation\u{1f}1\u{1f}2\u{1f}n1\u{1f}",
            "RECORD 7\u{1f}COMPLETED\u{1f}0:0\u{1f}somebody-else\u{1f}1\u{1f}2\u{1f}n1\u{1f}",
        ],
    )
    .unwrap();
    let SqueueOutcome::Answered(rows) = answer.squeue else { panic!("answered") };
    assert_eq!(
        rows.values().map(|row| row.name.as_str()).collect::<Vec<_>>(),
        ["somebody-else"],
        "it may be an orphan"
    );
    assert_eq!(answer.sacct, SacctOutcome::Answered(HashMap::new()));
}

#[test]
fn an_id_that_has_come_round_again_is_seen_under_either_of_our_names() {
    for key in ["job-7", "again"] {
        let mut poll = poll(&[7, 7]);
        poll.jobs[1].key = self::key("again");
        let row = format!("ROW 7|RUNNING|{key}|1|2|3|polar|n1|None");
        let SqueueOutcome::Answered(rows) =
            parse(&poll, &["TIME 1", "SQUEUE 1 0 -", &row, "SACCT 0 0 -"]).unwrap().squeue
        else {
            panic!("answered")
        };
        assert_eq!(rows.values().map(|row| row.name.as_str()).collect::<Vec<_>>(), [key]);
    }
}

#[test]
fn a_queue_that_did_not_answer_is_a_failure_with_a_class() {
    let answer = parse(&poll(&[7]), &["TIME 1", "SQUEUE 0 124 -", "SACCT 0 0 -"]).unwrap();
    let SqueueOutcome::Failed(failure) = answer.squeue else { panic!("failed") };
    assert_eq!(failure.class, FailureClass::Ambiguous);
    assert_eq!(answer.sacct, SacctOutcome::NotAsked);
}

#[test]
fn a_part_that_is_missing_is_malformed() {
    assert!(matches!(parse(&poll(&[7]), &["TIME 1"]), Err(ParseError::Malformed { .. })));
    assert!(matches!(parse(&poll(&[7]), &["TIME 1", "SURPRISE"]), Err(ParseError::Malformed { .. })));
}

#[test]
fn ten_thousand_jobs_render_and_parse_quickly_enough_to_be_tested() {
    let ids: Vec<u32> = (1..=10_000).collect();
    let poll = poll(&ids);
    assert!(poll.render().stdin.len() < 1_000_000);
    let mut body = vec!["TIME 1".to_owned(), "SQUEUE 1 0 -".to_owned()];
    body.extend(ids.iter().map(|id| format!("ROW {id}|PENDING|job-{id}|1|N/A|N/A|polar||Priority")));
    body.push("SACCT 0 0 -".to_owned());
    let body: Vec<&str> = body.iter().map(String::as_str).collect();
    let SqueueOutcome::Answered(rows) = parse(&poll, &body).unwrap().squeue else { panic!("answered") };
    assert_eq!(rows.len(), 10_000);
}

const TAGS: &[&str] =
    &["TIME", "SQUEUE", "ROW", "SACCT", "RECORD", "FILE", "DATA", "BYTES", "CLAIM", "MARK", "FAIL", ""];

fn line() -> impl Strategy<Value = String> {
    (proptest::sample::select(TAGS), "[-0-9a-zA-Z|/= \u{1f}]{0,40}")
        .prop_map(|(tag, rest)| format!("{tag} {rest}"))
}

proptest! {
    #[test]
    fn no_answer_makes_the_parser_panic(lines in proptest::collection::vec(line(), 0..12), raw in any::<Vec<u8>>()) {
        let poll = poll(&[1, 2, 3]);
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let _ = parse(&poll, &lines);
        let _ = poll.parse(&RawOutput { stdout: raw, ..RawOutput::default() });
    }
}
