//! The callers: they submit, cancel and pause jobs, and retry like a good client, because the API is killed meanwhile.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use rand::{Rng, SeedableRng, rngs::StdRng};
use uuid::Uuid;

use crate::{
    jobs::{OwnerAction, Planned, plan},
    ledger::{JobRecord, Ledger, is_final},
    now,
    service::Service,
};

/// The most active jobs; this machine cannot run more in time.
const MAX_ACTIVE: usize = 60;
const PAUSE: Duration = Duration::from_millis(300);

#[derive(Debug, Clone)]
pub(crate) struct Callers {
    pub(crate) service: Arc<Service>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) over: Arc<AtomicBool>,
    pub(crate) run: String,
    /// The mean time between two jobs.
    pub(crate) every: Duration,
}

impl Callers {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Submits jobs until the run ends. Repeats each submission with the same id until it is accepted.
    pub(crate) fn submit(&self, seed: u64) {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut before = None;
        while !self.is_over() {
            if self.ledger.active() >= MAX_ACTIVE {
                thread::sleep(PAUSE);
                continue;
            }
            let job = plan(&mut rng, &self.run, before);
            self.submit_one(&job);
            before = Some(job.id);
            thread::sleep(self.every.mul_f64(rng.random_range(0.1..1.9)));
        }
    }

    fn submit_one(&self, job: &Planned) {
        let record = JobRecord {
            kind: job.kind,
            needs: job.needs,
            action: job.action,
            accepted: None,
            cancel_sent: None,
            cancel_answered: false,
            pause_sent: None,
            resumed: false,
            status: "unanswered".to_owned(),
        };
        self.ledger.lock().jobs.insert(job.id, record);
        let body = job.body.to_string();
        loop {
            match self.service.post("/jobs", &body) {
                Some(answer) if matches!(answer.status, 200 | 201) => {
                    self.ledger.with(job.id, |job| {
                        job.accepted = Some(now());
                        "Pending".clone_into(&mut job.status);
                    });
                    return;
                }
                Some(answer) if (400..500).contains(&answer.status) && answer.status != 429 => {
                    let mut ledger = self.ledger.lock();
                    ledger.refused.push(format!("POST /jobs: {} {}", answer.status, answer.text));
                    ledger.jobs.remove(&job.id);
                    return;
                }
                // 5xx or no answer: repeat the request with the same id, as a client does.
                _ => thread::sleep(PAUSE),
            }
        }
    }

    /// Cancels and pauses jobs as planned, and records the status of all jobs.
    pub(crate) fn act(&self) {
        while !self.is_over() {
            self.act_once();
            thread::sleep(PAUSE);
        }
    }

    fn act_once(&self) {
        record_statuses(&self.service, &self.ledger);
        let due: Vec<(Uuid, JobRecord)> = {
            let ledger = self.ledger.lock();
            ledger
                .jobs
                .iter()
                .map(|(id, job)| (*id, job.clone()))
                .filter(|(_, job)| !is_final(&job.status))
                .collect()
        };
        for (id, job) in due {
            let Some(accepted) = job.accepted else { continue };
            match job.action {
                OwnerAction::Cancel(after) if !job.cancel_answered && now() - accepted >= after => {
                    cancel(&self.service, &self.ledger, id);
                }
                OwnerAction::Pause(after) if now() - accepted >= after => {
                    pause(&self.service, &self.ledger, id, &job);
                }
                _ => {}
            }
        }
    }
}

pub(crate) fn cancel(service: &Service, ledger: &Ledger, id: Uuid) {
    ledger.with(id, |job| job.cancel_sent.get_or_insert_with(now).to_owned());
    let answered = service.post(&format!("/jobs/{id}/cancel"), "");
    if answered.is_some_and(|answer| matches!(answer.status, 200 | 202)) {
        ledger.with(id, |job| job.cancel_answered = true);
    }
}

/// Pauses a job, and resumes it once it is paused.
pub(crate) fn pause(service: &Service, ledger: &Ledger, id: Uuid, job: &JobRecord) {
    if job.resumed {
        return;
    }
    if job.pause_sent.is_none() || (job.status != "Paused" && job.status != "Pausing") {
        ledger.with(id, |job| job.pause_sent.get_or_insert_with(now).to_owned());
        service.post(&format!("/jobs/{id}/pause"), "");
    } else if job.status == "Paused"
        && service
            .post(&format!("/jobs/{id}/resume"), "")
            .is_some_and(|answer| matches!(answer.status, 200 | 202))
    {
        ledger.with(id, |job| job.resumed = true);
    }
}

/// Records the status of every active job.
pub(crate) fn record_statuses(service: &Service, ledger: &Ledger) {
    let mut page = String::new();
    loop {
        let Some(answer) = service.get(&format!("/jobs?limit=200{page}")) else { return };
        let list = answer.json();
        let Some(jobs) = list["jobs"].as_array() else { return };
        let mut inner = ledger.lock();
        for found in jobs {
            let id = found["id"].as_str().and_then(|id| id.parse::<Uuid>().ok());
            let status = found["status"].as_str();
            if let (Some(id), Some(status)) = (id, status)
                && let Some(job) = inner.jobs.get_mut(&id)
                && job.accepted.is_some()
            {
                status.clone_into(&mut job.status);
            }
        }
        match list["next_page_token"].as_str() {
            // Jobs on older pages have finished, or are queried one by one at the end.
            Some(token) if page.is_empty() => page = format!("&page_token={token}"),
            _ => return,
        }
    }
}
