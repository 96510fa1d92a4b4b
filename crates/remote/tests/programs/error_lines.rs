//! The search of the logs of failed jobs for lines that look like errors.

use std::fmt::Write;

use remote::{Concluding, LogErrors};

use crate::{
    conclude::{conclude, job},
    site::Site,
};

fn failed(site: &Site) -> Concluding {
    Concluding { may_have_failed: true, ..job(site, "a") }
}

fn search(site: &Site, job: Concluding) -> Vec<LogErrors> {
    site.write("state/a/exit", "7 0 3 1700000000\n");
    let [a] = conclude(site, vec![job]).try_into().unwrap();
    assert!(a.readable);
    a.errors
}

/// The lines of one log that look like errors, with their offsets.
fn matches(log: &LogErrors) -> Vec<(u64, &str)> {
    log.lines.iter().filter(|line| line.is_match).map(|line| (line.offset, line.text.as_str())).collect()
}

#[test]
fn lines_that_look_like_errors_come_with_their_offsets_and_the_lines_around_them() {
    let site = Site::new();
    let text = "one\ntwo\nthree\nfour\nValueError: x\nafter\nlater\n";
    site.write("logs/a/main.err", text);
    site.write("logs/a/main.out", "epoch 1\n");
    let found = search(&site, failed(&site));
    assert_eq!(found.iter().map(|log| log.log.as_str()).collect::<Vec<_>>(), ["main.err", "main.out"]);
    let shown: Vec<_> = found[0].lines.iter().map(|line| (line.text.as_str(), line.is_match)).collect();
    assert_eq!(
        shown,
        [("two", false), ("three", false), ("four", false), ("ValueError: x", true), ("after", false)]
    );
    for line in &found[0].lines {
        assert!(text[usize::try_from(line.offset).unwrap()..].starts_with(&line.text));
    }
    assert!(!found[0].has_gaps && found[1].lines.is_empty());
}

#[test]
fn the_logs_of_a_job_that_did_not_fail_are_not_read() {
    let site = Site::new();
    site.write("logs/a/main.err", "ValueError: x\n");
    assert_eq!(search(&site, job(&site, "a")), []);
}

#[test]
fn the_logs_of_components_are_searched_too() {
    let site = Site::new();
    site.write("logs/a/main.err", "");
    site.write("logs/a/policy/3.err", "RuntimeError: x\n");
    site.write("logs/a/policy/notes.txt", "RuntimeError: y\n");
    let job = Concluding { role_logs: Some(site.path("logs/a")), ..failed(&site) };
    let found = search(&site, job);
    let log = found.iter().find(|log| log.log == "policy/3.err").unwrap();
    assert_eq!(matches(log), [(0, "RuntimeError: x")]);
    assert_eq!(found.len(), 2);
}

#[test]
fn a_carriage_return_a_nul_and_bytes_that_are_no_text_do_not_move_the_offsets() {
    let site = Site::new();
    let mut log = b"10%\r20%\r\xff\xfe\0bar\r\n".to_vec();
    let at = log.len() as u64;
    log.extend(b"KeyError: 'x'\r100%\r\n");
    site.write("logs/a/main.err", &log);
    let found = search(&site, failed(&site));
    assert_eq!(matches(&found[0]), [(at, "KeyError: 'x'")]);
}

#[test]
fn a_line_of_megabytes_is_cut_and_the_next_one_is_found() {
    let site = Site::patient();
    let long = format!("error {}\n", "x".repeat(3 << 20));
    site.write("logs/a/main.err", format!("{long}OSError: y\n"));
    let found = search(&site, failed(&site));
    let matches = matches(&found[0]);
    assert_eq!(matches[0].1.len(), 1000);
    assert_eq!(matches[1], (long.len() as u64, "OSError: y"));
}

/// The same message many times, then the cause, then many lines that follow.
#[test]
fn of_many_lines_the_first_of_each_kind_and_the_last_ones_are_kept() {
    let site = Site::patient();
    let mut log = String::new();
    for step in 0..20_000 {
        writeln!(log, "step {step}: error 0.{step}, read of /data/{step}/x.jpg failed").unwrap();
    }
    let at = log.len() as u64;
    log += "ValueError: the cause\n";
    for rank in 0..20_000 {
        writeln!(log, "[rank{rank}]: RuntimeError: Connection closed by peer").unwrap();
    }
    log += "srun: error: the end\n";
    site.write("logs/a/main.err", &log);
    let found = search(&site, failed(&site));
    let matches = matches(&found[0]);
    assert!(matches.contains(&(at, "ValueError: the cause")));
    assert_eq!(matches[0].0, 0);
    assert_eq!(matches.last().unwrap().1, "srun: error: the end");
    let bytes: usize = found[0].lines.iter().map(|line| line.text.len()).sum();
    assert!(found[0].has_gaps && bytes < 64 * 1024, "{bytes}");
}

/// Sparse: it takes no room.
#[test]
fn of_a_huge_log_both_ends_are_searched() {
    use std::io::{Seek, SeekFrom, Write};
    let site = Site::patient();
    site.write("logs/a/main.err", "OSError: first\n");
    let mut file = std::fs::OpenOptions::new().write(true).open(site.file("logs/a/main.err")).unwrap();
    let end = 5 << 30_u64;
    // The part that is read from the end begins with this.
    let part = 16 << 20_u64;
    file.seek(SeekFrom::Start(end - part)).unwrap();
    file.write_all(b"xError: the rest of a line\n").unwrap();
    file.seek(SeekFrom::Start(end - 14)).unwrap();
    file.write_all(b"\nOSError: last\n").unwrap();
    let found = search(&site, failed(&site));
    assert_eq!(matches(&found[0]), [(0, "OSError: first"), (end - 13, "OSError: last")]);
    assert!(found[0].has_gaps);
}

/// The exit record and the ends of the other logs still arrive.
#[test]
fn a_log_that_hangs_costs_only_its_own_lines() {
    let site = Site::new();
    site.write("logs/a/main.err", "OSError: never read\n");
    site.write("logs/a/main.out", "OSError: read\n");
    site.program("timeout", "case $4$* in cat*main.err) exit 124 ;; esac\nexec /usr/bin/timeout \"$@\"");
    let found = search(&site, failed(&site));
    assert!(found[0].has_gaps && found[0].lines.is_empty());
    assert_eq!(matches(&found[1]), [(0, "OSError: read")]);
}
