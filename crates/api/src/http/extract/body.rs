//! A JSON body: read once as a document, then as a value, so that every fault has a pointer.

use axum::{
    body::Bytes,
    extract::{FromRequest, Request},
    http::{HeaderMap, StatusCode, header},
};
use domain::{Violation, pointer as below};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::timeout;

use crate::{
    problem::{Kind, Problem},
    state::App,
};

mod faults;

/// How deep the arrays and objects of a body may be nested. What is stored has a few more levels around it, and
/// JSON is read back only up to 128 (`serde_json`'s own limit): what is accepted must stay readable.
const MOST_LEVELS: u32 = 64;

/// What the caller sent: the document itself and the value in it.
#[derive(Debug)]
pub(crate) struct Sent<T> {
    pub(crate) document: Value,
    pub(crate) value: T,
}

/// A JSON body.
#[derive(Debug)]
pub(crate) struct Body<T>(pub(crate) Sent<T>);

impl<T: DeserializeOwned> FromRequest<App> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        if !is_json(request.headers()) {
            return Err(Problem::new(
                Kind::UnsupportedMediaType,
                "Send the body as JSON, with `Content-Type: application/json`.",
            ));
        }
        let within = app.limits.body_timeout;
        let arrived = timeout(within, Bytes::from_request(request, app)).await.map_err(|_| {
            let detail =
                format!("The body did not arrive within {} s; nothing was changed.", within.as_secs());
            Problem::new(Kind::RequestTimeout, detail)
        })?;
        let bytes = arrived.map_err(|rejection| {
            if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
                let most = app.limits.body_bytes;
                Problem::new(Kind::BodyTooLarge, format!("The body may have at most {most} bytes."))
            } else {
                Problem::new(Kind::BadRequest, "The body ended before it was complete.")
            }
        })?;
        let document: Value = serde_json::from_slice(&bytes).map_err(|error| malformed(&error, &bytes))?;
        if is_deeper(&document, MOST_LEVELS) {
            return Err(too_deep());
        }
        let found = faults::in_text(&document);
        if !found.is_empty() {
            return Err(Problem::fields(found));
        }
        let value = faults::read(&document).map_err(Problem::fields)?;
        Ok(Self(Sent { document, value }))
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let text = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json"))
}

/// Whether arrays and objects are nested in more than so many levels.
fn is_deeper(value: &Value, levels: u32) -> bool {
    let Some(below) = levels.checked_sub(1) else { return value.is_array() || value.is_object() };
    match value {
        Value::Array(items) => items.iter().any(|item| is_deeper(item, below)),
        Value::Object(fields) => fields.values().any(|item| is_deeper(item, below)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn too_deep() -> Problem {
    let detail = format!(
        "The body's arrays and objects may be nested in at most {MOST_LEVELS} levels. Flatten it and send it again."
    );
    Problem::new(Kind::TooDeep, detail)
}

/// The parser's own texts are about characters; what to do about them is ours to say.
fn malformed(error: &serde_json::Error, bytes: &[u8]) -> Problem {
    if bytes.trim_ascii().is_empty() {
        return Problem::new(Kind::MalformedJson, "The body is empty; send the job as a JSON object.");
    }
    let (line, column) = place(error, bytes);
    let text = error.to_string();
    if text.starts_with("recursion limit exceeded") {
        return too_deep();
    }
    let what = match text.split(" at line ").next().unwrap_or_default() {
        "expected ident" | "expected value" => "this is no JSON value (text needs double quotes)",
        "key must be a string" => "a field's name needs double quotes",
        what => what,
    };
    let detail = format!("Line {line}, column {column}: {what}. Mend the JSON there and send it again.");
    Problem::new(Kind::MalformedJson, detail)
}

/// A fault at the end of a line is reported by the parser at column 0 of the next, where nobody finds it.
fn place(error: &serde_json::Error, bytes: &[u8]) -> (usize, usize) {
    match (error.line(), error.column()) {
        (line, 0) if line > 1 => {
            let before = bytes.split(|byte| *byte == b'\n').nth(line - 2);
            (line - 1, before.map_or(0, <[u8]>::len))
        }
        place => place,
    }
}

fn fault(pointer: String, code: &'static str, detail: impl std::fmt::Display) -> Violation {
    Violation::new(pointer, code, detail)
}
