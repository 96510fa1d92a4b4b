//! The memory of large bodies and answers. An answer that its client does not read stays in memory until the connection ends, so
//! all of them together have a limit.

use std::{sync::Arc, time::Duration};

use axum::{
    body::{Body, Bytes, to_bytes},
    response::{IntoResponse, Response},
};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use crate::problem::{Kind, Problem};

/// Smaller ones are not counted: all connections together have little of them.
const SMALL: u64 = 64 * 1024;
/// The size that one permit stands for.
const UNIT: usize = 1024;
/// How long a body waits for others.
const PATIENCE: Duration = Duration::from_secs(2);

/// A part of the memory; none for something small.
pub(crate) type Share = Option<OwnedSemaphorePermit>;

pub(crate) struct Buffers {
    units: Arc<Semaphore>,
    all: u32,
}

impl Buffers {
    pub(crate) fn new(bytes: usize) -> Self {
        let units = bytes.div_ceil(UNIT).min(Semaphore::MAX_PERMITS);
        Self { units: Arc::new(Semaphore::new(units)), all: u32::try_from(units).unwrap_or(u32::MAX) }
    }

    /// The number of units; none for something small. Something larger than everything takes everything.
    fn units(&self, bytes: u64) -> Option<u32> {
        let units = bytes.div_ceil(UNIT as u64);
        is_large(bytes).then(|| u32::try_from(units).unwrap_or(u32::MAX).min(self.all))
    }

    /// Waits for other bodies and answers to go.
    pub(crate) async fn share(&self, bytes: u64) -> Result<Share, Problem> {
        let Some(units) = self.units(bytes) else { return Ok(None) };
        let share = Arc::clone(&self.units).acquire_many_owned(units);
        timeout(PATIENCE, share).await.ok().and_then(Result::ok).map(Some).ok_or_else(busy)
    }

    /// Does not wait, because the bytes are in memory already.
    pub(crate) fn share_now(&self, bytes: u64) -> Result<Share, Problem> {
        let Some(units) = self.units(bytes) else { return Ok(None) };
        Arc::clone(&self.units).try_acquire_many_owned(units).map(Some).map_err(|_| busy())
    }
}

/// Whether it is counted.
pub(crate) fn is_large(bytes: u64) -> bool {
    bytes > SMALL
}

fn busy() -> Problem {
    let detail = "Too many large bodies are on their way. Nothing was changed. Try again.";
    Problem::unavailable(Kind::BuffersBusy, detail)
}

/// Gives the share back when the last byte of the answer was written, not when the connection has taken over the body.
pub(crate) async fn keep(response: Response, share: Share) -> Response {
    let Some(share) = share else { return response };
    let (head, body) = response.into_parts();
    match to_bytes(body, usize::MAX).await {
        Ok(bytes) => Response::from_parts(head, Body::from(Bytes::from_owner(Kept { bytes, _share: share }))),
        Err(error) => {
            tracing::error!(%error, "cannot read an answer of our own");
            Problem::internal().into_response()
        }
    }
}

struct Kept {
    bytes: Bytes,
    _share: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Kept {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn small_ones_are_free_and_a_huge_one_waits_for_all_others() {
        let buffers = Buffers::new(1024 * 1024);
        assert!(buffers.share_now(SMALL).unwrap().is_none());
        let half = buffers.share_now(512 * 1024).unwrap();
        assert!(buffers.share_now(u64::MAX).is_err());
        drop(half);
        let all = buffers.share(u64::MAX).await.unwrap();
        assert!(all.is_some() && buffers.share_now(SMALL + 1).is_err());
        drop(all);
        assert!(buffers.share_now(SMALL + 1).unwrap().is_some());
    }
}
