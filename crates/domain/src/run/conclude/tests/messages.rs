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
fn of_several_reported_failures_the_first_one_is_in_the_message() {
    let job = Case { tao: true, word: Some("RUNNING"), ..Case::default() }.job();
    let lines = "{\"status\":\"FAILURE\",\"message\":\"RuntimeError: the loss went away\"}\n\
                 {\"status\":\"FAILURE\",\"message\":\"train action failed for dino\"}\n";
    let status = [StatusChunk {
        key: String::new(),
        path: "/lustre/r/status.json".parse().unwrap(),
        inode: 1,
        size: lines.len() as u64,
        written_at: 0,
        note: None,
        start_offset: 0,
        skipped: 0,
        before: Vec::new(),
        bytes: lines.into(),
        restarted: false,
        complete: true,
    }];
    let exit = ExitRecord { slurm_id: SlurmJobId::new(7).unwrap(), restart: 0, code: 0, at: 0 };
    let markers = Markers { exit: Some(exit), started: Some(started()), ..Markers::default() };
    let found = Findings { markers: &markers, status: &status, ..NOTHING };
    let Ending::Ended(job) = conclude(&job, &found, &Graces::default(), T0) else { panic!("it has ended") };
    let expected = "The job reported a failure: RuntimeError: the loss went away. Not retried: there is no sign of an \
                    infrastructure failure.";
    assert_eq!(job.message, expected);
    assert_eq!(job.run.progress.message.as_deref(), Some("train action failed for dino"));
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

#[test]
fn a_job_of_several_programs_says_which_one_ended_it_and_shows_its_log() {
    let mut job = Case { state: Some(SlurmState::Failed), ..Case::default() }.job();
    job.run.exit = Some(ExitCode { code: 126, signal: 0 });
    let ended_with = |is_service, out: &[u8]| {
        remote::EndedWith {
        is_service,
        name: "model".parse().unwrap(),
        what: "is not ready after 600 s".to_owned(),
        out_tail: out.to_vec(),
        err_tail: b"slurmstepd-node01: error: *** STEP 7.0 ON node01 CANCELLED AT 2026-11-27T19:46:05 ***\nTerminated\n".to_vec(),
    }
    };
    let ended = |ended_with: &remote::EndedWith| {
        let exit = ExitRecord { slurm_id: SlurmJobId::new(7).unwrap(), restart: 0, code: 126, at: 0 };
        let markers = Markers { exit: Some(exit), ..NO_MARKERS };
        let found = Findings {
            ended_with: Some(ended_with),
            markers: &markers,
            err_tail: b"tao-slurm: its words\n",
            ..NOTHING
        };
        let ending = conclude(&job, &found, &Graces::default(), T0 + TimeDelta::hours(1));
        let Ending::Ended(job) = ending else { panic!("{ending:?}") };
        (job.message, job.attempt.unwrap().verdict.unwrap().rule)
    };
    let (message, rule) = ended(&ended_with(true, b"loading shard 3\n"));
    assert_eq!(
        message,
        "The service model is not ready after 600 s (Slurm: FAILED). Not retried: a service of the job failed, and \
         there is no sign of an infrastructure failure. Last lines of model/0.out:\nloading shard 3"
    );
    assert_eq!(rule.as_deref(), Some("service-failed"));
    let (message, rule) = ended(&ended_with(true, b"curl: (6) Could not resolve host: r.io\n"));
    assert!(message.starts_with("The service model is not ready"), "{message}");
    assert_eq!(rule.as_deref(), Some("service-failed"), "only the ends of all logs decide");
    let (message, rule) = ended(&ended_with(false, b""));
    assert!(message.starts_with("The step model is not ready after 600 s (Slurm: FAILED)."), "{message}");
    assert!(message.ends_with("Last lines of main.err:\ntao-slurm: its words"), "{message}");
    assert_eq!(rule, None);
}
