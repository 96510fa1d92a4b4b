//! Keeping a lease while the cluster takes its time.

use std::{future::Future, pin::pin, time::Duration};

use persistence::{Lease, Store};

/// Runs `work` and extends the lease every third of its time meanwhile.
///
/// A lease that cannot be kept does not stop the work: what it has begun on the cluster goes on anyway, and its
/// record will be refused, so that the next holder finds the truth by looking.
pub(crate) async fn keep_alive<T>(
    store: &Store,
    lease: &Lease,
    duration: Duration,
    work: impl Future<Output = T>,
) -> T {
    let mut work = pin!(work);
    loop {
        match tokio::time::timeout(duration / 3, &mut work).await {
            Ok(done) => return done,
            Err(_) => {
                if let Err(error) = store.extend(lease, duration).await {
                    tracing::warn!(error = %error, "a lease could not be extended");
                }
            }
        }
    }
}
