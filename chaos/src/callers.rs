//! Those who send jobs and change their minds: as stubborn as a good client, since the API is killed under them.

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
    jobs::{Planned, Wish, plan},
    ledger::{Asked, Ledger, is_final},
    now,
    service::Service,
};

/// More jobs under way than this machine runs in time say nothing new.
const MOST_LIVE: usize = 60;
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

    /// Sends jobs until it is over; one that was begun is sent until it is accepted, always under its own id.
    pub(crate) fn submit(&self, seed: u64) {
        let mut rng = StdRng::seed_from_u64(seed);
        while !self.is_over() {
            if self.ledger.live() >= MOST_LIVE {
                thread::sleep(PAUSE);
                continue;
            }
            self.send(&plan(&mut rng, &self.run));
            thread::sleep(self.every.mul_f64(rng.random_range(0.1..1.9)));
        }
    }

    fn send(&self, job: &Planned) {
        let asked = Asked {
            kind: job.kind,
            wish: job.wish,
            accepted: None,
            cancel_sent: None,
            cancel_answered: false,
            pause_sent: None,
            resumed: false,
            status: "unanswered".to_owned(),
        };
        self.ledger.lock().jobs.insert(job.id, asked);
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
                // 5xx, or nobody: the same again, as a client does with the id of its own.
                _ => thread::sleep(PAUSE),
            }
        }
    }

    /// Carries out what the owners of jobs wish, and keeps an eye on all of them.
    pub(crate) fn wish(&self) {
        while !self.is_over() {
            self.wish_once();
            thread::sleep(PAUSE);
        }
    }

    fn wish_once(&self) {
        look_at_all(&self.service, &self.ledger);
        let due: Vec<(Uuid, Asked)> = {
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
            match job.wish {
                Wish::Cancel(after) if !job.cancel_answered && now() - accepted >= after => {
                    cancel(&self.service, &self.ledger, id);
                }
                Wish::Pause(after) if now() - accepted >= after => {
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

/// Pauses a job, and once it rests sends it on.
pub(crate) fn pause(service: &Service, ledger: &Ledger, id: Uuid, job: &Asked) {
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

/// Notes the status of every job that is under way.
pub(crate) fn look_at_all(service: &Service, ledger: &Ledger) {
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
            // Whoever is on the older pages has ended long ago, or is asked about by itself at the end.
            Some(token) if page.is_empty() => page = format!("&page_token={token}"),
            _ => return,
        }
    }
}
