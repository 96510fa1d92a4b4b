//! Why a call has no answer of its shape.

use axum::http::StatusCode;
use serde::Deserialize;

/// A call that has no answer of its shape.
#[derive(Debug)]
pub enum Failure {
    /// The API refused the request; without a problem if its answer is no problem document.
    Refused(StatusCode, Option<Box<Problem>>),
    /// The values make no address.
    NoAddress,
    /// The answer has more bytes than the client takes.
    TooLarge(usize),
    /// The answer cannot be read. The log has the reason.
    Unreadable,
}

impl Failure {
    /// Reads an answer that is no success.
    pub fn of_answer(status: StatusCode, body: &[u8]) -> Self {
        Self::Refused(status, serde_json::from_slice(body).ok())
    }

    /// Whether the API refused the request with this code.
    pub fn is(&self, code: &str) -> bool {
        matches!(self, Self::Refused(_, Some(problem)) if problem.code == code)
    }
}

/// The API's problem (RFC 9457).
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Problem {
    pub title: String,
    pub detail: String,
    pub code: String,
    pub request_id: Option<String>,
    #[serde(default)]
    pub errors: Vec<Fault>,
}

/// A fault in one field or parameter of a request.
#[derive(Debug, Clone, Deserialize)]
pub struct Fault {
    pub pointer: Option<String>,
    pub parameter: Option<String>,
    #[serde(default)]
    pub code: String,
    pub detail: String,
}
