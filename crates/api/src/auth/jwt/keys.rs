//! The issuer's keys as they were read last, and when they are read anew.

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

/// What becomes of reading the keys: a JSON Web Key Set, or why there is none, for the log.
pub type KeyReading = Pin<Box<dyn Future<Output = Result<Vec<u8>, String>> + Send>>;

/// Where the issuer's keys are. A trait, because this crate calls nobody over HTTP.
pub trait KeySource: Send + Sync + 'static {
    /// Reads the document as it is now.
    fn read(&self) -> KeyReading;
}

/// When keys are read anew.
#[derive(Debug, Clone, Copy)]
pub struct KeyPace {
    /// When they are so old: a key that the issuer has taken back is not known for longer, unless the issuer is away.
    pub keep: Duration,
    /// Never more often, whatever tokens name.
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
    /// Whoever holds it reads the keys; the others wait for him, or go by what there is.
    last: Mutex<Option<Attempt>>,
}

impl Keys {
    pub(super) fn new(source: Arc<dyn KeySource>, pace: KeyPace) -> Self {
        // What does not exist cannot be seen to rise.
        for outcome in ["read", "failed"] {
            ::metrics::counter!("jwks_reads_total", "outcome" => outcome).increment(0);
        }
        Self { source, pace, known: RwLock::default(), last: Mutex::default() }
    }

    /// The key of a token. Keys that are old, or none of which is meant, are read anew first.
    pub(super) async fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Result<DecodingKey, Refusal> {
        let known = self.known();
        let is_fresh = known.as_ref().is_some_and(|known| known.read_at.elapsed() < self.pace.keep);
        match known.as_ref().map_or(Found::Nothing, |known| known.set.find(id, algorithm)) {
            Found::OfAnotherKind if is_fresh => return Err(Refusal::Algorithm),
            Found::Key(key) if is_fresh => return Ok(key.clone()),
            // Somebody reads them already, and old ones do meanwhile.
            Found::Key(key) if self.last.try_lock().is_err() => return Ok(key.clone()),
            Found::Key(_) | Found::OfAnotherKind | Found::Nothing => {}
        }
        let has_succeeded = self.refresh(known.as_ref()).await;
        let known = self.known();
        match known.as_ref().map_or(Found::Nothing, |known| known.set.find(id, algorithm)) {
            Found::Key(key) => Ok(key.clone()),
            Found::OfAnotherKind => Err(Refusal::Algorithm),
            Found::Nothing if has_succeeded => Err(Refusal::UnknownKey),
            // The key may be one that the issuer has made since: nobody knows, so it is not the token's fault.
            Found::Nothing => Err(Refusal::KeysUnavailable),
        }
    }

    /// Reads the keys anew, unless somebody has since `seen`, or it is too early. True when the last reading succeeded.
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
        // First, so that one who gives up in the middle has had his turn, too.
        *last = Some(Attempt { at, has_succeeded: false });
        let read = self.source.read().await;
        let set = read
            .and_then(|document| KeySet::parse(&document).map_err(|error| format!("what was read {error}")));
        let has_succeeded = set.is_ok();
        let outcome = if has_succeeded { "read" } else { "failed" };
        ::metrics::counter!("jwks_reads_total", "outcome" => outcome).increment(1);
        match set {
            Ok(set) => self.keep(set),
            Err(error) => tracing::warn!(
                error,
                has_earlier_ones = self.known().is_some(),
                "the keys of the issuer of tokens cannot be read; what was read before stays in force"
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
