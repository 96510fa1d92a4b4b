//! Secrets at rest: XChaCha20-Poly1305 with a fresh nonce for each, bound to their row. Requests that are compared later and
//! may hold secrets are stored as a keyed hash.

use std::fmt;

use chacha20poly1305::{
    KeyInit, XChaCha20Poly1305, XNonce,
    aead::{Aead, Payload},
};
use hmac::{Hmac, KeyInit as _, Mac};
use rand::RngCore;
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::error::{Result, StoreError};

const NONCE: usize = 24;

/// The purpose of the derived hash key: the sealing key itself is used for sealing only.
const CODES: &[u8] = b"tao-slurm: codes of requests";

/// Seals and opens the secrets of jobs with the service's key.
#[derive(Clone)]
pub struct Sealer {
    cipher: XChaCha20Poly1305,
    codes: Hmac<Sha256>,
}

impl Sealer {
    pub fn from_key(key: [u8; 32]) -> Self {
        let cipher = XChaCha20Poly1305::new(&key.into());
        let derived = hmac(&key).chain_update(CODES).finalize().into_bytes();
        Self { cipher, codes: hmac(&derived.into()) }
    }

    /// The keyed hash of a request, from its digest. It cannot be used to test a guessed secret without the key.
    pub(crate) fn code(&self, digest: &[u8; 32]) -> [u8; 32] {
        self.codes.clone().chain_update(digest).finalize().into_bytes().into()
    }

    /// Seals `plain` for the row that `owner` names. It does not open in another row.
    pub(crate) fn seal(&self, plain: &[u8], owner: &[u8]) -> Result<Vec<u8>> {
        // 24 random bytes do not repeat in the life of a key, so no counter is needed.
        let mut nonce = [0; NONCE];
        rand::rng().fill_bytes(&mut nonce);
        let sealed = self
            .cipher
            .encrypt(XNonce::from_slice(&nonce), Payload { msg: plain, aad: owner })
            .map_err(|_| StoreError::Unstorable("secrets"))?;
        Ok([nonce.as_slice(), &sealed].concat())
    }

    /// Opens what [`seal`](Self::seal) sealed; `None` for another key or another row.
    pub(crate) fn open(&self, sealed: &[u8], owner: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let (nonce, sealed) = sealed.split_at_checked(NONCE)?;
        self.cipher
            .decrypt(XNonce::from_slice(nonce), Payload { msg: sealed, aad: owner })
            .ok()
            .map(Zeroizing::new)
    }
}

/// HMAC-SHA-256 takes a key of 64 bytes; a shorter key is padded with zeros (RFC 2104).
fn hmac(key: &[u8; 32]) -> Hmac<Sha256> {
    let mut block = Zeroizing::new([0; 64]);
    block[..key.len()].copy_from_slice(key);
    Hmac::new((&*block).into())
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
    fn the_code_of_a_request_is_the_same_for_the_same_key_only() {
        let digest = [1; 32];
        let code = Sealer::from_key([7; 32]).code(&digest);
        assert_eq!(Sealer::from_key([7; 32]).code(&digest), code);
        assert_ne!(Sealer::from_key([8; 32]).code(&digest), code);
        assert_ne!(Sealer::from_key([7; 32]).code(&[2; 32]), code);
        // The same from OpenSSL: `openssl dgst -sha256 -mac HMAC -macopt hexkey:…`, twice.
        assert_eq!(code[..8], [0x79, 0xa4, 0x67, 0x5d, 0x0b, 0xd0, 0x06, 0xc0]);
    }

    #[test]
    fn the_same_secret_never_looks_the_same_twice() {
        let sealer = Sealer::from_key([7; 32]);
        assert_ne!(sealer.seal(b"x", b"r").unwrap(), sealer.seal(b"x", b"r").unwrap());
    }
}
