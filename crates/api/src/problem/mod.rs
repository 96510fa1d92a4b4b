//! Everything that can go wrong for a caller, and the one place that chooses an HTTP status for it.
//!
//! Errors are RFC 9457 documents. What an operator needs to know (the database's own words, a panic) goes to
//! the log and never into a document.

use axum::{
    Json,
    extract::Request,
    http::{HeaderName, HeaderValue, StatusCode, Uri, header},
    response::{IntoResponse, Response},
};
use domain::Violation;
use persistence::StoreError;
use serde::Serialize;
use utoipa::ToSchema;

mod kind;
mod responses;

pub(crate) use kind::Kind;
pub(crate) use responses::{ALWAYS, SECURED, problems, responses};

/// The media type of every error.
pub(crate) const MEDIA_TYPE: &str = "application/problem+json";

/// Seconds after which a caller may ask again when something behind us is away.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("5");

/// TAO's own bound.
const LONGEST_DESCRIPTION: usize = 1000;

/// Why a request was not carried out (RFC 9457).
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Problem)]
pub(crate) struct Document {
    /// `urn:tao-slurm:problem:<code>`.
    r#type: String,
    /// The same short text for every problem of this type.
    title: &'static str,
    /// The HTTP status, repeated.
    #[schema(minimum = 400, maximum = 599)]
    status: u16,
    /// What is wrong this time, and what to do about it.
    detail: String,
    /// Stable, machine-readable name of the problem.
    code: &'static str,
    /// The path of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    instance: Option<String>,
    /// The request's `x-request-id`: quote it when asking for help.
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
    /// At TAO's own paths: detail and faults in one text, by the name that TAO reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 1000)]
    error_desc: Option<String>,
    /// At TAO's own paths: the HTTP status, by the name that TAO reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    error_code: Option<u16>,
    /// One entry for each fault of the request.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<FieldError>,
}

/// One fault of a request.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct FieldError {
    /// JSON pointer (RFC 6901) to the field in the request's body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pointer: Option<String>,
    /// The query parameter, when the fault is in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    parameter: Option<String>,
    /// Stable, machine-readable name of the broken rule.
    code: &'static str,
    /// What is wrong and what would be right.
    detail: String,
}

