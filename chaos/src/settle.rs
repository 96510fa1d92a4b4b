//! After the last fault: every job must finish in a bounded time.

use std::{
    thread,
    time::{Duration, Instant},
};

use uuid::Uuid;

use crate::{
    callers::{cancel, pause},
    jobs::OwnerAction,
    ledger::{JobRecord, Ledger, is_final},
    service::Service,
};

/// Waits until every job has finished and returns how long it took. Repeats cancellations that got no answer.
pub(crate) fn wait(service: &Service, ledger: &Ledger, bound: Duration, say: impl Fn(&str)) -> Duration {
    let began = Instant::now();
    let mut reported_at = Instant::now();
    loop {
        let open: Vec<(Uuid, JobRecord)> = {
            let ledger = ledger.lock();
            let open = ledger.jobs.iter().filter(|(_, job)| !is_final(&job.status));
            open.map(|(id, job)| (*id, job.clone())).collect()
        };
        if open.is_empty() || began.elapsed() > bound {
            return began.elapsed();
        }
        if reported_at.elapsed() > Duration::from_secs(10) {
            say(&ledger.progress());
            reported_at = Instant::now();
        }
        service.spawn_all();
        for (id, job) in open {
            let status = service.get(&format!("/jobs/{id}/status"));
            if let Some(answer) = status.filter(|answer| answer.status == 200) {
                let status = answer.json()["status"].as_str().unwrap_or_default().to_owned();
                ledger.with(id, |job| job.status = status);
            }
            match job.action {
                OwnerAction::Cancel(_) if job.cancel_sent.is_some() && !job.cancel_answered => {
                    cancel(service, ledger, id);
                }
                // A pause that was not sent before is not sent now.
                OwnerAction::Pause(_) if job.pause_sent.is_some() => resume_paused(service, ledger, id, &job),
                _ => {}
            }
        }
        thread::sleep(Duration::from_millis(500));
    }
}

/// Resumes a job only if it is paused: the pause may have come too late.
fn resume_paused(service: &Service, ledger: &Ledger, id: Uuid, job: &JobRecord) {
    if job.status == "Paused" {
        pause(service, ledger, id, job);
    }
}
