//! Submissions that are killed on their way: the remote sbatch, the SSH session, the service itself.

use std::time::{Duration, Instant};

use crate::{
    bars::{Tally, all_ended_done, on_login_hosts, signal, size},
    cluster::sql,
    service::{Service, until},
};

/// A small generator of its own, so that a run can be told from another by its seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
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
fn submissions_killed_midway_are_executed_exactly_once() {
    let kills = size(40, 500);
    let mut service = Service::start();
    let tally = Tally::new(&service);
    let (mut dice, began) = (Dice(0x5eed ^ u64::from(std::process::id())), Instant::now());
    let (mut sbatches, mut sessions, mut services, mut sent) = (0, 0, 0, 0);
    while sbatches + sessions + services < kills {
        for _ in 0..2 {
            let answer = service.post("/jobs", &tally.job(sent, "true").to_string());
            assert_eq!(answer.status, 201, "{}", answer.text);
            sent += 1;
        }
        let mut found = Vec::new();
        let patience = Instant::now();
        while found.is_empty() && patience.elapsed() < Duration::from_secs(3) {
            found = on_login_hosts(&service.sandbox, "sbatch");
        }
        if found.is_empty() {
            continue;
        }
        std::thread::sleep(Duration::from_micros(dice.roll(12_000)));
        match dice.roll(20) {
            0..=13 => {
                let living = on_login_hosts(&service.sandbox, "sbatch");
                kill(&living);
                sbatches += living.len() as u64;
            }
            14..=18 => {
                // The sessions' own sshds: those whose parent listens.
                kill(&on_login_hosts(&service.sandbox, "sshd"));
                kill(&on_login_hosts(&service.sandbox, "sshd-session"));
                sessions += 1;
            }
            _ => {
                service.kill();
                service.spawn();
                services += 1;
            }
        }
    }
    let uncertain =
        || sql(&service.database_url, "select count(*) from jobs where phase = 'submit_uncertain'");
    println!(
        "killed midway: {sbatches} sbatch, {sessions} sessions, {services} services; {sent} jobs; {} uncertain",
        uncertain()
    );
    if size(0, 1) == 0 {
        // Nothing that was killed can have an effect any more, and the short form does not wait for the proof of it.
        until("all commands to be over", Duration::from_secs(30), || {
            on_login_hosts(&service.sandbox, "sbatch").is_empty()
        });
        let past =
            "update slurm_metadata set sent_at = sent_at - interval '200 s' where slurm_job_id is null";
        sql(&service.database_url, past);
    }
    until("all jobs to end", Duration::from_mins(15), || {
        if size(0, 1) == 0 {
            let past = "update slurm_metadata m set sent_at = sent_at - interval '200 s' from jobs j
                        where j.id = m.job_id and j.phase = 'submit_uncertain' and m.slurm_job_id is null
                          and m.sent_at > now() - interval '150 s' and m.sent_at < now() - interval '5 s'";
            sql(&service.database_url, past);
        }
        all_ended_done(&service, sent)
    });
    let runs = tally.runs(&service, sent);
    let not_once: Vec<_> = runs.iter().enumerate().filter(|(_, runs)| **runs != 1).collect();
    assert!(not_once.is_empty(), "jobs that did not run exactly once: {not_once:?}");
    println!("{sent} jobs ran once each, in {:?}", began.elapsed());
}
