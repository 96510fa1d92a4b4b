//! Why a page cannot be shown, or an action did not happen.

use std::ops::Deref;

use axum::http::StatusCode;
use serde::Deserialize;

use crate::model::Text;

/// The API's problem (RFC 9457), or one of the pages' own.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    pub(crate) status: StatusCode,
    problem: Box<Problem>,
}

/// The fields of a problem document that pages read.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Problem {
    pub(crate) title: Text,
    pub(crate) detail: Text,
    code: Text,
    pub(crate) request_id: Option<Text>,
    #[serde(default)]
    pub(crate) errors: Vec<Fault>,
}

impl Deref for Failure {
    type Target = Problem;

    fn deref(&self) -> &Problem {
        &self.problem
    }
}

/// A fault in one field of a request.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Fault {
    pub(crate) pointer: Option<Text>,
    pub(crate) parameter: Option<Text>,
    pub(crate) detail: Text,
}

impl Failure {
    pub(crate) fn new(status: StatusCode, title: &str, detail: impl Into<String>) -> Self {
        let (title, detail) = (Text::from(title), Text::new(detail));
        let problem = Problem { title, detail, errors: Vec::new(), request_id: None, code: Text::default() };
        Self { status, problem: Box::new(problem) }
    }

    /// The address names nothing.
    pub(crate) fn no_page() -> Self {
        let detail = "This address has no page. The links above lead to all pages.";
        Self::new(StatusCode::NOT_FOUND, "Not found", detail)
    }

    /// The API's answer cannot be read.
    pub(super) fn unreadable() -> Self {
        let detail = "The page could not read the API's answer. The log of the service has the reason.";
        Self::new(StatusCode::BAD_GATEWAY, "Unreadable answer", detail)
    }

    /// Reads an answer that is no success.
    pub(super) fn of_answer(status: StatusCode, body: &[u8]) -> Self {
        match serde_json::from_slice(body) {
            Ok(problem) => Self { status, problem: Box::new(problem) },
            Err(_) => Self::new(status, "The API refused the request", format!("It answered with {status}.")),
        }
    }

    /// Whether the problem has this code.
    pub(crate) fn is(&self, code: &str) -> bool {
        self.code.raw() == code
    }
}
