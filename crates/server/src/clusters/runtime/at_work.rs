//! Everything in this process that has something of its own for each cluster.

use std::{collections::HashSet, sync::Arc};

use domain::ClusterName;
use worker::{SshLink, Timeline, Worker};

use crate::{
    clusters::{links::Links, log_links::LogLinks, operations::Operations},
    config::ClusterConfig,
    wiring::target,
};

pub(crate) struct AtWork {
    /// None in a process that serves the API only.
    pub(crate) worker: Option<Arc<Worker<SshLink>>>,
    pub(crate) links: Arc<Links>,
    pub(crate) logs: Arc<LogLinks>,
    pub(crate) ops: Arc<Operations>,
    pub(crate) timeline: Timeline,
}

impl AtWork {
    /// Lets clusters go and takes others in, each with its incarnation. The others are not disturbed.
    pub(super) fn change(&self, gone: &HashSet<ClusterName>, come: Vec<(ClusterConfig, i64)>) {
        if gone.is_empty() && come.is_empty() {
            return;
        }
        let of_worker = come.iter().filter(|_| self.worker.is_some());
        let targets: Vec<_> = of_worker
            .map(|(config, incarnation)| target(config, Some(*incarnation), &self.timeline))
            .collect();
        let configs: Vec<ClusterConfig> = come.into_iter().map(|(config, _)| config).collect();
        self.logs.change(gone, &configs, &self.timeline);
        self.ops.change(gone, &configs);
        self.links.change(gone, &configs, &targets);
        if let Some(worker) = &self.worker {
            worker.change(gone, targets);
        }
    }
}
