//! Statements that lost against another one.

use std::future::Future;

use crate::error::StoreError;

/// So often in all.
const TRIES: usize = 3;

/// Makes a statement again that the database rolled back for no fault of its own.
pub(crate) async fn again<T, F>(statement: impl Fn() -> F) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    for _ in 1..TRIES {
        match statement().await {
            Err(error) if error.is_rolled_back() => {
                tracing::debug!(error = ?error, "the database rolled a statement back; making it again");
            }
            result => return result,
        }
    }
    statement().await
}
