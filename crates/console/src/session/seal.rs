//! Seals a token with XChaCha20-Poly1305. The sealed text has the time of the log-in, so that a copied one ends too.

use std::fmt;

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use chacha20poly1305::{
    KeyInit, XChaCha20Poly1305, XNonce,
    aead::{Aead, Payload},
};
use chrono::{DateTime, TimeDelta, Utc};
use hmac::{Hmac, KeyInit as _, Mac};
use rand::RngCore;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::model::Who;

const NONCE: usize = 24;
const TIME: usize = 8;
const LENGTH: usize = 2;
/// The purpose of the derived key, and what a sealed text is bound to.
pub(super) const PURPOSE: &[u8] = b"tao-slurm: sessions of the console, 1";
/// How long a session lasts, unless its token ends first.
pub(super) const LIFETIME: TimeDelta = TimeDelta::days(14);
/// The longest session: browsers keep 4096 bytes of a cookie, and Base64 adds a third.
const LONGEST: usize = 2900;

/// The key that seals sessions, and nothing else.
#[derive(Clone)]
pub struct SessionKey(Zeroizing<[u8; 32]>);

impl SessionKey {
    /// Derives it from the service's key (HMAC-SHA-256). It reveals nothing of that key.
    pub fn derive(service: &[u8; 32]) -> Self {
        let mut block = Zeroizing::new([0; 64]);
        block[..service.len()].copy_from_slice(service);
        let mac = Hmac::<Sha256>::new((&*block).into()).chain_update(PURPOSE);
        Self(Zeroizing::new(mac.finalize().into_bytes().into()))
    }
}

impl fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionKey")
    }
}

/// A visitor's session.
pub(crate) struct Session {
    pub(crate) token: SecretString,
    pub(crate) who: Who,
    /// The token comes from a log-in at the issuer.
    pub(crate) is_of_issuer: bool,
    pub(crate) begun: DateTime<Utc>,
}

/// What a session has besides its token.
#[derive(Serialize, Deserialize)]
struct Head {
    #[serde(flatten)]
    who: Who,
    #[serde(default)]
    is_of_issuer: bool,
}

/// Seals and opens what browsers keep.
#[derive(Clone)]
pub(crate) struct Sealer(XChaCha20Poly1305);

impl Sealer {
    pub(crate) fn new(key: &SessionKey) -> Self {
        Self(XChaCha20Poly1305::new((&*key.0).into()))
    }

    /// The time of the log-in, the length of what the visitor is, that itself, and the token. None for a token that is too long
    /// for a cookie.
    pub(super) fn seal(&self, session: &Session) -> Option<String> {
        let head = Head { who: session.who.clone(), is_of_issuer: session.is_of_issuer };
        let head = serde_json::to_vec(&head).ok()?;
        let length = u16::try_from(head.len()).ok()?.to_be_bytes();
        let token = session.token.expose_secret().as_bytes();
        let rest = Zeroizing::new([length.as_slice(), &head, token].concat());
        self.seal_bytes(PURPOSE, session.begun, &rest)
    }

    /// The session; none if the text is not ours or too old.
    pub(super) fn open(&self, text: &str, now: DateTime<Utc>) -> Option<Session> {
        let (begun, plain) = self.open_bytes(PURPOSE, text)?;
        let (length, rest) = plain.split_at_checked(LENGTH)?;
        let (head, token) = rest.split_at_checked(u16::from_be_bytes(length.try_into().ok()?).into())?;
        if now - begun >= LIFETIME {
            return None;
        }
        let Head { who, is_of_issuer } = serde_json::from_slice(head).ok()?;
        Some(Session { token: SecretString::from(str::from_utf8(token).ok()?), who, is_of_issuer, begun })
    }

    /// Seals bytes with a time. What is sealed for one purpose opens for no other. None for more than fits into a cookie.
    pub(super) fn seal_bytes(&self, purpose: &[u8], time: DateTime<Utc>, bytes: &[u8]) -> Option<String> {
        let plain = Zeroizing::new([time.timestamp().to_be_bytes().as_slice(), bytes].concat());
        if plain.len() > LONGEST {
            return None;
        }
        let mut nonce = [0; NONCE];
        rand::rng().fill_bytes(&mut nonce);
        let sealed =
            self.0.encrypt(XNonce::from_slice(&nonce), Payload { msg: &plain, aad: purpose }).ok()?;
        Some(BASE64_URL_SAFE_NO_PAD.encode([nonce.as_slice(), &sealed].concat()))
    }

