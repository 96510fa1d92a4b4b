//! A job whose cached image cannot be used.

use test_case::test_case;

use super::*;
use crate::{FileFault, ImageRef, LaunchImage, cached_file_fault};

const FILE: &str = "/lustre/sqsh/r.io~a=1.sqsh";

/// A job that failed with the file of this image.
fn failed(image: &str, err: &'static str) -> Ending {
    let case = Case { code: Some(1), state: Some(SlurmState::Failed), err, ..Case::default() };
    let mut job = case.job();
    job.spec.image = Some(image.parse().unwrap());
    let attempt = job.attempt.as_mut().unwrap();
    attempt.nodes = Some("node01".to_owned());
    attempt.image = matches!(job.spec.image, Some(ImageRef::Registry { .. }))
        .then(|| LaunchImage { image: FILE.parse().unwrap(), note: None });
    let exit = ExitRecord { slurm_id: SlurmJobId::new(7).unwrap(), restart: 0, code: 1, at: 0 };
    let markers = Markers { exit: Some(exit), started: Some(started()), ..Markers::default() };
    let found = Findings { markers: &markers, err_tail: err.as_bytes(), ..NOTHING };
    conclude(&job, &found, &Graces::default(), T0)
}

#[test_case("slurmstepd-node01: error: pyxis:     FATAL ERROR: Can't find a SQUASHFS superblock\n", FileFault::Damaged; "damaged")]
#[test_case("slurmstepd-node01: error: pyxis:     [ERROR] No such file or directory: /lustre/sqsh/x\n", FileFault::Missing; "purged")]
fn a_cached_file_that_cannot_be_used_is_named_and_the_job_is_retried_anywhere(
    err: &'static str,
    fault: FileFault,
) {
    let Ending::Retry { job, .. } = failed("r.io/a:1", err) else { panic!("the file can be made again") };
    assert_eq!(cached_file_fault(&job), Some((&FILE.parse().unwrap(), fault)));
    assert!(job.message.contains("; the cache is checked first."), "{}", job.message);
    assert!(job.failures[0].nodes.is_empty(), "no node is at fault: {:?}", job.failures);
}

#[test]
fn a_file_that_the_job_names_is_not_retried_nor_is_it_a_file_of_the_cache() {
    let err = "slurmstepd-node01: error: pyxis:     [ERROR] Invalid image format: /lustre/x.sqsh\n";
    let Ending::Ended(job) = failed("/lustre/x.sqsh", err) else { panic!("it is the same anywhere") };
    assert!(job.message.contains("Not retried: the file of the image is damaged"), "{}", job.message);
    assert_eq!(cached_file_fault(&job), None);
}

#[test]
fn another_fault_does_not_touch_the_cache() {
    let Ending::Ended(job) = failed("r.io/a:1", "ValueError: no\n") else { panic!("it is the job's own") };
    assert_eq!(cached_file_fault(&job), None);
}
