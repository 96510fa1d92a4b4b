//! Keeping a lease while the cluster takes its time.

use std::{future::Future, pin::pin, time::Duration};

use persistence::StoreError;

/// Runs `work` and extends its lease every third of the lease's time meanwhile.
///
/// A lease that cannot be kept does not stop the work: what it has begun on the cluster goes on anyway, and its
/// record will be refused, so that the next holder finds the truth by looking.
pub(crate) async fn keep_alive<T, E>(
    duration: Duration,
    extend: impl Fn() -> E,
    work: impl Future<Output = T>,
) -> T
where
    E: Future<Output = Result<(), StoreError>>,
{
    let mut work = pin!(work);
    loop {
        match tokio::time::timeout(duration / 3, &mut work).await {
            Ok(done) => return done,
            Err(_) => {
                if let Err(error) = extend().await {
                    tracing::warn!(error = %error, "a lease could not be extended");
                }
            }
        }
    }
}
