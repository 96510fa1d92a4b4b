//! After the last fault: everything has to come to its end, in a bounded time.

use std::{
    thread,
    time::{Duration, Instant},
};

use uuid::Uuid;

use crate::{
    callers::{cancel, pause},
    jobs::Wish,
    ledger::{Asked, Ledger, is_final},
    service::Service,
};

/// Waits until every job has ended, and says how long it took; wishes that nobody has answered are made again.
pub(crate) fn wait(service: &Service, ledger: &Ledger, bound: Duration, say: impl Fn(&str)) -> Duration {
    let began = Instant::now();
    let mut told = Instant::now();
    loop {
        let open: Vec<(Uuid, Asked)> = {
            let ledger = ledger.lock();
            let open = ledger.jobs.iter().filter(|(_, job)| !is_final(&job.status));
            open.map(|(id, job)| (*id, job.clone())).collect()
        };
        if open.is_empty() || began.elapsed() > bound {
            return began.elapsed();
        }
        if told.elapsed() > Duration::from_secs(10) {
            say(&ledger.progress());
            told = Instant::now();
        }
        service.spawn_all();
        for (id, job) in open {
            let status = service.get(&format!("/jobs/{id}/status"));
            if let Some(answer) = status.filter(|answer| answer.status == 200) {
                let status = answer.json()["status"].as_str().unwrap_or_default().to_owned();
                ledger.with(id, |job| job.status = status);
            }
            match job.wish {
                Wish::Cancel(_) if job.cancel_sent.is_some() && !job.cancel_answered => {
                    cancel(service, ledger, id);
                }
                // Who has not begun to pause by now lets it be.
                Wish::Pause(_) if job.pause_sent.is_some() => pause_on(service, ledger, id, &job),
                _ => {}
            }
        }
        thread::sleep(Duration::from_millis(500));
    }
}

/// Only what rests is sent on: a pause that was asked for may have come too late.
fn pause_on(service: &Service, ledger: &Ledger, id: Uuid, job: &Asked) {
    if job.status == "Paused" {
        pause(service, ledger, id, job);
    }
}
