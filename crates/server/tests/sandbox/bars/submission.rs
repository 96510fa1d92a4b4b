//! Submissions that are interrupted: the remote sbatch, the SSH session or the service is killed.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    time::{Duration, Instant},
};

use crate::{
    bars::{Tally, all_ended_done, on_login_hosts, signal, size},
    cluster::{Sandbox, sql},
    service::{Service, until},
};

/// A small random number generator.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

/// A wrapper of sbatch on the login hosts. It starts the real sbatch and kills it and itself after up to 12 ms, up to a
/// maximum number of times, unless sbatch has answered.
struct Killer {
    program: PathBuf,
    log: PathBuf,
}

impl Killer {
    fn new(sandbox: &Sandbox, budget: u64) -> Self {
        let (program, log) = (sandbox.file("bin/sbatch"), sandbox.file("lustre/killed-sbatches"));
        fs::write(&log, "").unwrap();
        fs::set_permissions(&log, fs::Permissions::from_mode(0o666)).unwrap();
        let text = format!(
            "#!/bin/bash\n\
             [[ $(hostname) == login* ]] || exec /usr/bin/sbatch \"$@\"\n\
             (($(wc -l </lustre/killed-sbatches) < {budget})) || exec /usr/bin/sbatch \"$@\"\n\
             /usr/bin/sbatch \"$@\" &\n\
             pid=$!\n\
             sleep \"$(printf '0.%03d' $((RANDOM % 13)))\"\n\
             kill -KILL $pid 2>/dev/null\n\
             wait $pid\n\
             code=$?\n\
             ((code == 137)) || exit $code\n\
             echo $pid >>/lustre/killed-sbatches\n\
             kill -KILL $$\n"
        );
        let new = program.with_extension("new");
        fs::write(&new, text).unwrap();
        fs::set_permissions(&new, fs::Permissions::from_mode(0o755)).unwrap();
        fs::rename(&new, &program).unwrap();
        Self { program, log }
    }

    fn killed(&self) -> u64 {
        fs::read_to_string(&self.log).unwrap().lines().count() as u64
    }
}

impl Drop for Killer {
    fn drop(&mut self) {
        fs::remove_file(&self.program).unwrap();
    }
}

fn kill(pids: &[u32]) {
    for pid in pids {
        signal("KILL", &pid.to_string());
    }
}

#[test]
#[expect(clippy::print_stdout, reason = "shown with the test: the figures of docs/reliability.md")]
#[expect(clippy::disallowed_methods, reason = "a kill at a random moment is a sleep of random length")]
fn submissions_killed_midway_run_exactly_once() {
    let kills = size(40, 500);
    let mut service = Service::start();
    let (tally, killer) = (Tally::new(&service), Killer::new(&service.sandbox, kills));
    let (mut dice, began) = (Dice(0x5eed ^ u64::from(std::process::id())), Instant::now());
    let (mut sessions, mut services, mut sent) = (0, 0, 0);
    while killer.killed() < kills {
        assert!(sent < 6 * kills, "few are killed: {} of {sent}", killer.killed());
        for _ in 0..10 {
            let answer = service.post("/jobs", &tally.job(sent, "true").to_string());
            assert_eq!(answer.status, 201, "{}", answer.text);
            sent += 1;
        }
        std::thread::sleep(Duration::from_millis(dice.roll(1000)));
        match dice.roll(10) {
            0..=2 => {
                kill(&on_login_hosts(&service.sandbox, "sshd"));
                kill(&on_login_hosts(&service.sandbox, "sshd-session"));
                sessions += 1;
            }
            3 => {
                service.kill();
                service.spawn();
                services += 1;
            }
            _ => {}
        }
    }
    println!(
        "killed: {} sbatches, {sessions} times the sessions, {services} times the service",
        killer.killed()
    );
    until("all jobs to end", Duration::from_mins(15), || {
        if size(0, 1) == 0 {
            // A submission that was killed that long ago has no effect; the short form does not wait for the proof.
            let past = "update slurm_metadata m set submit_fence_shut_at = submit_fence_shut_at - interval '200 s' from jobs j
                        where j.id = m.job_id and j.phase = 'submit_uncertain' and m.slurm_job_id is null
                          and m.submit_fence_shut_at > now() - interval '150 s' and m.submit_fence_shut_at < now() - interval '5 s'";
            sql(&service.database_url, past);
        }
        all_ended_done(&service, sent)
    });
    let runs = tally.runs(&service, sent);
    let not_once: Vec<_> = runs.iter().enumerate().filter(|(_, runs)| **runs != 1).collect();
    assert!(not_once.is_empty(), "jobs that did not run exactly once: {not_once:?}");
    println!("{sent} jobs ran once each, in {:?}", began.elapsed());
}
