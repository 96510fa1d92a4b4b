//! Polling: what the scheduler prints may be odd, and a job of ours is there all the same.

use remote::{PollAnswer, SacctOutcome, SqueueOutcome};
use slurm::SlurmState;

use crate::{
    poll::{poll, row, rows, watched},
    site::{Site, id},
};

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
