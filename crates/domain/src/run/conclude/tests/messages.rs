//! The message of a job that failed.

use super::*;

#[test]
fn the_message_has_the_exit_code_and_the_last_lines_of_the_log() {
    let err = "line 1\nline 2\nline 3\nline 4\nline 5\n\nValueError: bad \x1b[31mdata\n";
    let job = Case { code: Some(3), state: Some(SlurmState::Failed), err, ..Case::default() }.ended();
    let expected = "The job exited with code 3 (Slurm: FAILED). Not retried: the job's code or its \
                    specification is wrong. Last lines of main.err:\n\
                    line 2\nline 3\nline 4\nline 5\nValueError: bad \u{fffd}[31mdata";
    assert_eq!(job.message, expected);
    assert_eq!(job.run.exit, Some(ExitCode { code: 3, signal: 0 }));
}

/// A recorded failure, with the lines of a run before it.
const BAD_MOUNT: &str = "\
slurmstepd-node02: error: pyxis: --container-mounts: source path does not exist: /nope
slurmstepd-node02: error: pyxis: couldn't create enroot start configuration script
slurmstepd-node02: error: pyxis: printing enroot log file:
slurmstepd-node02: error: pyxis:     [INFO] Extracting squashfs filesystem...
srun: error: node02: task 0: Exited with exit code 1
slurmstepd-node02: error: pyxis:     Parallel unsquashfs: Using 2 processors
slurmstepd-node02: error: pyxis:     created 0 hardlinks
slurmstepd-node02: error: pyxis: container was not started successfully by another task
slurmstepd-node02: error: spank: required plugin spank_pyxis.so: task_init() failed with rc=-1
slurmstepd-node02: error: Failed to invoke spank plugin stack
";

fn failed(err: &'static str) -> Job {
    Case { code: Some(1), state: Some(SlurmState::Failed), err, ..Case::default() }.ended()
}

#[test]
fn the_cause_is_in_the_message_although_pyxis_cleans_up_after_it() {
    let expected = "The job exited with code 1 (Slurm: FAILED). Not retried: a path to mount into the container does \
                    not exist. Last lines of main.err:\n\
                    slurmstepd-node02: error: pyxis: --container-mounts: source path does not exist: /nope\n\
                    slurmstepd-node02: error: pyxis: couldn't create enroot start configuration script\n\
                    srun: error: node02: task 0: Exited with exit code 1";
    assert_eq!(failed(BAD_MOUNT).message, expected);
}

#[test]
fn a_cause_above_the_last_lines_is_quoted() {
    let job = failed("KeyError: 'train'\n1\n2\n3\n4\n5\n");
    let expected = "The job exited with code 1 (Slurm: FAILED). Not retried: the job's code or its specification is \
                    wrong. The log says: KeyError: 'train'\nLast lines of main.err:\n1\n2\n3\n4\n5";
    assert_eq!(job.message, expected);
    assert_eq!(job.attempt.unwrap().verdict.unwrap().line.as_deref(), Some("KeyError: 'train'"));
}

#[test]
fn the_cause_of_a_retry_is_quoted() {
    let case = Case {
        code: Some(1),
        state: Some(SlurmState::Failed),
        err: "curl: (6) Could not resolve host: r.io\n",
        ..Case::default()
    };
    let Ending::Retry { job, .. } = case.after(0) else { panic!("the registry may answer later") };
    let why = job.attempt.unwrap().verdict.unwrap().why;
    assert_eq!(
        job.message,
        format!("Attempt 1 failed. {why} The log says: curl: (6) Could not resolve host: r.io")
    );
}

#[test]
fn what_the_job_reported_ends_with_a_full_stop() {
    let mut job = Case { tao: true, word: Some("FAILURE"), ..Case::default() }.job();
    job.run.progress.message = Some("RuntimeError: the loss went away".to_owned());
    let exit = ExitRecord { slurm_id: SlurmJobId::new(7).unwrap(), restart: 0, code: 0, at: 0 };
    let markers = Markers { exit: Some(exit), started: Some(started()), ..Markers::default() };
    let found = Findings { markers: &markers, ..NOTHING };
    let Ending::Ended(job) = conclude(&job, &found, &Graces::default(), T0) else { panic!("it has ended") };
    let expected = "The job reported a failure: RuntimeError: the loss went away. Not retried: there is no sign of an \
                    infrastructure failure.";
    assert_eq!(job.message, expected);
}

#[test]
fn a_step_killed_for_its_memory_says_so() {
    let err = "slurmstepd: error: Exceeded job memory limit\nsrun: error: node01: task 0: Killed\n";
    let job = Case { code: Some(9), state: Some(SlurmState::Failed), err, ..Case::default() }.ended();
    assert!(
        job.message.contains("Not retried: the job used more memory than it requested. Last lines"),
        "{}",
        job.message
    );
}
