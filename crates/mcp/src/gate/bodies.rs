//! Bodies of requests: their size, their time, and the memory of all of them together.

use std::{sync::Arc, time::Duration};

use axum::{
    body::{Body, HttpBody, to_bytes},
    extract::Request,
};
use tokio::{sync::Semaphore, time::timeout};

use super::refusal::Refusal;

/// The largest message: a job with its files.
const LARGEST: usize = 1024 * 1024;
/// All messages that arrive at the same time.
const ALL: usize = 32 * 1024 * 1024;
const UNIT: usize = 1024;
/// How long a message waits for others.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long it may take to arrive.
const LONGEST: Duration = Duration::from_secs(10);

#[derive(Clone)]
pub(super) struct Bodies {
    units: Arc<Semaphore>,
}

impl Bodies {
    pub(super) fn new() -> Self {
        Self { units: Arc::new(Semaphore::new(ALL / UNIT)) }
    }

    /// The request with its whole body.
    pub(super) async fn read(&self, request: Request) -> Result<Request, Refusal> {
        let (head, body) = request.into_parts();
        // A body without a size may become as large as any.
        let size =
            body.size_hint().exact().map_or(LARGEST, |size| usize::try_from(size).unwrap_or(usize::MAX));
        if size > LARGEST {
            return Err(Refusal::TOO_LARGE);
        }
        let units = u32::try_from(size.div_ceil(UNIT).max(1)).unwrap_or(u32::MAX);
        let share = Arc::clone(&self.units).acquire_many_owned(units);
        let share = timeout(PATIENCE, share).await.ok().and_then(Result::ok).ok_or(Refusal::BUSY)?;
        let bytes = timeout(LONGEST, to_bytes(body, LARGEST)).await.map_err(|_| Refusal::TOO_SLOW)?;
        let bytes = bytes.map_err(|error| {
            let is_too_large = std::error::Error::source(&error)
                .is_some_and(<dyn std::error::Error>::is::<http_body_util::LengthLimitError>);
            if is_too_large { Refusal::TOO_LARGE } else { Refusal::UNREADABLE }
        })?;
        let mut request = Request::from_parts(head, Body::from(bytes));
        // Given back when the request has been answered.
        request.extensions_mut().insert(Arc::new(share));
        Ok(request)
    }
}
