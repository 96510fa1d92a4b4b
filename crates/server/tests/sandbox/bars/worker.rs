//! A worker that sleeps past its leases and wakes up.

use std::{
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use crate::{
    bars::{Tally, all_ended_done, signal, size},
    cluster::sql,
    service::{Service, until},
};

/// A second worker process on the same database.
struct Second(Child);

impl Drop for Second {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
#[expect(clippy::print_stdout, reason = "shown with the test: the figures of docs/reliability.md")]
fn a_worker_that_wakes_up_past_its_lease_changes_nothing() {
    let service = Service::prepare(&[]);
    let settings = service.log.with_file_name("worker.toml");
    std::fs::write(&settings, "[worker]\nlease = \"10s\"\n").unwrap();
    let mut service = service;
    service.set("TAO_SLURM_CONFIG", settings.to_str().unwrap());
    service.spawn();
    let mut second = service.command(&["serve", "--role", "worker"]);
    let log = std::fs::File::create(service.log.with_file_name("second.log")).unwrap();
    let second = Second(second.stdout(Stdio::null()).stderr(log).spawn().unwrap());
    let pid = second.0.id().to_string();
    let tally = Tally::new(&service);
    let held = || {
        let leases = "select (select count(*) from jobs where lease_token is not null and lease_expires_at > now())
                           + (select count(*) from cluster_polls where lease_token is not null and lease_expires_at > now())";
        sql(&service.database_url, leases) != "0"
    };
    let (mut sent, mut slept) = (0, 0);
    while slept < size(2, 4) {
        for _ in 0..8 {
            service.submit(&tally.job(sent, "sleep 2"));
            sent += 1;
        }
        until("a lease", Duration::from_secs(30), held);
        signal("STOP", &pid);
        let asleep = Instant::now();
        until("its leases to be over", Duration::from_secs(20), || {
            asleep.elapsed() > Duration::from_secs(12)
        });
        signal("CONT", &pid);
        slept += 1;
    }
    until("all jobs to end", Duration::from_mins(3), || all_ended_done(&service, sent));
    let runs = tally.runs(&service, sent);
    assert!(runs.iter().all(|runs| *runs == 1), "{runs:?}");
    let back = "select count(*) from job_events a join job_events b on b.job_id = a.job_id and b.seq > a.seq
                where a.kind = 'transition' and b.kind = 'transition' and a.data->>'phase' = 'ended'";
    assert_eq!(sql(&service.database_url, back), "0", "nothing comes after the end of a job");
    let log = std::fs::read_to_string(service.log.with_file_name("second.log")).unwrap();
    let dropped = log.matches("was lost; its result is dropped").count();
    println!("{sent} jobs, a worker that slept {slept} times past its lease: {dropped} results dropped");
}
