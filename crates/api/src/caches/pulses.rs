//! When each cluster last answered a poll, as the database says it.
//!
//! Hundreds of dashboards ask for statuses every few seconds, and all of them need the same few rows. They are
//! remembered for half a second: much shorter than any poll interval, so no answer changes its meaning.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use domain::ClusterName;
use persistence::{Pulse, Store, StoreError};

const FRESH_FOR: Duration = Duration::from_millis(500);

pub(crate) type Pulses = Arc<HashMap<ClusterName, Pulse>>;

#[derive(Default)]
pub(crate) struct PulseCache(Mutex<Option<(Instant, Pulses)>>);

impl PulseCache {
    pub(crate) async fn get(&self, store: &Store) -> Result<Pulses, StoreError> {
        if let Some(pulses) = self.fresh() {
            return Ok(pulses);
        }
        let pulses = Arc::new(store.pulses().await?);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), Arc::clone(&pulses)));
        Ok(pulses)
    }

    fn fresh(&self) -> Option<Pulses> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.as_ref().filter(|(at, _)| at.elapsed() < FRESH_FOR).map(|(_, pulses)| Arc::clone(pulses))
    }
}
