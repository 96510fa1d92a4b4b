//! Files without end, and what is no file: a job decides what is in its directories.

use std::{
    fs,
    os::unix::fs::{FileExt, symlink},
    process::Command,
};

use remote::{
    Conclude, Concluded, Concluding, LogFrom, LogQuestion, ReadLogs, STATUS_BYTES, StatusCursor, Subject,
};
use test_case::test_case;

use crate::{
    conclude::job,
    poll::{poll, row, watched},
    site::Site,
};

const TERABYTE: u64 = 1 << 40;
const LAST: &[u8] = b"{\"status\":\"SUCCESS\"}\n";

/// A file that is a hole, but for its last line.
fn write_hole(site: &Site, name: &str) {
    site.write(name, "first\n");
    let file = fs::OpenOptions::new().write(true).open(site.file(name)).unwrap();
    file.set_len(TERABYTE).unwrap();
    file.write_all_at(LAST, TERABYTE - LAST.len() as u64).unwrap();
}

fn mkfifo(site: &Site, name: &str) {
    fs::create_dir_all(site.file(name).parent().unwrap()).unwrap();
    assert!(Command::new("mkfifo").arg(site.file(name)).status().unwrap().success());
}

fn conclude(site: &Site, jobs: Vec<Concluding>) -> Vec<Concluded> {
    site.run(&Conclude { jobs, tail_bytes: 10, status_bytes_total: 2 * STATUS_BYTES })
}

#[test]
fn of_a_hole_of_a_terabyte_a_poll_reads_the_end() {
    let site = Site::new();
    site.write("queue", row(7, "RUNNING"));
    write_hole(&site, "results/7/status.json");
    let mut job = watched(&site, 7);
    for (read, resumes_at) in [(None, 0), (Some(6), 6)] {
        let [chunk] = poll(&site, vec![job.clone()]).status.try_into().unwrap();
        assert_eq!((chunk.start_offset, chunk.skipped), (TERABYTE - 1000, TERABYTE - 1000 - resumes_at));
        assert!(chunk.complete && !chunk.restarted && chunk.bytes.ends_with(LAST));
        assert_eq!((chunk.bytes.len(), chunk.before.len()), (1000, remote::STATUS_OVERLAP), "{read:?}");
        let written_at = chunk.written_at - 1;
        job.status = vec![StatusCursor { path: chunk.path, inode: chunk.inode, offset: 6, written_at }];
    }
}

#[test]
fn of_a_hole_of_a_terabyte_a_conclusion_reads_the_end() {
    let site = Site::new();
    site.write("state/a/exit", "7 0 0 1700000000\n");
    write_hole(&site, "results/a/status.json");
    let [a] = conclude(&site, vec![job(&site, "a")]).try_into().unwrap();
    let chunk = &a.status[0];
    assert_eq!((chunk.start_offset, chunk.skipped), (chunk.size - STATUS_BYTES as u64, chunk.start_offset));
    assert!(a.readable && chunk.complete && chunk.bytes.ends_with(LAST), "one answer is enough");
}

#[test]
fn a_job_that_ended_long_ago_shows_only_the_ends_of_its_files() {
    let cluster = Site::new();
    let size = 2 * STATUS_BYTES;
    for key in ["a", "b"] {
        cluster.write(&format!("state/{key}/submit.1"), "");
        cluster.write(&format!("results/{key}/status.json"), "x".repeat(size));
    }
    let older = Concluding { status_backlog: STATUS_BYTES as u64, ..job(&cluster, "b") };
    let answers = conclude(&cluster, vec![job(&cluster, "a"), older]);
    let parts: Vec<_> =
        answers.iter().map(|one| (one.status[0].start_offset, one.status[0].complete)).collect();
    assert_eq!(parts, [(0, false), (STATUS_BYTES as u64, true)]);
}

