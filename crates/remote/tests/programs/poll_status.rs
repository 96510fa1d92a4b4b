//! Polling: what is new in the status files.

use std::{
    ffi::OsStr,
    fs,
    os::unix::{ffi::OsStrExt as _, fs::MetadataExt as _},
};

use remote::{Poll, PollAnswer, StatusChunk, StatusCursor, Watched};

use crate::{
    poll::{poll, row, watched},
    site::Site,
};

fn running(site: &Site) -> Watched {
    site.write("queue", row(7, "RUNNING"));
    watched(site, 7)
}

fn cursor(chunk: &StatusChunk) -> StatusCursor {
    let offset = chunk.start_offset + u64::try_from(chunk.bytes.len()).unwrap();
    StatusCursor { path: chunk.path.clone(), inode: chunk.inode, offset, written_at: chunk.written_at }
}

fn only(answer: PollAnswer) -> StatusChunk {
    let [chunk] = answer.status.try_into().unwrap();
    chunk
}

#[test]
fn a_growing_file_is_read_from_where_reading_ended() {
    let site = Site::new();
    let job = running(&site);
    site.write("results/7/train/status.json", "{\"a\":1}\n");
    let first = only(poll(&site, vec![job.clone()]));
    assert_eq!(
        (first.start_offset, first.bytes.as_slice(), first.restarted),
        (0, &b"{\"a\":1}\n"[..], false)
    );
    assert!(first.complete);
    assert_eq!(first.path, site.path("results/7/train/status.json"));
    assert_eq!(first.key, "job-7");
    let job = Watched { status: vec![cursor(&first)], ..job };
    assert_eq!(poll(&site, vec![job.clone()]).status, [], "nothing new");
    site.append("results/7/train/status.json", b"{\"a\":2}\n{\"a\"");
    let second = only(poll(&site, vec![job]));
    assert_eq!(
        (second.start_offset, second.bytes.as_slice(), second.restarted),
        (8, &b"{\"a\":2}\n{\"a\""[..], false)
    );
    assert_eq!(second.size, 20);
}

#[test]
fn a_file_that_shrank_is_read_from_its_beginning_and_says_so() {
    let site = Site::new();
    let job = running(&site);
    site.write("results/7/status.json", "a long line\n");
    let job = Watched { status: vec![cursor(&only(poll(&site, vec![job.clone()])))], ..job };
    site.write("results/7/status.json", "short\n");
    let chunk = only(poll(&site, vec![job.clone()]));
    assert_eq!((chunk.start_offset, chunk.bytes.as_slice(), chunk.restarted), (0, &b"short\n"[..], true));
    site.write("results/7/status.json", "");
    let chunk = only(poll(&site, vec![job]));
    assert_eq!((chunk.size, chunk.bytes.len(), chunk.restarted), (0, 0, true));
}

#[test]
fn a_file_that_was_replaced_is_read_from_its_beginning_even_if_it_is_longer() {
    let site = Site::new();
    let job = running(&site);
    site.write("results/7/status.json", "old\n");
    let job = Watched { status: vec![cursor(&only(poll(&site, vec![job.clone()])))], ..job };
    site.write("results/7/status.new", "new and longer\n");
    std::fs::rename(site.file("results/7/status.new"), site.file("results/7/status.json")).unwrap();
    let chunk = only(poll(&site, vec![job]));
    assert_eq!((chunk.bytes.as_slice(), chunk.restarted), (&b"new and longer\n"[..], true));
}

#[test]
fn several_files_are_followed_each_from_where_reading_ended() {
    let site = Site::new();
    let job = running(&site);
    site.write("results/7/a/status.json", "a\n");
    let first = only(poll(&site, vec![job.clone()]));
    let job = Watched { status: vec![cursor(&first)], ..job };
    site.write("results/7/b/status.json", "b\n");
    let second = only(poll(&site, vec![job.clone()]));
    assert_eq!((second.bytes.as_slice(), second.restarted), (&b"b\n"[..], false));
    assert!(second.written_at >= first.written_at && first.written_at > 1_700_000_000_000_000);
    let job = Watched { status: vec![cursor(&first), cursor(&second)], ..job };
    assert_eq!(poll(&site, vec![job.clone()]).status, []);
    site.append("results/7/a/status.json", b"aa\n");
    site.append("results/7/b/status.json", b"bb\n");
    let mut both = poll(&site, vec![job]).status;
    both.sort_by_key(|chunk| chunk.path.to_string());
    assert_eq!(both.iter().map(|c| c.bytes.as_slice()).collect::<Vec<_>>(), [&b"aa\n"[..], b"bb\n"]);
    assert_eq!(both.iter().map(|c| c.before.as_slice()).collect::<Vec<_>>(), [&b"a\n"[..], b"b\n"]);
}

