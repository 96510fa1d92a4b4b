//! Hearing of clusters that come, change and go.

use std::{sync::Arc, time::Duration};

use persistence::ClusterListener;
use tokio_util::sync::CancellationToken;

use super::Clusters;

/// A word that was lost is made good by a look at least this often; files of keys say none at all.
const SWEEP: Duration = Duration::from_secs(5);

impl Clusters {
    /// Goes on until it is told to stop. A database that is away is waited for with the clusters as they were.
    pub(crate) async fn follow(self: Arc<Self>, stop: CancellationToken) {
        let mut listener: Option<ClusterListener> = None;
        while !stop.is_cancelled() {
            if listener.is_none() {
                let opened = self.store.listen_clusters().await;
                listener =
                    opened.inspect_err(|error| tracing::warn!(%error, "cannot listen for clusters")).ok();
            }
            // After the ear is open: nothing falls between.
            if let Err(error) = self.refresh().await {
                tracing::warn!(%error, "cannot read the clusters that are kept; trying again");
            }
            let heard = async {
                match &mut listener {
                    Some(ear) => ear.next().await,
                    None => std::future::pending().await,
                }
            };
            let is_deaf = tokio::select! {
                heard = heard => heard.is_err(),
                () = tokio::time::sleep(SWEEP) => false,
                () = stop.cancelled() => return,
            };
            if is_deaf {
                listener = None;
                stop.run_until_cancelled(tokio::time::sleep(SWEEP)).await;
            }
        }
    }
}
