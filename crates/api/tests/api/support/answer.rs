//! An answer, and what has to be true of every one that is an error.

use axum::http::{HeaderMap, StatusCode, header};
use serde_json::Value;

pub(super) fn is_problem(headers: &HeaderMap) -> bool {
    headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind == "application/problem+json")
}

/// What came back.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) bytes: Vec<u8>,
}

impl Answer {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or_else(|_| panic!("no JSON: {:?}", self.text()))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    #[track_caller]
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).unwrap_or_else(|| panic!("no header {name}")).to_str().unwrap()
    }

    /// The document of an error, with everything that every error must have.
    #[track_caller]
    pub(crate) fn problem(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.status, status, "{}", self.text());
        assert_eq!(self.header("content-type"), "application/problem+json");
        let problem = self.json();
        assert_eq!(problem["code"], code, "{problem}");
        assert_eq!(problem["type"], format!("urn:tao-slurm:problem:{code}"));
        assert_eq!(problem["status"], status);
        for text in ["title", "detail", "instance"] {
            assert!(problem[text].as_str().is_some_and(|text| !text.is_empty()), "{text}: {problem}");
        }
        crate::errors_page::lists(&problem);
        assert_eq!(problem["request_id"], self.header("x-request-id"));
        problem
    }
}
