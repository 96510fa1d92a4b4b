//! A short-lived cache of token look-ups.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use chrono::TimeDelta;
use domain::Timestamp;
use persistence::{Store, StoreError, Token};

/// `last_used_at` is exact to this much.
const NOTED_EVERY: TimeDelta = TimeDelta::minutes(1);
/// Far above the number of clients, and small in memory.
const MOST: usize = 1024;

/// Caches tokens for a few seconds. Unknown tokens are not cached: guesses cannot displace good tokens, and a new
/// token works at once.
pub(crate) struct TokenCache {
    /// A revocation takes effect within this time.
    memory: Duration,
    known: Mutex<HashMap<[u8; 32], (Instant, Token)>>,
    /// Held by the one look-up that serves all streams. Its holder must be driven to its end, because the others wait for it.
    pub(super) asking: tokio::sync::Mutex<()>,
}

impl TokenCache {
    pub(crate) fn new(memory: Duration) -> Self {
        Self { memory, known: Mutex::default(), asking: tokio::sync::Mutex::default() }
    }

    pub(super) async fn find(
        &self,
        store: &Store,
        hash: &[u8; 32],
        now: Timestamp,
        at_most: Duration,
    ) -> Result<Option<Token>, StoreError> {
        match self.fresh(hash, at_most) {
            Some(token) => Ok(Some(token)),
            None => self.ask(store, hash, now).await,
        }
    }

    async fn ask(&self, store: &Store, hash: &[u8; 32], now: Timestamp) -> Result<Option<Token>, StoreError> {
        let found = store.find_token(hash).await?;
        if found.is_none() {
            self.known().remove(hash);
        }
        if let Some(token) = &found {
            self.remember(*hash, token.clone());
            // Here, not in each request. A failure to record the use refuses no caller.
            if token.is_good(now)
                && token.last_used_at.is_none_or(|at| now - at > NOTED_EVERY)
                && let Err(error) = store.record_use(token.id).await
            {
                tracing::warn!(%error, "cannot record the last use of a token");
            }
        }
        Ok(found)
    }

    pub(super) fn fresh(&self, hash: &[u8; 32], at_most: Duration) -> Option<Token> {
        self.known().get(hash).filter(|(at, _)| at.elapsed() < at_most).map(|(_, token)| token.clone())
    }

    fn known(&self) -> MutexGuard<'_, HashMap<[u8; 32], (Instant, Token)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember(&self, hash: [u8; 32], token: Token) {
        let mut known = self.known();
        if known.len() >= MOST {
            known.retain(|_, (at, _)| at.elapsed() < self.memory);
        }
        if known.len() < MOST {
            known.insert(hash, (Instant::now(), token));
        }
    }
}
