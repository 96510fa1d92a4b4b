//! A database outage.

use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

use crate::{
    bars::{Tally, all_ended_done, jobs, pid_of, revive, signal, size},
    service::{Service, until},
};

#[test]
#[expect(clippy::print_stdout, reason = "shown with the test: the figures of docs/reliability.md")]
#[expect(clippy::disallowed_methods, reason = "callers are threads here, and wait for the given time")]
fn a_database_outage_loses_and_duplicates_no_accepted_job() {
    let (count, gone_for) = (size(30, 100), Duration::from_secs(size(10, 60)));
    let service = Service::start();
    let tally = Tally::new(&service);
    let port: u16 = service.url.rsplit_once(':').unwrap().1.parse().unwrap();
    let (next, refused, accepted) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let is_away = AtomicBool::new(false);
    let submit = || loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= count {
            return;
        }
        // Half of them come while it is away, however fast the others were.
        for _ in 0..6000 {
            if number < count / 2 || is_away.load(Ordering::Relaxed) {
                break;
            }
            thread::sleep(Duration::from_millis(50));
        }
        let mut job = tally.job(number, "true");
        // The id of the caller, so that the same request can be repeated. It must be new on the cluster.
        job["id"] = format!("{:08x}-{port:04x}-4000-8000-{number:012}", std::process::id()).into();
        loop {
            let answer = service.post("/jobs", &job.to_string());
            if answer.status == 201 || answer.status == 200 {
                accepted.fetch_add(1, Ordering::Relaxed);
                break;
            }
            assert_eq!(answer.status, 503, "{}", answer.text);
            assert_eq!(answer.content_type, "application/problem+json");
            assert_eq!(answer.json()["status"], 503);
            let wait: u64 =
                answer.retry_after.as_ref().and_then(|text| text.parse().ok()).expect("Retry-After");
            assert!((1..=60).contains(&wait), "{wait}");
            refused.fetch_add(1, Ordering::Relaxed);
            thread::sleep(Duration::from_secs(wait.min(5)));
        }
        thread::sleep(Duration::from_millis(100));
    };
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(submit);
        }
        until("a third of the jobs to be accepted", Duration::from_mins(1), || {
            accepted.load(Ordering::Relaxed) >= count / 3
        });
        signal("INT", &pid_of(&service.sandbox, "postgres.pid"));
        until("the database to be away", Duration::from_secs(30), || service.get("/readyz").status == 503);
        is_away.store(true, Ordering::Relaxed);
        let gone = Instant::now();
        until("the time to pass", gone_for + Duration::from_secs(30), || {
            assert_eq!(service.get("/livez").status, 200);
            gone.elapsed() >= gone_for
        });
        revive(&service.sandbox);
    });
    let back = Instant::now();
    until("all jobs to end", Duration::from_mins(5), || all_ended_done(&service, count));
    assert_eq!(jobs(&service).len() as u64, count, "each request is one job");
    let runs = tally.runs(&service, count);
    assert!(runs.iter().all(|runs| *runs == 1), "{runs:?}");
    let refused = refused.load(Ordering::Relaxed);
    assert!(refused > 0, "no request was rejected");
    println!(
        "{count} jobs, database gone for {gone_for:?}: {refused} refusals, all done {:?} later",
        back.elapsed()
    );
}
