//! Polling: states, accounting, markers, and odd rows of the scheduler.

use std::fmt::Write;

use remote::{Poll, PollAnswer, RemoteCommand as _, ReportFiles, SacctOutcome, SqueueOutcome, Watched};
use slurm::{FailureClass, PastRun, QueueRow, SlurmJobId, SlurmState};

use crate::site::{Site, id};

pub(crate) fn watched(site: &Site, number: u32) -> Watched {
    Watched {
        id: id(number),
        key: crate::site::key(&format!("job-{number}")),
        results_dir: site.path(&format!("results/{number}")),
        state_dir: site.path(&format!("state/{number}")),
        status: Vec::new(),
        signs_of_life: None,
        reports: ReportFiles::default(),
        index: None,
    }
}

fn command(jobs: Vec<Watched>) -> Poll {
    Poll {
        jobs,
        arrays: Vec::new(),
        status_bytes_per_file: 1000,
        status_bytes_total: 2500,
        others: Some("tao-".parse().unwrap()),
    }
}

pub(crate) fn poll(site: &Site, jobs: Vec<Watched>) -> PollAnswer {
    site.run(&command(jobs))
}

pub(crate) fn row(number: u32, state: &str) -> String {
    format!("{number}|{state}|None|n1|1700000000|1700000001|N/A|polar|job-{number}\n")
}

pub(crate) fn rows(answer: &PollAnswer) -> Vec<&QueueRow> {
    let SqueueOutcome::Answered(rows) = &answer.squeue else { panic!("{answer:?}") };
    let mut rows: Vec<&QueueRow> = rows.values().collect();
    rows.sort_by_key(|row| row.id);
    rows
}

pub(crate) fn record(number: u32, state: &str, code: &str, name: &str) -> String {
    [&number.to_string(), state, code, name, "1700000000", "Unknown", "n1", "None"].join("\u{1f}") + "\n"
}

#[test]
fn a_queue_is_read() {
    let site = Site::new();
    site.write(
        "queue",
        "7|PENDING|ReqNodeNotAvail, UnavailableNodes:node02||1700000000|N/A|N/A|polar,polar3|job-7\n",
    );
    let answer = poll(&site, vec![watched(&site, 7)]);
    let row = rows(&answer)[0];
    assert_eq!((row.state.clone(), row.submit, row.start), (SlurmState::Pending, Some(1_700_000_000), None));
    assert_eq!(row.reason, "ReqNodeNotAvail, UnavailableNodes:node02");
    assert_eq!(row.partition, "polar,polar3");
    assert_eq!(answer.sacct, SacctOutcome::NotAsked);
    assert!(answer.remote_time > 1_700_000_000);
    assert_eq!((answer.dropped_rows, site.calls("squeue"), site.calls("sacct")), (0, 1, 0));
}

#[test]
fn a_hostile_name_cannot_forge_a_row() {
    let site = Site::new();
    // The fake turns \n into a newline, as a job's name may hold one.
    site.write(
        "queue",
        format!("{}8|RUNNING|None|n1|1|2|3|polar|x\\n7|COMPLETED|None|n1|1|2|3|polar|job-7\\nEND 3\n9|RUNNING|None|n1|1|2|3|polar|tao-b|c\n10|RUNNING|None|n1|1|2|3|polar|a|b|c\n", row(7, "RUNNING")),
    );
    let answer = poll(&site, vec![watched(&site, 7)]);
    let seen: Vec<(u32, &str)> = rows(&answer).iter().map(|row| (row.id.get(), row.name.as_str())).collect();
    assert_eq!(seen, [(7, "job-7"), (9, "tao-b?c")]);
    assert_eq!(rows(&answer)[0].state, SlurmState::Running);
    assert_eq!(answer.dropped_rows, 3, "a name with newlines costs only its own row");
}

