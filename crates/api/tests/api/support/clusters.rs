//! What the clusters and the connections to them say, in the test's hands.

use std::sync::Mutex;

use api::{ClusterLinks, LinkReport};
use domain::ClusterName;

/// What the connections say of themselves.
#[derive(Default)]
pub(crate) struct FakeLinks(pub(crate) Mutex<Vec<LinkReport>>);

impl ClusterLinks for FakeLinks {
    fn links(&self, _: &ClusterName) -> Vec<LinkReport> {
        self.0.lock().unwrap().clone()
    }
}