#[test]
fn a_job_has_at_most_sixteen_status_files_the_known_ones_first() {
    let site = Site::new();
    let job = running(&site);
    site.write("results/7/old/status.json", "old\n");
    let job = Watched { status: vec![cursor(&only(poll(&site, vec![job.clone()])))], ..job };
    for number in 0..40 {
        site.write(&format!("results/7/{number}/status.json"), "new\n");
    }
    site.append("results/7/old/status.json", b"more\n");
    let chunks = poll(&site, vec![job]).status;
    assert_eq!(chunks.len(), remote::STATUS_FILES);
    assert!(chunks.iter().any(|chunk| chunk.bytes == b"more\n"));
}

#[test]
fn only_the_end_of_what_was_read_is_read_again() {
    let site = Site::new();
    let job = running(&site);
    site.write("results/7/status.json", "x".repeat(900) + "\n");
    let job = Watched { status: vec![cursor(&only(poll(&site, vec![job.clone()])))], ..job };
    site.append("results/7/status.json", b"y\n");
    let chunk = only(poll(&site, vec![job]));
    assert_eq!((chunk.before.len(), chunk.bytes.as_slice(), chunk.start_offset), (512, &b"y\n"[..], 901));
    assert!(chunk.complete && chunk.before.ends_with(b"x\n"));
}

#[test]
fn a_file_that_was_written_anew_to_the_same_length_shows_its_end() {
    let site = Site::new();
    let job = running(&site);
    site.write("results/7/status.json", "old\n");
    let job = Watched { status: vec![cursor(&only(poll(&site, vec![job.clone()])))], ..job };
    assert_eq!(poll(&site, vec![job.clone()]).status, []);
    site.write("results/7/status.json", "new\n");
    let chunk = only(poll(&site, vec![job]));
    assert_eq!((chunk.before.as_slice(), chunk.bytes.len(), chunk.start_offset), (&b"new\n"[..], 0, 4));
    assert!(chunk.complete && !chunk.restarted);
}

#[test]
fn what_the_newest_run_found_is_said_with_each_file() {
    let site = Site::new();
    let job = running(&site);
    site.write("results/7/status.json", "old\n");
    assert_eq!(only(poll(&site, vec![job.clone()])).note, None, "no run has written a note");
    let inode = only(poll(&site, vec![job.clone()])).inode;
    site.write(
        "state/7/status_from",
        format!("run 3\ngarbage\n{inode} 4 /some/path with spaces/status.json\n99 x y\n"),
    );
    site.append("results/7/status.json", b"new\n");
    let note = only(poll(&site, vec![job.clone()])).note.unwrap();
    assert_eq!((note.restart, note.fresh_from), (3, 4));
    assert!(note.at > 1_700_000_000_000_000);
    site.write("results/7/b/status.json", "all new\n");
    let chunks = poll(&site, vec![job]).status;
    let other = chunks.iter().find(|chunk| chunk.bytes == b"all new\n").unwrap();
    assert_eq!(other.note.unwrap().fresh_from, 0, "what was not there then is new as a whole");
}

#[test]
fn a_note_that_could_not_be_looked_for_leaves_the_file_for_later() {
    let site = Site::new();
    let job = running(&site);
    site.write("results/7/status.json", "old\n");
    site.program("find", "case \"$*\" in *status_from*) kill -KILL $$ ;; esac\nexec /usr/bin/find \"$@\"");
    assert_eq!(poll(&site, vec![job]).status, []);
}

#[test]
fn huge_files_are_read_in_parts() {
    let site = Site::new();
    site.write("queue", row(7, "RUNNING") + &row(8, "COMPLETED") + &row(9, "RUNNING") + &row(10, "RUNNING"));
    for number in [7, 8, 9, 10] {
        site.write(&format!("results/{number}/status.json"), "x".repeat(100_000));
    }
    let jobs: Vec<Watched> = [7, 8, 9, 10].map(|number| watched(&site, number)).to_vec();
    let answer = poll(&site, jobs);
    let mut sizes: Vec<usize> = answer.status.iter().map(|chunk| chunk.bytes.len()).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [0, 500, 1000, 1000], "1000 a file, 2500 altogether");
    assert!(answer.status.iter().all(|chunk| chunk.size == 100_000 && !chunk.complete));
}

#[test]
fn a_waiting_job_has_no_files_to_look_for_and_one_too_deep_is_not_found() {
    let site = Site::new();
    site.write("queue", row(7, "PENDING") + &row(8, "RUNNING"));
    site.write("results/7/status.json", "x\n");
    site.write("results/8/a/b/c/status.json", "x\n");
    assert_eq!(poll(&site, vec![watched(&site, 7), watched(&site, 8)]).status, []);
    site.write("results/8/a/b/status.json", "x\n");
    assert_eq!(poll(&site, vec![watched(&site, 8)]).status.len(), 1);
}

#[test]
fn a_search_that_did_not_end_never_changes_to_another_file() {
    let site = Site::new();
    let job = running(&site);
    site.write("results/7/a/status.json", "a\n");
    let known = Watched { status: vec![cursor(&only(poll(&site, vec![job.clone()])))], ..job.clone() };
    site.write("results/7/b/status.json", "b\n");
    // It has found the one file and not yet the other.
    site.program("find", "/usr/bin/find \"$@\" | grep -v /a/status.json\nkill -KILL $$");
    assert_eq!(poll(&site, vec![known.clone()]).status, []);
    assert_eq!(poll(&site, vec![job]).status, [], "nor is the wrong one begun with");
    site.append("results/7/a/status.json", b"c\n");
    site.program("find", "/usr/bin/find \"$@\"\ncase \"$*\" in *status.json*) kill -KILL $$ ;; esac");
    assert_eq!(only(poll(&site, vec![known])).bytes, b"c\n", "the known one is read on");
}