#[test_case("mkfifo"; "a pipe")]
#[test_case("ln -s \"$SITE/env/other\""; "a link")]
#[test_case("ln -s /dev/zero"; "a link to a device")]
fn what_takes_the_place_of_a_status_file_while_it_is_read_is_not_read(make: &str) {
    let site = Site::new();
    site.write("env/other", "SECRET=1");
    for key in ["a", "b"] {
        site.write(&format!("state/{key}/submit.1"), "");
        site.write(&format!("results/{key}/status.json"), "01234567");
    }
    site.program(
        "find",
        &format!(
            "/usr/bin/find \"$@\"\ncode=$?\ncase $* in *-name\\ status.json*)\n\
             rm -f \"$SITE/results/a/status.json\"; {make} \"$SITE/results/a/status.json\" ;; esac\nexit $code"
        ),
    );
    // One that ran out of time would be followed by another.
    site.program(
        "timeout",
        "case $* in *'dd if='*) echo >>\"$SITE/readers\" ;; esac\nexec /usr/bin/timeout \"$@\"",
    );
    let concluded = conclude(&site, ["a", "b"].map(|key| job(&site, key)).to_vec());
    assert_eq!((concluded[0].status[0].bytes.as_slice(), concluded[0].readable), (&b""[..], false));
    assert_eq!((concluded[1].status[0].bytes.as_slice(), concluded[1].readable), (&b"01234567"[..], true));
    assert_eq!(site.read("readers").lines().count(), 1);
}

#[test]
fn a_status_file_that_shrinks_while_it_is_read_is_read_again_later() {
    let site = Site::new();
    site.write("state/a/submit.1", "");
    site.write("results/a/status.json", "x".repeat(100_000));
    site.program("dd", ": >\"$SITE/results/a/status.json\"\nexec /usr/bin/dd \"$@\"");
    let [a] = conclude(&site, vec![job(&site, "a")]).try_into().unwrap();
    assert!(!a.readable && !a.status[0].complete && a.status[0].bytes.is_empty());
}

#[test]
fn what_is_no_file_is_no_status_file_log_or_mark() {
    let site = Site::new();
    for name in ["status.json", "x/status.json"] {
        mkfifo(&site, &format!("results/a/{name}"));
    }
    fs::create_dir_all(site.file("results/a/y/status.json")).unwrap();
    mkfifo(&site, "logs/a/main.out");
    mkfifo(&site, "logs/a/policy/0.out");
    mkfifo(&site, "state/a/exit");
    for name in ["logs/a/main.err", "state/a/started", "state/a/status_from", "results/a/z"] {
        fs::create_dir_all(site.file(name).parent().unwrap()).unwrap();
        symlink("/dev/zero", site.file(name)).unwrap();
    }
    let [a] = conclude(&site, vec![Concluding { role_logs: Some(site.path("logs/a")), ..job(&site, "a") }])
        .try_into()
        .unwrap();
    assert_eq!((a.status, a.markers), (vec![], remote::Markers::default()));
    assert_eq!([a.out_tail, a.err_tail, a.role_tails], [const { Vec::<u8>::new() }; 3]);
    assert!(a.readable);
}

#[test]
fn of_a_log_that_is_a_hole_of_a_terabyte_the_end_is_read() {
    let site = Site::new();
    site.write("state/a/submit.1", "");
    for name in ["main.out", "policy/0.out"] {
        write_hole(&site, &format!("logs/a/{name}"));
    }
    let [a] = conclude(&site, vec![Concluding { role_logs: Some(site.path("logs/a")), ..job(&site, "a") }])
        .try_into()
        .unwrap();
    assert!(a.readable && LAST.ends_with(&a.out_tail) && a.out_tail.len() == 10);
    assert!(a.role_tails.ends_with(&[LAST, b"\n"].concat()), "{}", a.role_tails.len());
    for from in [LogFrom::TailLines(3), LogFrom::Offset(TERABYTE - LAST.len() as u64)] {
        let part = LogQuestion::Part {
            subject: Subject::Cluster,
            paths: vec![site.path("logs/a/main.out")],
            from,
            max_bytes: 100_000,
        };
        let parts = format!("{:?}", site.run(&ReadLogs { questions: vec![part] }));
        assert!(parts.contains(&TERABYTE.to_string()), "{}", parts.len());
    }
}
