//! The programs as text.

use std::{
    io::Write,
    process::{Command, Stdio},
};

use remote::{
    Allocations, Cancel, CheckImages, Checkpoints, Conclude, Exclude, Locate, NodeHealth, Partitions, Poll,
    Purge, ReadLogs, RemoteCommand, Remove, Requeued, SubmitBatch, TestOnly,
};

fn programs() -> Vec<&'static str> {
    vec![
        SubmitBatch::new(vec![]).render().program,
        Locate { jobs: vec![], since_unix: 0 }.render().program,
        Poll { jobs: vec![], arrays: vec![], status_bytes_per_file: 0, status_bytes_total: 0, others: None }
            .render()
            .program,
        Conclude { jobs: vec![], tail_bytes: 0, status_bytes_total: 0 }.render().program,
        Cancel::default().render().program,
        CheckImages::default().render().program,
        Remove::default().render().program,
        Partitions.render().program,
        TestOnly { script: None, paths: vec![] }.render().program,
        crate::preflight::question(true).render().program,
        crate::install_credentials::entry("a", "b", "c").render().program,
        Checkpoints::default().render().program,
        Exclude::default().render().program,
        NodeHealth::default().render().program,
        Purge::default().render().program,
        Requeued::default().render().program,
        Allocations::default().render().program,
        ReadLogs { questions: vec![] }.render().program,
    ]
}

#[test]
fn bash_accepts_every_program() {
    for program in programs() {
        let mut bash = Command::new("bash").arg("-n").stdin(Stdio::piped()).spawn().unwrap();
        bash.stdin.take().unwrap().write_all(program.as_bytes()).unwrap();
        assert!(bash.wait().unwrap().success(), "{program}");
    }
}

#[test]
fn shellcheck_accepts_every_program() {
    for program in programs() {
        let mut check = Command::new("shellcheck");
        // SC2317: the common parts have functions that not every program needs.
        check.args(["--shell=bash", "--exclude=SC2317", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut check = check.spawn().expect("shellcheck is installed: apt-get install shellcheck");
        check.stdin.take().unwrap().write_all(program.as_bytes()).unwrap();
        let said = check.wait_with_output().unwrap();
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stdout));
    }
}

#[test]
fn every_program_fits_into_one_argument() {
    // MAX_ARG_STRLEN of Linux is 128 KiB, and the transport adds its own words.
    assert!(programs().iter().all(|program| program.len() < 40 * 1024));
}
