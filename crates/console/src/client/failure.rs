//! Why a page cannot be shown, or an action did not happen.

use std::ops::Deref;

use axum::http::StatusCode;

use crate::model::Text;

/// The API's problem (RFC 9457), or one of the pages' own.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    pub(crate) status: StatusCode,
    problem: Box<Problem>,
}

/// The fields of a problem document that pages read.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    pub(crate) title: Text,
    pub(crate) detail: Text,
    code: Text,
    pub(crate) request_id: Option<Text>,
    pub(crate) errors: Vec<Fault>,
}

impl Deref for Failure {
    type Target = Problem;

    fn deref(&self) -> &Problem {
        &self.problem
    }
}

/// A fault in one field of a request.
#[derive(Debug, Clone)]
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

    /// Whether the problem has this code.
    pub(crate) fn is(&self, code: &str) -> bool {
        self.code.raw() == code
    }
}

impl From<loopback::Failure> for Failure {
    fn from(failure: loopback::Failure) -> Self {
        let unreadable = StatusCode::BAD_GATEWAY;
        match failure {
            loopback::Failure::Refused(status, Some(problem)) => {
                Self { status, problem: Box::new((*problem).into()) }
            }
            loopback::Failure::Refused(status, None) => {
                Self::new(status, "The API refused the request", format!("It answered with {status}."))
            }
            loopback::Failure::NoAddress => Self::no_page(),
            loopback::Failure::TooLarge(most) => {
                let detail = format!("It has more than {} MiB. Read it by the API.", most / 1024 / 1024);
                Self::new(unreadable, "Too much for a page", detail)
            }
            loopback::Failure::Unreadable => {
                let detail =
                    "The page could not read the API's answer. The log of the service has the reason.";
                Self::new(unreadable, "Unreadable answer", detail)
            }
        }
    }
}

impl From<loopback::Problem> for Problem {
    fn from(problem: loopback::Problem) -> Self {
        let loopback::Problem { title, detail, code, request_id, errors } = problem;
        let errors = errors.into_iter().map(|fault| Fault {
            pointer: fault.pointer.map(Text::new),
            parameter: fault.parameter.map(Text::new),
            detail: Text::new(fault.detail),
        });
        Self {
            title: Text::new(title),
            detail: Text::new(detail),
            code: Text::new(code),
            request_id: request_id.map(Text::new),
            errors: errors.collect(),
        }
    }
}
