//! The issuer's keys, and when they are read again.

use std::{
    pin::Pin,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use jsonwebtoken::{Algorithm, DecodingKey};
use tokio::{sync::Mutex, time::Instant};

use super::{
    key_set::{Found, KeySet},
    refusal::Refusal,
};

/// The JSON Web Key Set, or the reason for the log.
pub type KeyReading = Pin<Box<dyn Future<Output = Result<Vec<u8>, String>> + Send>>;

/// Fetches the issuer's keys. A trait, because this crate makes no HTTP requests.
pub trait KeySource: Send + Sync + 'static {
    /// Reads the current document.
    fn read(&self) -> KeyReading;
}

/// When keys are read again.
#[derive(Debug, Clone, Copy)]
pub struct KeyPace {
    /// The maximum age. A key that the issuer withdraws is used at most this much longer, unless the issuer is unreachable.
    pub keep: Duration,
    /// The minimum time between two reads, whatever `kid` tokens name.
    pub pause: Duration,
}

struct Known {
    set: KeySet,
    read_at: Instant,
}

#[derive(Clone, Copy)]
struct Attempt {
    at: Instant,
    has_succeeded: bool,
}

pub(super) struct Keys {
    source: Arc<dyn KeySource>,
    pace: KeyPace,
    known: RwLock<Option<Arc<Known>>>,
    /// Held while the keys are read. Other requests wait, or use the keys that are there.
    last: Mutex<Option<Attempt>>,
}

impl Keys {
    pub(super) fn new(source: Arc<dyn KeySource>, pace: KeyPace) -> Self {
        // Prometheus shows an increase only of series that exist.
        for outcome in ["read", "failed"] {
            ::metrics::counter!("tao_slurm_jwks_reads_total", "outcome" => outcome).increment(0);
        }
        Self { source, pace, known: RwLock::default(), last: Mutex::default() }
    }

    /// The key of a token. Reads the key set again first if it is old or does not contain the key.
    pub(super) async fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Result<DecodingKey, Refusal> {
        let known = self.known();
        let is_fresh = known.as_ref().is_some_and(|known| known.read_at.elapsed() < self.pace.keep);
        match known.as_ref().map_or(Found::Nothing, |known| known.set.find(id, algorithm)) {
            Found::OfAnotherKind if is_fresh => return Err(Refusal::Algorithm),
            Found::Key(key) if is_fresh => return Ok(key.clone()),
            // A read is under way; the old key still serves.
            Found::Key(key) if self.last.try_lock().is_err() => return Ok(key.clone()),
            Found::Key(_) | Found::OfAnotherKind | Found::Nothing => {}
        }
        let has_succeeded = self.refresh(known.as_ref()).await;
        let known = self.known();
        match known.as_ref().map_or(Found::Nothing, |known| known.set.find(id, algorithm)) {
            Found::Key(key) => Ok(key.clone()),
            Found::OfAnotherKind => Err(Refusal::Algorithm),
            Found::Nothing if has_succeeded => Err(Refusal::UnknownKey),
            // The issuer may have created the key since, so the token is not at fault.
            Found::Nothing => Err(Refusal::KeysUnavailable),
        }
    }

    /// Reads the key set again, unless another request has replaced `seen` or the last read is too recent. True when the
    /// last read succeeded.
    async fn refresh(&self, seen: Option<&Arc<Known>>) -> bool {
        let mut last = self.last.lock().await;
        let is_newer = match (self.known(), seen) {
            (Some(known), Some(seen)) => !Arc::ptr_eq(&known, seen),
            (known, _) => known.is_some(),
        };
        if is_newer {
            return true;
        }
        if let Some(last) = *last
            && last.at.elapsed() < self.pace.pause
        {
            return last.has_succeeded;
        }
        let at = Instant::now();
        // Recorded first, so that an aborted read also counts for the pause.
        *last = Some(Attempt { at, has_succeeded: false });
        let read = self.source.read().await;
        let set = read
            .and_then(|document| KeySet::parse(&document).map_err(|error| format!("the document {error}")));
        let has_succeeded = set.is_ok();
        let outcome = if has_succeeded { "read" } else { "failed" };
        ::metrics::counter!("tao_slurm_jwks_reads_total", "outcome" => outcome).increment(1);
        match set {
            Ok(set) => self.keep(set),
            Err(error) => tracing::warn!(
                error,
                has_earlier_ones = self.known().is_some(),
                "cannot read the token issuer's keys; the earlier keys stay in use"
            ),
        }
        *last = Some(Attempt { at, has_succeeded });
        has_succeeded
    }

    fn known(&self) -> Option<Arc<Known>> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn keep(&self, set: KeySet) {
        let known = Arc::new(Known { set, read_at: Instant::now() });
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = Some(known);
    }
}

#[cfg(test)]
mod tests;
