//! What was asked of the service and done to it, written down as it happens.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Mutex, MutexGuard, PoisonError},
};

use uuid::Uuid;

use crate::{
    jobs::{Kind, Wish},
    now,
};

/// A job that the service has accepted, or may have.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) kind: Kind,
    pub(crate) wish: Wish,
    /// When the service said 201.
    pub(crate) accepted: Option<f64>,
    /// When a cancellation was first sent, whatever came back.
    pub(crate) cancel_sent: Option<f64>,
    pub(crate) cancel_answered: bool,
    pub(crate) pause_sent: Option<f64>,
    pub(crate) resumed: bool,
    /// The newest status that anybody saw.
    pub(crate) status: String,
}

/// A time in which something was broken.
#[derive(Debug, Clone)]
pub(crate) struct Broken {
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
    pub(crate) jobs: HashMap<Uuid, Asked>,
    pub(crate) broken: Vec<Broken>,
    /// Requests that were refused for good, which none of ours deserves.
    pub(crate) refused: Vec<String>,
}

impl Ledger {
    pub(crate) fn new(began: f64) -> Self {
        Self { began, inner: Mutex::default() }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn with<T>(&self, id: Uuid, change: impl FnOnce(&mut Asked) -> T) -> Option<T> {
        self.lock().jobs.get_mut(&id).map(change)
    }

    /// Notes that something is broken from now on; the place is for [`Ledger::mended`].
    pub(crate) fn broken(&self, fault: &str) -> usize {
        let mut inner = self.lock();
        inner.broken.push(Broken { fault: fault.to_owned(), from: now(), to: None });
        inner.broken.len() - 1
    }

    pub(crate) fn mended(&self, place: usize) {
        self.lock().broken[place].to = Some(now());
    }

    /// How many of our jobs are under way.
    pub(crate) fn live(&self) -> usize {
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
        let broken: Vec<&str> =
            inner.broken.iter().filter(|one| one.to.is_none()).map(|one| one.fault.as_str()).collect();
        let so_far = inner.broken.len();
        format!(
            "{} jobs: {}; {so_far} faults, now: {}",
            inner.jobs.len(),
            statuses.join(", "),
            broken.join(" ")
        )
    }

    pub(crate) fn faults(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for one in &self.lock().broken {
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
