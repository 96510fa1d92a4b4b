//! What the clusters last said about their partitions, as the database remembers it.
//!
//! Every job that is sent is held against it. It changes every few minutes, so one look serves a second.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use domain::{
    Cluster, ClusterName, JobSpec, Violation,
    limits::{self, PartitionLimits},
};
use persistence::{KnownPartitions, Store, StoreError};

use crate::state::App;

const FRESH_FOR: Duration = Duration::from_secs(1);

type Known = Arc<HashMap<ClusterName, KnownPartitions>>;

#[derive(Default)]
pub(crate) struct PartitionsCache(Mutex<Option<(Instant, Known)>>);

impl PartitionsCache {
    pub(crate) async fn get(&self, store: &Store) -> Result<Known, StoreError> {
        if let Some(known) = self.fresh() {
            return Ok(known);
        }
        let known = Arc::new(store.partitions().await?);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), Arc::clone(&known)));
        Ok(known)
    }

    fn fresh(&self) -> Option<Known> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.as_ref().filter(|(at, _)| at.elapsed() < FRESH_FOR).map(|(_, known)| Arc::clone(known))
    }
}

/// What of a job the partitions of its cluster cannot give, as far as they are known.
pub(crate) async fn beyond_limits(
    app: &App,
    cluster: &Cluster,
    spec: &JobSpec,
) -> Result<Vec<Violation>, StoreError> {
    let known = app.partitions().get(&app.store).await?;
    let said = known.get(&cluster.name).and_then(|known| known.limits(app.clock.now()));
    Ok(limits::check(spec, &PartitionLimits { max_time_hours: cluster.max_time_hours, reported: said }))
}
