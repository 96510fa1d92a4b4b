//! Records the requests to the service and the injected faults.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Mutex, MutexGuard, PoisonError},
};

use uuid::Uuid;

use crate::{
    jobs::{Kind, OwnerAction},
    now,
};

/// A job that the service has accepted or may have accepted.
#[derive(Debug, Clone)]
pub(crate) struct JobRecord {
    pub(crate) kind: Kind,
    /// The job that must succeed first.
    pub(crate) needs: Option<Uuid>,
    pub(crate) action: OwnerAction,
    /// When the service answered 201.
    pub(crate) accepted: Option<f64>,
    /// When a cancellation was first sent.
    pub(crate) cancel_sent: Option<f64>,
    pub(crate) cancel_answered: bool,
    pub(crate) pause_sent: Option<f64>,
    pub(crate) resumed: bool,
    /// The newest known status.
    pub(crate) status: String,
}

/// A period in which a fault was on.
#[derive(Debug, Clone)]
pub(crate) struct FaultPeriod {
    pub(crate) fault: String,
    pub(crate) from: f64,
    pub(crate) to: Option<f64>,
}

#[derive(Debug)]
pub(crate) struct Ledger {
    began: f64,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
pub(crate) struct Inner {
    pub(crate) jobs: HashMap<Uuid, JobRecord>,
    pub(crate) faults: Vec<FaultPeriod>,
    /// Requests refused with a 4xx status. All our requests are valid, so there should be none.
    pub(crate) refused: Vec<String>,
}

impl Ledger {
    pub(crate) fn new(began: f64) -> Self {
        Self { began, inner: Mutex::default() }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn with<T>(&self, id: Uuid, change: impl FnOnce(&mut JobRecord) -> T) -> Option<T> {
        self.lock().jobs.get_mut(&id).map(change)
    }

    /// Records that a fault is on from now; returns the index for [`Ledger::fault_ended`].
    pub(crate) fn fault_started(&self, fault: &str) -> usize {
        let mut inner = self.lock();
        inner.faults.push(FaultPeriod { fault: fault.to_owned(), from: now(), to: None });
        inner.faults.len() - 1
    }

    pub(crate) fn fault_ended(&self, index: usize) {
        self.lock().faults[index].to = Some(now());
    }

    /// The number of active jobs.
    pub(crate) fn active(&self) -> usize {
        self.lock().jobs.values().filter(|job| !is_final(&job.status)).count()
    }

    pub(crate) fn progress(&self) -> String {
        let inner = self.lock();
        let mut statuses: BTreeMap<&str, usize> = BTreeMap::new();
        for job in inner.jobs.values() {
            *statuses.entry(&job.status).or_default() += 1;
        }
        let statuses: Vec<String> =
            statuses.iter().map(|(status, count)| format!("{count} {status}")).collect();
        let active: Vec<&str> =
            inner.faults.iter().filter(|one| one.to.is_none()).map(|one| one.fault.as_str()).collect();
        let so_far = inner.faults.len();
        format!(
            "{} jobs: {}; {so_far} faults so far, active: {}",
            inner.jobs.len(),
            statuses.join(", "),
            active.join(" ")
        )
    }

    pub(crate) fn faults(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for one in &self.lock().faults {
            *counts.entry(one.fault.clone()).or_default() += 1;
        }
        counts
    }

    pub(crate) fn began(&self) -> f64 {
        self.began
    }
}

pub(crate) fn is_final(status: &str) -> bool {
    matches!(status, "Done" | "Error" | "Canceled")
}
