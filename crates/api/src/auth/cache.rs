//! Tokens that were looked up a moment ago.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use chrono::TimeDelta;
use domain::Timestamp;
use persistence::{Store, StoreError, Token};

/// How long a revocation may take to be felt.
const FRESH_FOR: Duration = Duration::from_secs(5);
/// How exactly the last use is known.
const NOTED_EVERY: TimeDelta = TimeDelta::minutes(1);
/// Far above the number of clients, far below what would be felt in memory.
const MOST: usize = 1024;

/// Remembers tokens for a few seconds. Unknown ones are not remembered, so a flood of guesses cannot push out
/// the good ones, and a new token works at once.
#[derive(Default)]
pub(crate) struct TokenCache(Mutex<HashMap<[u8; 32], (Instant, Token)>>);

impl TokenCache {
    pub(crate) async fn find(
        &self,
        store: &Store,
        hash: &[u8; 32],
        now: Timestamp,
    ) -> Result<Option<Token>, StoreError> {
        if let Some(token) = self.fresh(hash) {
            return Ok(Some(token));
        }
        let found = store.find_token(hash).await?;
        if let Some(token) = &found {
            self.remember(*hash, token.clone());
            // Here, and so not with every request. Nobody is refused because it could not be noted.
            if token.is_good(now)
                && token.last_used_at.is_none_or(|at| now - at > NOTED_EVERY)
                && let Err(error) = store.note_use(token.id).await
            {
                tracing::warn!(%error, "cannot note the use of a token");
            }
        }
        Ok(found)
    }

    fn fresh(&self, hash: &[u8; 32]) -> Option<Token> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(hash).filter(|(at, _)| at.elapsed() < FRESH_FOR).map(|(_, token)| token.clone())
    }

    fn remember(&self, hash: [u8; 32], token: Token) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST {
            known.retain(|_, (at, _)| at.elapsed() < FRESH_FOR);
        }
        if known.len() < MOST {
            known.insert(hash, (Instant::now(), token));
        }
    }
}
