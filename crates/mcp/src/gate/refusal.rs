//! Refusals of the gate, as problems with codes of the API.

use axum::{
    Json,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde_json::json;

#[derive(Debug, Clone, Copy)]
pub(super) struct Refusal {
    status: StatusCode,
    code: &'static str,
    title: &'static str,
    detail: &'static str,
}

impl Refusal {
    pub(super) const BROWSER: Self = Self {
        status: StatusCode::FORBIDDEN,
        code: "forbidden",
        title: "Not for pages in a browser",
        detail: "The request has an `Origin`, so it comes from a page in a browser. Use a client that runs outside of a browser.",
    };
    pub(super) const TOO_LARGE: Self = Self {
        status: StatusCode::PAYLOAD_TOO_LARGE,
        code: "body_too_large",
        title: "The body is too large",
        detail: "A message may have 1 MiB. Send larger jobs by `POST /jobs`.",
    };
    pub(super) const TOO_SLOW: Self = Self {
        status: StatusCode::REQUEST_TIMEOUT,
        code: "request_timeout",
        title: "The body did not arrive in time",
        detail: "Send the request again; nothing changed.",
    };
    pub(super) const UNREADABLE: Self = Self {
        status: StatusCode::BAD_REQUEST,
        code: "invalid_request",
        title: "The request cannot be read",
        detail: "The body broke off, or a header is not valid. Nothing changed.",
    };
    pub(super) const BUSY: Self = Self {
        status: StatusCode::SERVICE_UNAVAILABLE,
        code: "buffers_busy",
        title: "Too many large bodies are on their way",
        detail: "Nothing changed. Send the request again.",
    };
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let Self { status, code, title, detail } = self;
        let problem = json!({"type": "about:blank", "title": title, "status": status.as_u16(), "detail": detail, "code": code});
        let mut response = (status, Json(problem)).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}