    /// The time and the bytes.
    pub(super) fn open_bytes(
        &self,
        purpose: &[u8],
        text: &str,
    ) -> Option<(DateTime<Utc>, Zeroizing<Vec<u8>>)> {
        let sealed = BASE64_URL_SAFE_NO_PAD.decode(text).ok()?;
        let (nonce, sealed) = sealed.split_at_checked(NONCE)?;
        let payload = Payload { msg: sealed, aad: purpose };
        let plain = Zeroizing::new(self.0.decrypt(XNonce::from_slice(nonce), payload).ok()?);
        let (time, bytes) = plain.split_at_checked(TIME)?;
        let time = DateTime::from_timestamp(i64::from_be_bytes(time.try_into().ok()?), 0)?;
        Some((time, Zeroizing::new(bytes.to_vec())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealer(service: u8) -> Sealer {
        Sealer::new(&SessionKey::derive(&[service; 32]))
    }

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds)
    }

    fn session(token: &str) -> Session {
        let token = SecretString::from(token);
        Session { token, who: Who::anyone(), is_of_issuer: true, begun: at(1000) }
    }

    #[test]
    fn a_session_opens_with_its_key_until_it_is_too_old() {
        let text = sealer(7).seal(&session("tsl_secret")).unwrap();
        let open = |sealer: &Sealer, now| {
            let session = sealer.open(&text, now)?;
            Some((session.token.expose_secret().to_owned(), session.who, session.is_of_issuer, session.begun))
        };
        assert_eq!(
            open(&sealer(7), at(1001)),
            Some(("tsl_secret".to_owned(), Who::anyone(), true, at(1000)))
        );
        assert_eq!(open(&sealer(8), at(1001)), None);
        assert_eq!(open(&sealer(7), at(1000) + LIFETIME), None);
        assert!(!text.contains("secret"));
    }

    #[test]
    fn a_changed_session_does_not_open() {
        let text = sealer(7).seal(&session("tsl_secret")).unwrap();
        for place in 0..text.len() {
            let mut changed = text.clone().into_bytes();
            changed[place] = if changed[place] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert!(changed == text || sealer(7).open(&changed, at(1000)).is_none(), "{place}");
        }
        for wrong in ["", "A", "not base64!", &text[..40]] {
            assert!(sealer(7).open(wrong, at(1000)).is_none(), "{wrong:?}");
        }
    }

    #[test]
    fn a_session_of_an_earlier_release_opens() {
        let who = br#"{"owner":"ann","scopes":["read"]}"#;
        let bytes = [&u16::try_from(who.len()).unwrap().to_be_bytes(), who.as_slice(), b"tsl_x"].concat();
        let text = sealer(7).seal_bytes(PURPOSE, at(1000), &bytes).unwrap();
        assert!(sealer(7).open(&text, at(1001)).is_some_and(|session| !session.is_of_issuer));
    }

    #[test]
    fn what_is_sealed_for_another_purpose_is_no_session() {
        let text = sealer(7).seal_bytes(b"another", at(1000), b"x").unwrap();
        assert!(sealer(7).open_bytes(b"another", &text).is_some());
        assert!(sealer(7).open_bytes(PURPOSE, &text).is_none());
    }

    #[test]
    fn the_derived_key_is_not_the_services_own() {
        assert_ne!(*SessionKey::derive(&[7; 32]).0, [7; 32]);
        assert_eq!(format!("{:?}", SessionKey::derive(&[7; 32])), "SessionKey");
    }

    #[test]
    fn a_token_that_does_not_fit_into_a_cookie_is_refused() {
        let sealed = |length: usize| sealer(7).seal(&session(&"x".repeat(length)));
        let longest = (1..LONGEST).rev().find_map(sealed).unwrap();
        assert!((3800..4096 - 150).contains(&longest.len()), "{}", longest.len());
        assert_eq!(sealed(LONGEST), None);
    }
}