#[test]
fn a_job_that_has_vanished_is_read_to_its_end() {
    let site = Site::new();
    site.write("results/7/status.json", "x\n");
    assert_eq!(poll(&site, vec![watched(&site, 7)]).status.len(), 1);
}

#[test]
fn without_the_scheduler_only_known_files_are_read() {
    let site = Site::new();
    let job = running(&site);
    site.write("results/7/status.json", "x\n");
    let known = Watched { status: vec![cursor(&only(poll(&site, vec![job])))], ..watched(&site, 7) };
    site.append("results/7/status.json", b"y\n");
    site.write("results/8/status.json", "z\n");
    site.write("squeue.rc", "1");
    let chunk = only(poll(&site, vec![known, watched(&site, 8)]));
    assert_eq!((chunk.key.as_str(), chunk.bytes.as_slice()), ("job-7", &b"y\n"[..]));
}

#[test]
fn a_hostile_directory_name_forges_nothing() {
    let site = Site::new();
    let job = running(&site);
    site.write("results/7/a\n1\t99\t9\tx/status.json", "forged\n");
    site.write("results/7/a b'\"$(x)/status.json", "honest\n");
    let chunk = only(poll(&site, vec![job]));
    assert_eq!(chunk.bytes, b"honest\n");
    assert_eq!(chunk.path, site.path("results/7/a b'\"$(x)/status.json"));
}

#[test]
fn a_path_that_is_no_remote_path_is_dropped_and_counted() {
    let site = Site::new();
    let job = running(&site);
    site.write("results/7/a%j/status.json", "x\n");
    let latin = site.file("results/7").join(OsStr::from_bytes(b"\xe9poque"));
    fs::create_dir(&latin).unwrap();
    fs::write(latin.join("status.json"), "x\n").unwrap();
    let answer = poll(&site, vec![job]);
    assert_eq!((answer.status, answer.dropped_rows), (vec![], 2));
}

#[test]
fn a_note_of_more_bytes_than_there_are_costs_no_other_job_its_answer() {
    let site = Site::new();
    site.write("queue", row(7, "RUNNING") + &row(8, "RUNNING"));
    for number in [7, 8] {
        let file = format!("results/{number}/status.json");
        site.write(&file, "x\n");
        let inode = fs::metadata(site.file(&file)).unwrap().ino();
        let text = if number == 7 { "99999999999999999999999" } else { "1" };
        site.write(&format!("state/{number}/status_from"), format!("{inode} {text} x\n"));
    }
    let mut chunks = poll(&site, vec![watched(&site, 7), watched(&site, 8)]).status;
    chunks.sort_by_key(|chunk| chunk.path.to_string());
    assert_eq!(chunks.iter().map(|chunk| chunk.note.unwrap().fresh_from).collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn a_file_of_an_impossible_time_costs_no_other_job_its_answer() {
    let site = Site::new();
    site.write("queue", row(7, "RUNNING") + &row(8, "RUNNING"));
    for number in [7, 8] {
        site.write(&format!("results/{number}/status.json"), "x\n");
    }
    // As tmpfs keeps it.
    site.program(
        "find",
        "set -o pipefail\n/usr/bin/find \"$@\" | sed -E '/results.7/s/[0-9]{10}[.][0-9]+/9223372036854775807.0/'",
    );
    let watch = |number| Watched { signs_of_life: Some(site.path("logs")), ..watched(&site, number) };
    let answer = poll(&site, vec![watch(7), watch(8)]);
    assert_eq!(answer.status.iter().map(|chunk| chunk.key.as_str()).collect::<Vec<_>>(), ["job-8"]);
    assert_eq!(answer.signs_of_life.keys().collect::<Vec<_>>(), ["job-8"]);
    assert_eq!(answer.dropped_rows, 2);
}

#[test]
fn a_thousand_files_that_grow_are_all_read_at_once() {
    let site = Site::patient();
    let jobs: Vec<Watched> = (1..=1000).map(|id| watched(&site, id)).collect();
    let rows: Vec<String> = (1..=1000).map(|id| row(id, "RUNNING")).collect();
    site.write("queue", rows.concat());
    let text = "x".repeat(230) + "\n";
    for id in 1..=1000 {
        site.write(&format!("results/{id}/status.json"), text.repeat(10));
    }
    let answer = site.run(&Poll {
        jobs,
        arrays: Vec::new(),
        status_bytes_per_file: 1024 * 1024,
        status_bytes_total: 8 * 1024 * 1024,
        others: None,
    });
    let read = answer.status.iter().filter(|chunk| chunk.complete && chunk.bytes.len() == 2310).count();
    assert_eq!(read, 1000);
}