/// A request that was not carried out.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    kind: Kind,
    detail: String,
    errors: Vec<FieldError>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Problem {
    pub(crate) fn new(kind: Kind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into(), errors: Vec::new(), headers: Vec::new() }
    }

    /// Faults in the fields of the body.
    pub(crate) fn fields(violations: Vec<Violation>) -> Self {
        Self::with_fields(Kind::InvalidRequest, violations)
    }

    /// The same, of another kind.
    pub(crate) fn with_fields(kind: Kind, violations: Vec<Violation>) -> Self {
        let detail = match violations.as_slice() {
            [Violation { pointer, detail, .. }] if pointer.is_empty() => format!("The request: {detail}."),
            [Violation { pointer, detail, .. }] => format!("{pointer}: {detail}."),
            several => format!("{} fields are not acceptable; see errors.", several.len()),
        };
        let error = |Violation { pointer, code, detail }: Violation| FieldError {
            pointer: Some(pointer),
            parameter: None,
            code,
            detail,
        };
        let errors = violations.into_iter().map(error).collect();
        Self { errors, ..Self::new(kind, detail) }
    }

    /// A fault in one query parameter.
    pub(crate) fn parameter(name: &str, code: &'static str, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        let error =
            FieldError { pointer: None, parameter: Some(name.to_owned()), code, detail: detail.clone() };
        Self { errors: vec![error], ..Self::new(Kind::InvalidParameter, format!("`{name}`: {detail}.")) }
    }

    /// No such path, or no such job for this caller.
    pub(crate) fn no_such_path(uri: &Uri) -> Self {
        Self::new(Kind::NotFound, format!("There is nothing at `{}`; /docs lists what there is.", uri.path()))
    }

    /// The token is missing or good for nothing.
    pub(crate) fn unauthorized(detail: &str, challenge: &'static str) -> Self {
        Self::new(Kind::Unauthorized, detail)
            .with_header(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge))
    }

    /// A signed token is good for nothing, and the kind says why (RFC 6750 §3).
    pub(crate) fn token_refused(kind: Kind, detail: impl Into<String>) -> Self {
        let challenge = format!(
            r#"Bearer realm="tao-slurm", error="invalid_token", error_description="{}""#,
            kind.title()
        );
        let problem = Self::new(kind, detail);
        match HeaderValue::from_str(&challenge) {
            Ok(challenge) => problem.with_header(header::WWW_AUTHENTICATE, challenge),
            Err(_) => problem,
        }
    }

    /// The token is good, but not for this.
    pub(crate) fn forbidden(detail: &str, challenge: &'static str) -> Self {
        Self::new(Kind::Forbidden, detail)
            .with_header(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge))
    }

    /// Something behind us is away for now.
    pub(crate) fn unavailable(kind: Kind, detail: impl Into<String>) -> Self {
        Self::new(kind, detail).with_header(header::RETRY_AFTER, RETRY_AFTER)
    }

    /// A defect of ours. The cause belongs in the log, not here.
    pub(crate) fn internal() -> Self {
        Self::new(Kind::Internal, "The service failed to answer; its log says why, under this request's id.")
    }

    /// An error answer that did not come from here, such as a missing file of the documentation page.
    pub(crate) fn foreign(status: StatusCode, uri: &Uri) -> Option<Self> {
        match status {
            StatusCode::NOT_FOUND => Some(Self::no_such_path(uri)),
            StatusCode::METHOD_NOT_ALLOWED => {
                Some(Self::new(Kind::MethodNotAllowed, "See the Allow header."))
            }
            status if status.is_client_error() => {
                Some(Self::new(Kind::BadRequest, "The request could not be read."))
            }
            status if status.is_server_error() => Some(Self::internal()),
            _ => None,
        }
    }

    /// The same faults, of the fields that the caller's own document has.
    pub(crate) fn with_pointers(mut self, theirs: impl Fn(&str) -> String) -> Self {
        for error in &mut self.errors {
            error.pointer = error.pointer.as_deref().map(&theirs);
        }
        if let [FieldError { pointer: Some(pointer), detail, .. }] = self.errors.as_slice()
            && !pointer.is_empty()
        {
            self.detail = format!("{pointer}: {detail}.");
        }
        self
    }

    /// Everything in one text: TAO's services show that and nothing else.
    fn in_one_text(&self) -> String {
        let mut parts = vec![self.detail.clone()];
        if self.errors.len() > 1 {
            let faults = self.errors.iter().map(|FieldError { pointer, parameter, detail, .. }| {
                let place = pointer.as_deref().or(parameter.as_deref()).unwrap_or_default();
                format!("{place}: {detail}.")
            });
            parts.extend(faults);
        }
        parts.join(" ").chars().take(LONGEST_DESCRIPTION).collect()
    }

    pub(crate) fn code(&self) -> &'static str {
        self.kind.code()
    }

    pub(crate) fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// The answer, with what only the whole request knows.
    pub(crate) fn respond(self, instance: Option<String>, request_id: Option<String>) -> Response {
        let for_tao = instance.as_deref().is_some_and(|path| path.starts_with(crate::calls::tao::ROOT));
        let document = Document {
            r#type: self.kind.uri(),
            title: self.kind.title(),
            status: self.kind.status().as_u16(),
            detail: self.detail.clone(),
            code: self.kind.code(),
            error_desc: for_tao.then(|| self.in_one_text()),
            error_code: for_tao.then(|| self.kind.status().as_u16()),
            instance,
            request_id,
            errors: self.errors.clone(),
        };
        let mut response = (self.kind.status(), Json(document)).into_response();
        response.headers_mut().extend(self.headers.iter().cloned());
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
        response.extensions_mut().insert(self);
        response
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        self.respond(None, None)
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        Self::from(&error)
    }
}

impl From<&StoreError> for Problem {
    fn from(error: &StoreError) -> Self {
        let cause = chain(error);
        if error.is_unavailable() {
            tracing::warn!(cause, "the database cannot be reached");
            Self::unavailable(
                Kind::DatabaseUnavailable,
                "The database cannot be reached; nothing was changed. Ask again.",
            )
        } else {
            tracing::error!(cause, "the database refused a statement");
            Self::internal()
        }
    }
}

/// An error with everything behind it, on one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        source = inner.source();
    }
    text
}

/// Answers a path that does not exist.
pub(crate) async fn not_found(request: Request) -> Problem {
    Problem::no_such_path(request.uri())
}

/// Answers a path of a process that serves no API.
pub(crate) async fn not_served_here(request: Request) -> Problem {
    let detail = format!(
        "`{}` is not served here: this process has /livez, /readyz and /metrics only.",
        request.uri().path()
    );
    Problem::new(Kind::NotFound, detail)
}

/// Answers a method that the path does not know; axum adds the `Allow` header.
pub(crate) async fn method_not_allowed(request: Request) -> Problem {
    let detail = format!(
        "`{}` does not know the method {}; the Allow header lists what it knows.",
        request.uri().path(),
        request.method()
    );
    Problem::new(Kind::MethodNotAllowed, detail)
}
