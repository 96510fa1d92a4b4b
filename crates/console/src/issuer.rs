//! Where visitors get a token without having one: an issuer that they log in at (OpenID Connect).

use std::{fmt, pin::Pin};

use secrecy::SecretString;

/// What an issuer returns.
pub type Pending<T> = Pin<Box<dyn Future<Output = Result<T, IssuerFault>> + Send>>;

/// The issuer of the API's tokens. A trait, because this crate makes no HTTP requests.
pub trait Issuer: Send + Sync + 'static {
    /// Its host, as visitors know it.
    fn name(&self) -> &str;

    /// Whether it sends visitors back by HTTPS.
    fn is_https(&self) -> bool;

    /// Begins a log-in: the address where the visitor goes on.
    fn begin(&self) -> Pending<Begun>;

    /// Exchanges the code of a log-in for a token of the API.
    fn finish(&self, returned: Returned) -> Pending<SecretString>;
}

/// A log-in that has begun.
pub struct Begun {
    /// The address at the issuer.
    pub address: String,
    /// What the issuer returns unchanged (RFC 6749 §10.12).
    pub state: SecretString,
    /// The code can be exchanged with it alone (RFC 7636).
    pub verifier: SecretString,
}

impl fmt::Debug for Begun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Begun")
    }
}

/// What a visitor brings back from the issuer.
#[derive(Debug)]
pub struct Returned {
    pub code: SecretString,
    pub verifier: SecretString,
    /// Who sent the visitor back, if the answer has it (RFC 9207).
    pub issuer: Option<String>,
}

/// Why an issuer gives no token. It has no secrets, but texts of the issuer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IssuerFault {
    /// An address gives no usable answer: the address, and what is wrong.
    #[error("{address}: {reason}")]
    Unreachable { address: String, reason: String },
    /// The issuer takes the code not, by this error code.
    #[error("the issuer refused the code: {0}")]
    Refused(String),
    /// The visitor comes back from somewhere else.
    #[error("the answer is from another issuer")]
    OtherIssuer,
    /// The answer lacks a token of the configured kind.
    #[error("the issuer's answer has no {0}")]
    NoToken(&'static str),
}
