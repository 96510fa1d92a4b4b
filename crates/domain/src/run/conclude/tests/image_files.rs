//! A job whose cached image cannot be used.

use test_case::test_case;

use super::*;
use crate::{FileFault, ImageRef, LaunchImage, cached_file_faults};

const FILE: &str = "/lustre/sqsh/r.io~a=1.sqsh";

const MISSING: &str =
    "slurmstepd-node01: error: pyxis:     [ERROR] No such file or directory: /lustre/sqsh/x\n";

/// A job that failed with the file of this image.
fn failed(image: &str, err: &'static str) -> Ending {
    failed_after(image, &Findings { err_tail: err.as_bytes(), ..NOTHING }, |_| ())
}

/// The same, with these findings and after this change. Its program has begun if the findings say so.
fn failed_after(image: &str, found: &Findings<'_>, change: impl FnOnce(&mut Job)) -> Ending {
    let case = Case { code: Some(1), state: Some(SlurmState::Failed), ..Case::default() };
    let mut job = case.job();
    let requested: ImageRef = image.parse().unwrap();
    job.spec.image = Some(requested.clone());
    job.run.nodes = Some("node01".to_owned());
    let attempt = job.attempt.as_mut().unwrap();
    if matches!(requested, ImageRef::Registry { .. }) {
        attempt.images = vec![LaunchImage { requested, image: FILE.parse().unwrap(), note: None }];
    }
    change(&mut job);
    let restart = job.run.requeues;
    let exit = ExitRecord { slurm_id: SlurmJobId::new(7).unwrap(), restart, code: 1, at: 0 };
    let started = StartedMarker { restart, ..started() };
    let markers = Markers { exit: Some(exit), started: Some(started), ..found.markers.clone() };
    conclude(&job, &Findings { markers: &markers, ..*found }, &Graces::default(), T0)
}

#[test_case("slurmstepd-node01: error: pyxis:     FATAL ERROR: Can't find a SQUASHFS superblock\n", FileFault::Damaged; "damaged")]
#[test_case(MISSING, FileFault::Missing; "purged")]
fn a_cached_file_that_cannot_be_used_is_named_and_the_job_is_retried_anywhere(
    err: &'static str,
    fault: FileFault,
) {
    let Ending::Retry { job, .. } = failed("r.io/a:1", err) else { panic!("the file can be made again") };
    assert_eq!(cached_file_faults(&job), [(&FILE.parse().unwrap(), fault)]);
    assert!(job.message.contains("; the cache is checked first."), "{}", job.message);
    assert!(job.failures[0].nodes.is_empty(), "no node is at fault: {:?}", job.failures);
}

#[test]
fn a_file_that_the_job_names_is_not_retried_nor_is_it_a_file_of_the_cache() {
    let err = "slurmstepd-node01: error: pyxis:     [ERROR] Invalid image format: /lustre/x.sqsh\n";
    let Ending::Ended(job) = failed("/lustre/x.sqsh", err) else { panic!("it is the same anywhere") };
    assert!(job.message.contains("Not retried: the file of the image is damaged"), "{}", job.message);
    assert_eq!(cached_file_faults(&job), []);
}

#[test]
fn another_fault_does_not_touch_the_cache() {
    let Ending::Ended(job) = failed("r.io/a:1", "ValueError: no\n") else { panic!("it is the job's own") };
    assert_eq!(cached_file_faults(&job), []);
}

const BEGUN: Markers = Markers { begun: true, ..NO_MARKERS };

#[test]
fn a_line_that_the_program_may_have_printed_does_not_touch_the_cache() {
    let line = Findings { err_tail: MISSING.as_bytes(), ..NOTHING };
    let requeued = |job: &mut Job| job.run.requeues = 1;
    let long_ago = |job: &mut Job| job.finishing_since = Some(T0 - TimeDelta::hours(1));
    let endings = [
        failed_after("r.io/a:1", &Findings { markers: &BEGUN, ..line }, |_| ()),
        failed_after("r.io/a:1", &line, requeued),
        failed_after("r.io/a:1", &Findings { readable: false, ..line }, long_ago),
        failed_after(
            "r.io/a:1",
            &Findings { err_tail: b"", out_tail: MISSING.as_bytes(), ..NOTHING },
            |_| (),
        ),
    ];
    let spared = |ending: &Ending| matches!(ending, Ending::Ended(job) if cached_file_faults(job).is_empty());
    assert_eq!(endings.each_ref().map(spared), [true; 4]);
}

#[test]
fn of_several_components_the_log_of_the_one_that_ended_the_job_counts() {
    let ended = |err_tail: &str| EndedWith {
        is_service: false,
        name: "score".parse().unwrap(),
        what: "has ended with code 1".to_owned(),
        out_tail: Vec::new(),
        err_tail: err_tail.as_bytes().to_vec(),
    };
    let faults = |ended: &EndedWith| {
        let found = Findings { ended_with: Some(ended), role_tails: MISSING.as_bytes(), ..NOTHING };
        match failed_after("r.io/a:1", &found, |_| ()) {
            Ending::Retry { job, .. } => cached_file_faults(&job).len(),
            Ending::Ended(_) => 0,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!((faults(&ended(MISSING)), faults(&ended("cannot cd to /nowhere\n"))), (1, 0));
}

#[test]
fn a_node_that_does_not_read_what_another_reads_is_at_fault() {
    let err = "\
slurmstepd-node02: error: pyxis: child 4032 failed with error code: 1
slurmstepd-node02: error: pyxis: failed to create container filesystem for image: /lustre/sqsh/x
slurmstepd-node02: error: pyxis:     [ERROR] No such file or directory: /lustre/sqsh/x
";
    let found = Findings { markers: &BEGUN, err_tail: err.as_bytes(), ..NOTHING };
    let two_nodes = |job: &mut Job| job.run.nodes = Some("node[01-02]".to_owned());
    for image in ["r.io/a:1", "/lustre/sqsh/x"] {
        let Ending::Retry { job, .. } = failed_after(image, &found, two_nodes) else { panic!("{image}") };
        assert_eq!((cached_file_faults(&job).len(), job.failures[0].nodes.len()), (0, 1));
        assert!(job.message.contains("excluding node02"), "{}", job.message);
    }
}

#[test]
fn a_node_that_finds_no_cached_file_twice_is_at_fault() {
    let Ending::Retry { job: first, .. } = failed("r.io/a:1", MISSING) else { panic!("the first") };
    let found = Findings { err_tail: MISSING.as_bytes(), ..NOTHING };
    let again = failed_after("r.io/a:1", &found, |job| job.failures = first.failures);
    let Ending::Retry { job: second, .. } = again else { panic!("{again:?}") };
    assert_eq!(second.failures[1].nodes, ["node01".parse().unwrap()], "the file was seen whole in between");
    assert!(second.message.contains("excluding node01"), "{}", second.message);
}
