//! What the results of jobs are found in: files, lines of logs, and the ends of logs.

use std::{fs, os::unix::fs::symlink, process::Command};

use remote::{Concluded, Concluding, JobLog, PartFound, RESULT_BYTES, ResultPart};

use crate::{
    conclude::{conclude, job},
    site::Site,
};

fn bytes(text: &str) -> PartFound {
    PartFound::Bytes(text.as_bytes().to_vec())
}

fn line(log: JobLog, prefix: &str) -> ResultPart {
    ResultPart::Line { log, prefix: prefix.to_owned() }
}

fn with(site: &Site, key: &str, results: Vec<ResultPart>) -> Concluding {
    fs::create_dir_all(site.file(&format!("state/{key}"))).unwrap();
    Concluding { results, ..job(site, key) }
}

fn read(site: &Site, results: Vec<ResultPart>) -> Vec<PartFound> {
    let [one] = conclude(site, vec![with(site, "a", results)]).try_into().unwrap();
    assert!(one.readable, "{one:?}");
    one.results.unwrap()
}

#[test]
fn each_kind_is_read_in_order() {
    let site = Site::new();
    site.write("results/a/eval/scores.json", "{\"a\": 1}\n");
    site.write("logs/a/main.out", "RESULT: 1\nRESULT: 2\nmore\n");
    site.write("logs/a/main.err", "loss=3\r");
    let parts = vec![
        ResultPart::Tail(JobLog::Err),
        ResultPart::File(site.path("results/a/eval/scores.json")),
        line(JobLog::Out, "RESULT:"),
        line(JobLog::Err, "RESULT:"),
        line(JobLog::File(site.path("logs/a/score/0.out")), "RESULT:"),
        ResultPart::Tail(JobLog::File(site.path("logs/a/score/0.err"))),
    ];
    site.write("logs/a/score/0.out", "RESULT: 4\n");
    let found = read(&site, parts);
    let of_batch = [bytes("loss=3\r"), bytes("{\"a\": 1}\n"), bytes("RESULT: 2\n"), PartFound::Missing];
    assert_eq!(found[..4], of_batch);
    assert_eq!(found[4..], [bytes("RESULT: 4\n"), PartFound::Missing]);
}

#[test]
fn a_prefix_is_a_text_and_begins_a_line() {
    let site = Site::new();
    let hostile = r#"a.*[x]^$\{}()|+?/"$HOME`'é "#;
    let log = format!(
        "ab[x]1\n {hostile}2\nprogress\r{hostile}3\r\n{hostile}4 \0 5\nend without a newline: {hostile}6"
    );
    site.write("logs/a/main.out", log);
    assert_eq!(read(&site, vec![line(JobLog::Out, hostile)]), [bytes(&format!("{hostile}4 \0 5\n"))]);
    site.write("logs/a/main.out", format!("progress\r{hostile}3\r\nnext"));
    assert_eq!(read(&site, vec![line(JobLog::Out, hostile)]), [bytes(&format!("{hostile}3\n"))]);
}

#[test]
fn without_a_log_nothing_is_found_in_it() {
    let site = Site::new();
    let found = read(&site, vec![line(JobLog::Out, "x"), ResultPart::Tail(JobLog::Err)]);
    assert_eq!(found, [PartFound::Missing, PartFound::Missing]);
}

#[test]
fn a_file_is_a_regular_one_in_the_results_directory() {
    let site = Site::new();
    site.write("results/a/x", "1");
    site.write("results/ab/x", "another job's");
    site.write("env/other", "SECRET=1");
    let at = |name: &str| site.file(&format!("results/a/{name}"));
    symlink(at("x"), at("inside")).unwrap();
    symlink(site.file("env/other"), at("outside")).unwrap();
    symlink(site.file("results/ab/x"), at("neighbour")).unwrap();
    symlink(site.file("env"), at("dir")).unwrap();
    symlink(at("nothing"), at("dangling")).unwrap();
    assert!(Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
    let names = ["x", "inside", "outside", "neighbour", "dir/other", "dangling", "pipe", "", "none"];
    let part = |name: &str| ResultPart::File(site.path(&format!("results/a/{name}")));
    let found = read(&site, names.map(part).to_vec());
    let odd = || PartFound::Odd;
    let expected = [bytes("1"), bytes("1"), odd(), odd(), odd(), odd(), odd(), odd(), PartFound::Missing];
    assert_eq!(found, expected);
}

#[test]
fn sizes_have_limits() {
    let site = Site::new();
    site.write("results/a/most", vec![b'1'; RESULT_BYTES - 1]);
    site.write("results/a/one", "1");
    site.write("results/a/more", "2");
    site.write("logs/a/main.out", [vec![b'\n'; 100], vec![b'x'; 2 * RESULT_BYTES]].concat());
    let file = |name: &str| ResultPart::File(site.path(&format!("results/a/{name}")));
    let parts =
        vec![file("most"), file("one"), file("more"), ResultPart::Tail(JobLog::Out), line(JobLog::Out, "x")];
    let found = read(&site, parts);
    let sizes = found.iter().map(|part| match part {
        PartFound::Bytes(bytes) => bytes.len(),
        _ => 0,
    });
    assert_eq!(sizes.collect::<Vec<_>>(), [RESULT_BYTES - 1, 1, 0, RESULT_BYTES + 1, 65 * 1024]);
    assert_eq!(found[2], PartFound::Large);
}

#[test]
fn what_has_no_room_in_one_answer_is_left_for_the_next() {
    let site = Site::new();
    let keys: Vec<String> = (0..30).map(|number| format!("j{number}")).collect();
    let jobs = keys.iter().map(|key| {
        let path = format!("results/{key}/big");
        site.write(&path, vec![b'1'; RESULT_BYTES]);
        with(&site, key, vec![ResultPart::File(site.path(&path))])
    });
    let concluded = conclude(&site, jobs.collect());
    assert!(concluded.iter().all(|one| one.readable));
    let whole = |one: &Concluded| match one.results.as_deref() {
        Some([PartFound::Bytes(bytes)]) => bytes.len() == RESULT_BYTES,
        _ => false,
    };
    let read: Vec<bool> = concluded.iter().map(whole).collect();
    assert_eq!(read, (0..30).map(|number| number < 16).collect::<Vec<_>>());
    assert!(concluded[16..].iter().all(|one| one.results.is_none()));
}

#[test]
fn a_file_that_hangs_leaves_only_its_own_job_unread() {
    let site = Site::new();
    site.program("timeout", "shift 3\nexec /usr/bin/timeout -k 1 3 \"$@\"");
    site.program("dd", "case $* in *results/a/*) exec sleep 100 ;; esac\nexec /usr/bin/dd \"$@\"");
    let jobs = ["a", "b"].map(|key| {
        let path = format!("results/{key}/x");
        site.write(&path, "1");
        with(&site, key, vec![ResultPart::File(site.path(&path))])
    });
    let [a, b] = conclude(&site, jobs.to_vec()).try_into().unwrap();
    assert_eq!((a.readable, a.results), (false, None));
    assert_eq!((b.readable, b.results), (true, Some(vec![bytes("1")])));
}

#[test]
fn a_full_disk_is_no_missing_result() {
    let site = Site::new();
    site.write("results/a/x", "1");
    site.program("dd", "exit 1");
    let one = with(&site, "a", vec![ResultPart::File(site.path("results/a/x"))]);
    let [a] = conclude(&site, vec![one]).try_into().unwrap();
    assert_eq!((a.readable, a.results), (false, None));
}
