//! Rows of all clusters that many requests need, cached for a moment.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use persistence::StoreError;

/// A value from the database that is read again when it is older than `max_age`.
pub(crate) struct Remembered<T> {
    max_age: Duration,
    last: Mutex<Option<(Instant, Arc<T>)>>,
}

impl<T> Remembered<T> {
    pub(crate) fn new(max_age: Duration) -> Self {
        Self { max_age, last: Mutex::new(None) }
    }

    pub(crate) async fn get(
        &self,
        read: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<Arc<T>, StoreError> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((at, value)) = last
            && at.elapsed() < self.max_age
        {
            return Ok(value);
        }
        let value = Arc::new(read.await?);
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) =
            Some((Instant::now(), Arc::clone(&value)));
        Ok(value)
    }
}
