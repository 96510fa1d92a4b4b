//! Problems: everything that can go wrong for a caller, each with its HTTP status.
//!
//! Errors are RFC 9457 documents. Details for operators, such as the database's message or a panic, go to the log only.

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
pub(crate) use responses::{BODY, PUBLIC, SECURED, problems, responses};

/// The media type of errors.
pub(crate) const MEDIA_TYPE: &str = "application/problem+json";

/// The seconds after which to try again when a dependency is unavailable.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("5");

/// Errors below this path also use TAO's field names.
const TAO_ROOT: &str = "/api/v1/";
/// TAO's limit.
const LONGEST_DESCRIPTION: usize = 1000;

/// Why a request failed (RFC 9457).
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Problem)]
pub(crate) struct Document {
    /// `urn:tao-slurm:problem:<code>`.
    r#type: String,
    /// The title of all problems with this code.
    title: &'static str,
    /// The HTTP status.
    #[schema(minimum = 400, maximum = 599)]
    status: u16,
    /// What is wrong, and what to do.
    detail: String,
    /// The stable, machine-readable code of the problem.
    code: &'static str,
    /// The request's path.
    #[serde(skip_serializing_if = "Option::is_none")]
    instance: Option<String>,
    /// The request's `x-request-id`. Quote it when you ask for help.
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
    /// Only on TAO's own paths: the detail and all faults in one text, in TAO's field.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 1000)]
    error_desc: Option<String>,
    /// Only on TAO's own paths: the HTTP status, in TAO's field.
    #[serde(skip_serializing_if = "Option::is_none")]
    error_code: Option<u16>,
    /// One entry for each fault in the request.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<FieldError>,
}

/// One fault in a request.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct FieldError {
    /// JSON pointer (RFC 6901) to the field in the body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pointer: Option<String>,
    /// The query parameter or header, if the fault is in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    parameter: Option<String>,
    /// The stable, machine-readable code of the broken rule.
    code: &'static str,
    /// What is wrong, and what would be right.
    detail: String,
}

/// A failed request.
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

    /// Faults in fields of the body.
    pub(crate) fn fields(violations: Vec<Violation>) -> Self {
        Self::with_fields(Kind::InvalidRequest, violations)
    }

    /// The same with another kind.
    pub(crate) fn with_fields(kind: Kind, violations: Vec<Violation>) -> Self {
        let detail = match violations.as_slice() {
            [Violation { pointer, detail, .. }] if pointer.is_empty() => format!("The request: {detail}."),
            [Violation { pointer, detail, .. }] => format!("{pointer}: {detail}."),
            several => format!("{} fields are not valid; see errors.", several.len()),
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

    /// The path does not exist.
    pub(crate) fn no_such_path(uri: &Uri) -> Self {
        Self::new(
            Kind::NotFound,
            format!("The path `{}` does not exist; /docs lists the API's paths.", uri.path()),
        )
    }

    /// The token is missing or invalid.
    pub(crate) fn unauthorized(detail: &str, challenge: &str) -> Self {
        Self::new(Kind::Unauthorized, detail).with_text(header::WWW_AUTHENTICATE, challenge)
    }

    /// A signed token is refused; the kind gives the reason (RFC 6750 §3).
    pub(crate) fn token_refused(kind: Kind, detail: impl Into<String>) -> Self {
        let challenge = format!(
            r#"Bearer realm="tao-slurm", error="invalid_token", error_description="{}""#,
            kind.title()
        );
        Self::new(kind, detail).with_text(header::WWW_AUTHENTICATE, &challenge)
    }

    /// The token lacks a scope.
    pub(crate) fn forbidden(scope: &str) -> Self {
        let challenge = format!(r#"Bearer realm="tao-slurm", error="insufficient_scope", scope="{scope}""#);
        let detail = format!("This call needs a token with the scope `{scope}`.");
        Self::new(Kind::Forbidden, detail).with_text(header::WWW_AUTHENTICATE, &challenge)
    }

    /// A dependency is unavailable.
    pub(crate) fn unavailable(kind: Kind, detail: impl Into<String>) -> Self {
        Self::new(kind, detail).with_header(header::RETRY_AFTER, RETRY_AFTER)
    }

    /// A defect. The cause belongs in the log, not in the answer.
    pub(crate) fn internal() -> Self {
        Self::new(
            Kind::Internal,
            "An internal error occurred. The service's log has the cause under this request id.",
        )
    }

    /// An error of another component, such as a missing file of Swagger UI.
    pub(crate) fn foreign(status: StatusCode, uri: &Uri) -> Option<Self> {
        match status {
            StatusCode::NOT_FOUND => Some(Self::no_such_path(uri)),
            StatusCode::METHOD_NOT_ALLOWED => {
                Some(Self::new(Kind::MethodNotAllowed, "The Allow header lists the supported methods."))
            }
            status if status.is_client_error() => {
                Some(Self::new(Kind::BadRequest, "The request could not be read."))
            }
            status if status.is_server_error() => Some(Self::internal()),
            _ => None,
        }
    }

    /// Translates the pointers to fields of the caller's own format.
    pub(crate) fn with_pointers(mut self, translate: impl Fn(&str) -> String) -> Self {
        for error in &mut self.errors {
            error.pointer = error.pointer.as_deref().map(&translate);
        }
        if let [FieldError { pointer: Some(pointer), detail, .. }] = self.errors.as_slice()
            && !pointer.is_empty()
        {
            self.detail = format!("{pointer}: {detail}.");
        }
        self
    }

    /// Whether it is about fields of the body.
    pub(crate) fn has_fields(&self) -> bool {
        !self.errors.is_empty()
    }

    /// The faults of both.
    pub(crate) fn joined(mut self, other: Self) -> Self {
        self.errors.extend(other.errors);
        self.detail = format!("{} fields are not valid; see errors.", self.errors.len());
        self
    }

    /// Detail and faults in one text, because TAO's services show only one.
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

    /// A header with a text of ours, which is always valid.
    pub(crate) fn with_text(self, name: HeaderName, text: &str) -> Self {
        match HeaderValue::from_str(text) {
            Ok(value) => self.with_header(name, value),
            Err(_) => self,
        }
    }

    /// The answer, with facts about the whole request.
    pub(crate) fn respond(self, instance: Option<String>, request_id: Option<String>) -> Response {
        let for_tao = instance.as_deref().is_some_and(|path| path.starts_with(TAO_ROOT));
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
                "The database cannot be reached; nothing was changed. Try again.",
            )
        } else {
            tracing::error!(cause, "the database refused a statement");
            Self::internal()
        }
    }
}

/// An error with its sources, on one line.
fn chain(error: &dyn std::error::Error) -> String {
    let errors = std::iter::successors(Some(error), |error| error.source());
    errors.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// For paths that do not exist.
pub(crate) async fn not_found(request: Request) -> Problem {
    Problem::no_such_path(request.uri())
}

/// For paths of a process that serves no API.
pub(crate) async fn not_served_here(request: Request) -> Problem {
    let detail = format!(
        "`{}` is not served here: this process serves only /livez, /readyz and /metrics.",
        request.uri().path()
    );
    Problem::new(Kind::NotFound, detail)
}

/// For unsupported methods; axum adds the `Allow` header.
pub(crate) async fn method_not_allowed(request: Request) -> Problem {
    let detail = format!(
        "`{}` does not support {}; the Allow header lists the supported methods.",
        request.uri().path(),
        request.method()
    );
    Problem::new(Kind::MethodNotAllowed, detail)
}
