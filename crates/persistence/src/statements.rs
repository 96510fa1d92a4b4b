//! Running statements again: after a rollback, or item by item when the database refuses a value.

use std::{future::Future, slice};

use uuid::Uuid;

use crate::error::{Result, StoreError};

/// How often a statement is tried in all.
const TRIES: usize = 3;

/// Runs a statement again when the database rolled it back in favor of another one.
pub(crate) async fn retry_rolled_back<T, F>(statement: impl Fn() -> F) -> Result<T>
where
    F: Future<Output = Result<T>>,
{
    for _ in 1..TRIES {
        match statement().await {
            Err(error) if error.is_rolled_back() => {
                tracing::debug!(error = ?error, "the database rolled a statement back; retrying it");
            }
            result => return result,
        }
    }
    statement().await
}

/// Stores items with one statement and returns the ids of those that were stored. When the database refuses a value, each
/// item is stored on its own: one bad item does not hold up the others. `log_refused` logs the bad ones.
pub(crate) async fn store_all<'a, I, F>(
    items: &'a [I],
    store: impl Fn(&'a [I]) -> F,
    log_refused: impl Fn(&I, &StoreError),
) -> Result<Vec<Uuid>>
where
    F: Future<Output = Result<Vec<Uuid>>>,
{
    match retry_rolled_back(|| store(items)).await {
        Err(error) if error.is_about_the_data() => {}
        together => return together,
    }
    let mut stored = Vec::new();
    for item in items {
        match retry_rolled_back(|| store(slice::from_ref(item))).await {
            Ok(ids) => stored.extend(ids),
            Err(error) if error.is_about_the_data() => log_refused(item, &error),
            Err(error) => return Err(error),
        }
    }
    Ok(stored)
}
