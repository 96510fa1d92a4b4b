//! Secrets at rest: XChaCha20-Poly1305 with a fresh nonce for each, bound to the row they belong to.

use std::fmt;

use chacha20poly1305::{
    KeyInit, XChaCha20Poly1305, XNonce,
    aead::{Aead, Payload},
};
use rand::RngCore;
use zeroize::Zeroizing;

use crate::error::StoreError;

const NONCE: usize = 24;

/// Seals and opens the secrets of jobs with the service's key.
#[derive(Clone)]
pub struct Sealer(XChaCha20Poly1305);

impl Sealer {
    pub fn from_key(key: [u8; 32]) -> Self {
        Self(XChaCha20Poly1305::new(&key.into()))
    }

    /// Seals `plain` for the row named by `owner`: moved to another row, it does not open.
    pub(crate) fn seal(&self, plain: &[u8], owner: &[u8]) -> Result<Vec<u8>, StoreError> {
        // 24 random bytes do not repeat in the life of a key, so no counter has to be kept.
        let mut nonce = [0; NONCE];
        rand::rng().fill_bytes(&mut nonce);
        let sealed = self
            .0
            .encrypt(XNonce::from_slice(&nonce), Payload { msg: plain, aad: owner })
            .map_err(|_| StoreError::Unstorable("its secrets cannot be sealed"))?;
        Ok([nonce.as_slice(), &sealed].concat())
    }

    /// Opens what [`seal`](Self::seal) made; nothing when the key or the row is another.
    pub(crate) fn open(&self, sealed: &[u8], owner: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let (nonce, sealed) = sealed.split_at_checked(NONCE)?;
        self.0
            .decrypt(XNonce::from_slice(nonce), Payload { msg: sealed, aad: owner })
            .ok()
            .map(Zeroizing::new)
    }
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sealer")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_opens_only_with_its_key_and_in_its_row() {
        let sealer = Sealer::from_key([7; 32]);
        let locked = sealer.seal(b"hunter2", b"row 1").unwrap();
        assert_eq!(sealer.open(&locked, b"row 1").unwrap().as_slice(), b"hunter2");
        assert!(sealer.open(&locked, b"row 2").is_none());
        assert!(Sealer::from_key([8; 32]).open(&locked, b"row 1").is_none());
        assert!(sealer.open(&locked[..10], b"row 1").is_none());
        assert!(!locked.windows(7).any(|part| part == b"hunter2"));
    }

    #[test]
    fn the_same_secret_never_looks_the_same_twice() {
        let sealer = Sealer::from_key([7; 32]);
        assert_ne!(sealer.seal(b"x", b"r").unwrap(), sealer.seal(b"x", b"r").unwrap());
    }
}