#[test]
fn who_holds_on_to_what_squeue_prints_to_holds_up_a_poll_only_for_a_time() {
    let site = Site::new();
    // Of its own, so that nobody ends it: a helper of a site's wrapper, or what waits for a file server that has gone.
    site.program("squeue", "setsid sleep 20 &");
    site.program("timeout", r#"exec /usr/bin/timeout -k 1 1 "${@:4}""#);
    let answer = poll(&site, vec![watched(&site, 7)]);
    assert!(matches!(answer.squeue, SqueueOutcome::Failed(_)), "{answer:?}");
}

#[test]
fn a_squeue_that_is_deaf_to_its_end_is_killed() {
    let site = Site::new();
    site.program("squeue", "trap '' TERM; echo $$ >\"$SITE/squeue.pid\"; while :; do sleep 0.1; done");
    // Of two of them, the one within ends first, as in earnest.
    site.program("timeout", r#"exec /usr/bin/timeout -k 1 "$(($2 == 5 ? 1 : 8))" "${@:4}""#);
    let answer = poll(&site, vec![watched(&site, 7)]);
    assert!(matches!(answer.squeue, SqueueOutcome::Failed(_)), "{answer:?}");
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", site.read("squeue.pid").trim()));
    // Nobody may have taken notice yet that it is dead.
    assert!(stat.as_ref().is_err() || stat.as_ref().unwrap().contains(") Z "), "{stat:?}");
}

#[test]
fn an_empty_queue_sends_every_job_to_the_accounting() {
    let site = Site::new();
    site.write(
        "sacct.rows",
        record(7, "CANCELLED by 2001", "0:0", "job-7")
            + &record(8, "COMPLETED", "0:0", "somebody-else")
            + &record(9, "PENDING", "0:0", "allocation"),
    );
    let answer = poll(&site, vec![watched(&site, 7), watched(&site, 8), watched(&site, 9)]);
    assert!(rows(&answer).is_empty());
    let SacctOutcome::Answered(records) = &answer.sacct else { panic!("{answer:?}") };
    assert_eq!(records.keys().copied().collect::<Vec<SlurmJobId>>(), [id(7)]);
    assert_eq!((&records[&id(7)].state, records[&id(7)].canceled_by), (&SlurmState::Cancelled, Some(2001)));
    assert_eq!((records[&id(7)].start, records[&id(7)].end), (Some(1_700_000_000), None));
    assert!(site.read("sacct.calls").contains("-j 7,8,9"), "{}", site.read("sacct.calls"));
}

#[test]
fn only_what_has_vanished_is_looked_up_and_a_strangers_id_has_vanished() {
    let site = Site::new();
    site.write("queue", row(7, "RUNNING") + "8|RUNNING|None|n1|1|2|3|polar|somebody-else\n");
    let answer = poll(&site, vec![watched(&site, 7), watched(&site, 8), watched(&site, 9)]);
    assert!(site.read("sacct.calls").ends_with("-j 8,9\n"), "{}", site.read("sacct.calls"));
    let seen: Vec<(u32, &str)> = rows(&answer).iter().map(|row| (row.id.get(), row.name.as_str())).collect();
    assert_eq!(seen, [(7, "job-7"), (8, "somebody-else")]);
}

#[test]
fn a_queue_that_fails_says_nothing_about_any_job() {
    let site = Site::new();
    let text = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n";
    site.write("squeue.err", text);
    for code in ["1", "0"] {
        site.write("squeue.rc", code);
        let answer = poll(&site, vec![watched(&site, 7)]);
        let SqueueOutcome::Failed(failure) = answer.squeue else { panic!("rc {code}") };
        assert_eq!(failure.class, FailureClass::NotDone);
        assert_eq!(answer.sacct, SacctOutcome::NotAsked);
    }
    site.remove("squeue.rc");
    site.write("queue", row(7, "RUNNING"));
    let answer = poll(&site, vec![watched(&site, 7)]);
    assert!(matches!(answer.squeue, SqueueOutcome::Failed(_)), "rows beside an error are not all rows");
    assert_eq!(site.calls("sacct"), 0);
}

#[test]
fn an_accounting_that_fails_is_no_answer() {
    let site = Site::new();
    site.write("sacct.rc", "1");
    site.write("sacct.err", "sacct: error: Problem talking to the database: Connection refused\n");
    let answer = poll(&site, vec![watched(&site, 7)]);
    let SacctOutcome::Failed(failure) = answer.sacct else { panic!("failed") };
    assert_eq!(failure.class, FailureClass::Infra);
}

#[test]
fn the_marks_of_what_has_ended_are_read_and_forged_ones_are_not_believed() {
    let site = Site::new();
    site.write("queue", row(7, "COMPLETED") + &row(8, "RUNNING"));
    for number in [7, 8, 9, 10] {
        site.write(&format!("state/{number}/exit"), format!("{number} 1 3 1700000009\n"));
        site.write(&format!("state/{number}/started"), format!("{number} 1 1700000001 node01\n"));
        site.link(&number.to_string(), &format!("state/{number}/run"));
    }
    site.write("state/10/exit", [&[b'x'; 5000][..], b"\n"].concat());
    let jobs = [7, 8, 9, 10, 11].map(|number| watched(&site, number)).to_vec();
    let answer = poll(&site, jobs);
    let mut keys: Vec<&str> = answer.markers.keys().map(String::as_str).collect();
    keys.sort_unstable();
    assert_eq!(keys, ["job-10", "job-7", "job-9"], "a running job's marks are not read");
    let marks = &answer.markers["job-9"];
    let exit = marks.exit.unwrap();
    assert_eq!((exit.slurm_id, exit.restart, exit.code, exit.at), (id(9), 1, 3, 1_700_000_009));
    assert_eq!(marks.started.as_ref().unwrap().hostname, "node01");
    assert_eq!(marks.run_claim, Some(id(9)));
    assert_eq!(answer.markers["job-10"].exit, None);
}

#[test]
fn a_mark_that_is_a_pipe_does_not_block() {
    let site = Site::new();
    site.write("state/7/x", "");
    let made = std::process::Command::new("mkfifo").arg(site.file("state/7/exit")).status().unwrap();
    assert!(made.success());
    assert_eq!(poll(&site, vec![watched(&site, 7)]).markers.len(), 0);
}

#[test]
fn ten_thousand_waiting_jobs_start_no_process_each() {
    let site = Site::new();
    let mut queue = String::new();
    for number in 1..=10_000 {
        writeln!(queue, "{number}|PENDING|job-{number}").unwrap();
    }
    site.write("queue", &queue);
    // The fake formats row by row, which takes longer than the program does: here it is given the format of a poll.
    site.program("squeue", "while (($# > 0)); do [ \"$1\" = -o ] && nonce=${2%%|*}; shift; done\nsed \"s/.*/$nonce|&|$nonce|1700000000|N\\/A|N\\/A|polar||Priority/\" \"$SITE/queue\"");
    let poll = command((1..=10_000).map(|number| watched(&site, number)).collect());
    let (raw, processes) = site.counted(&poll);
    assert_eq!(rows(&poll.parse(&raw).unwrap()).len(), 10_000);
    assert!(processes < 1000, "{processes} processes");
}

#[test]
fn ten_thousand_vanished_jobs_are_asked_for_five_hundred_at_a_time() {
    let site = Site::new();
    let jobs: Vec<Watched> = (1..=10_000).map(|number| watched(&site, number)).collect();
    poll(&site, jobs);
    assert_eq!(site.calls("sacct"), 20);
}

#[test]
fn no_jobs_are_polled_too() {
    let site = Site::new();
    site.write("queue", row(7, "RUNNING") + "8|RUNNING|None|n1|1|2|3|polar|tao-job-8\n");
    let answer = poll(&site, vec![]);
    assert_eq!(rows(&answer).iter().map(|row| row.id).collect::<Vec<_>>(), [id(8)]);
    assert_eq!((answer.sacct, answer.status.len()), (SacctOutcome::NotAsked, 0));
}

#[test]
fn accounting_is_asked_about_an_end_of_which_squeue_says_too_little() {
    let site = Site::new();
    let failed = |number: u32, reason: &str| row(number, "FAILED").replace("|None|", &format!("|{reason}|"));
    site.write("queue", failed(7, "JobLaunchFailure") + &failed(8, "NonZeroExitCode") + &row(9, "COMPLETED"));
    site.write("sacct.rows", record(7, "FAILED", "0:9", "job-7") + &record(8, "FAILED", "3:0", "job-8"));
    let answer = poll(&site, [7, 8, 9].map(|number| watched(&site, number)).to_vec());
    let SacctOutcome::Answered(records) = &answer.sacct else { panic!("{answer:?}") };
    assert_eq!((records[&id(7)].exit_code.unwrap().signal, records[&id(8)].exit_code.unwrap().code), (9, 3));
    assert_eq!(rows(&answer).len(), 3);
    assert!(site.read("sacct.calls").trim_end().ends_with("-j 7,8"), "{}", site.read("sacct.calls"));
}

#[test]
fn accounting_is_asked_who_has_canceled_a_job_and_why_one_is_held() {
    let site = Site::new();
    let held = row(7, "PENDING").replace("|None|", "|JobHeldAdmin|");
    site.write("queue", held + &row(8, "CANCELLED") + &row(9, "PENDING"));
    let run = |state: &str, start: &str, end: &str| {
        ["7", state, "0:0", "job-7", start, end, "n1", "None"].join("\u{1f}") + "\n"
    };
    let runs =
        run("NODE_FAIL", "5", "90") + &run("REQUEUED", "100", "100") + &run("PENDING", "Unknown", "Unknown");
    site.write("sacct.rows", runs + &record(8, "CANCELLED", "0:0", "job-8"));
    let answer = poll(&site, [7, 8, 9].map(|number| watched(&site, number)).to_vec());
    let SacctOutcome::Answered(records) = &answer.sacct else { panic!("{answer:?}") };
    let before = PastRun { was_requeued: true, start: Some(100), end: Some(100) };
    assert_eq!((&records[&id(7)].state, records[&id(7)].before), (&SlurmState::Pending, Some(before)));
    assert_eq!((records[&id(8)].canceled_by, records[&id(8)].before), (None, None));
    assert!(site.read("sacct.calls").trim_end().ends_with("-j 7,8"), "{}", site.read("sacct.calls"));
}

#[test]
fn of_jobs_that_nobody_asked_about_only_those_with_our_names_are_told_and_few_bytes_of_each() {
    let site = Site::new();
    let mut queue = String::new();
    for number in 1..=7000 {
        let name = if number % 100 == 0 { "theirs" } else { "tao-job-x" };
        writeln!(
            queue,
            "{number}|PENDING|{}||1|N/A|N/A|polar|{name}",
            "r".repeat(if number < 50 { 3000 } else { 1 })
        )
        .unwrap();
    }
    queue += &row(9000, "RUNNING");
    site.write("queue", &queue);
    site.program("squeue", "while (($# > 0)); do [ \"$1\" = -o ] && nonce=${2%%|*}; shift; done\nawk -F'|' -v n=\"$nonce\" '{ print n \"|\" $1 \"|\" $2 \"|\" $NF \"|\" n \"|1|N/A|N/A|polar||\" $3 }' \"$SITE/queue\"");
    let answer = poll(&site, vec![watched(&site, 9000)]);
    let seen = rows(&answer);
    assert_eq!((seen.len(), seen[5000].id), (5001, id(9000)), "the job that was asked about is always there");
    assert!(seen[..5000].iter().all(|row| row.name == "tao-job-x" && row.reason.len() < 200));
    assert_eq!(answer.dropped_rows, 0);
}

#[test]
fn a_name_of_many_lines_costs_few_bytes() {
    let site = Site::new();
    site.write(
        "queue",
        row(7, "RUNNING") + &format!("8|RUNNING|None|n1|1|2|3|polar|x{}\n", "\\ny".repeat(20_000)),
    );
    let answer = poll(&site, vec![watched(&site, 7)]);
    assert_eq!((rows(&answer).len(), answer.dropped_rows), (1, 1000));
}

fn seen(site: &Site) -> PollAnswer {
    let answer = poll(site, vec![watched(site, 7)]);
    assert_eq!(answer.sacct, SacctOutcome::NotAsked, "it has not vanished");
    let SqueueOutcome::Answered(rows) = &answer.squeue else { panic!("{answer:?}") };
    assert_eq!(rows[&id(7)].name, "job-7");
    answer
}

#[test]
fn a_row_with_odd_times_is_seen() {
    let site = Site::new();
    site.write("queue", "7|RUNNING|None|n1|yesterday||Tue Nov 14|polar|job-7\n");
    let answer = seen(&site);
    let row = rows(&answer)[0];
    assert_eq!((&row.state, row.submit, row.start, row.end), (&SlurmState::Running, None, None, None));
    assert_eq!((row.nodes.as_str(), answer.dropped_rows), ("n1", 0));
}

#[test]
fn a_row_longer_than_is_read_loses_only_its_free_text() {
    let site = Site::new();
    let (nodes, reason) = ("node[".to_owned() + &"0,".repeat(3000) + "1]", "r".repeat(3000));
    site.write("queue", format!("7|RUNNING|{reason}|{nodes}|1|2|3|polar|job-7\n"));
    let answer = seen(&site);
    let row = rows(&answer)[0];
    assert_eq!(
        (row.submit, row.start, row.end, row.partition.as_str()),
        (Some(1), Some(2), Some(3), "polar")
    );
    assert!(row.nodes.starts_with("node[0,"));
}

#[test]
fn a_state_that_is_not_understood_is_reported_as_it_is() {
    let site = Site::new();
    for (printed, expected) in [("BRAND_NEW", "BRAND_NEW"), ("", ""), ("?\t?", "???")] {
        site.write("queue", format!("7|{printed}|None|n1|1|2|3|polar|job-7\n"));
        let answer = seen(&site);
        assert_eq!(rows(&answer)[0].state, SlurmState::Unknown(expected.to_owned()));
        assert_eq!(answer.markers.len(), 0, "its marks are not those of an ended job");
    }
}

#[test]
fn delimiters_in_free_text_and_in_other_names_cost_nothing_of_ours() {
    let site = Site::new();
    site.write(
        "queue",
        "7|PENDING|a|b|c||1|N/A|N/A|polar|job-7\n\
         8|RUNNING|None|n1|1|2|3|polar|tao-7|COMPLETED\n"
            .replace("a|b|c", "a\\x7cb\\x7cc")
            + &format!("9|RUNNING|None|n1|1|2|3|polar|tao-{}\n", "|x".repeat(2000)),
    );
    let answer = seen(&site);
    let names: Vec<usize> = rows(&answer).iter().map(|row| row.name.len()).collect();
    assert_eq!(names, [5, "tao-7|COMPLETED".len(), 200]);
    assert_eq!((rows(&answer)[0].reason.as_str(), rows(&answer)[0].submit), ("a|b|c", Some(1)));
    assert_eq!(answer.dropped_rows, 0);
}

#[test]
fn a_greeting_beside_an_empty_queue_is_an_answer() {
    let site = Site::new();
    site.write("squeue.err", "squeue: This cluster will be down on Friday.\n");
    let answer = poll(&site, vec![watched(&site, 7)]);
    assert!(rows(&answer).is_empty());
    assert_eq!(site.calls("sacct"), 1);
}

#[test]
fn an_accounting_that_is_switched_off_is_told_apart_from_one_that_fails() {
    let site = Site::new();
    site.write("queue", row(8, "RUNNING"));
    site.write("sacct.err", "Slurm accounting storage is disabled\n");
    for code in ["1", "0"] {
        site.write("sacct.rc", code);
        assert_eq!(poll(&site, vec![watched(&site, 7)]).sacct, SacctOutcome::Disabled, "rc {code}");
    }
}

#[test]
fn a_record_longer_than_is_read_loses_only_its_free_text() {
    let site = Site::new();
    let record = ["7", "COMPLETED", "0:0", "job-7", "1", "2", &"n,".repeat(3000), "None"].join("\u{1f}");
    site.write("sacct.rows", record + "\n");
    let SacctOutcome::Answered(records) = poll(&site, vec![watched(&site, 7)]).sacct else {
        panic!("answered")
    };
    assert_eq!((&records[&id(7)].state, records[&id(7)].end), (&SlurmState::Completed, Some(2)));
}
