//! JSON bodies, parsed as a document first and then as a value, so that every fault has a JSON pointer.

use axum::{
    body::Bytes,
    extract::{FromRequest, Request},
    http::{HeaderMap, StatusCode, header},
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::timeout;

use crate::{
    problem::{Kind, Problem},
    state::App,
};

mod faults;

/// The deepest nesting of arrays and objects. `serde_json` reads at most 128 levels, and stored documents add a few levels
/// around the body.
const MOST_LEVELS: u32 = 64;

/// The body as a document and as a value.
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
        let is_json = is_json(request.headers());
        if !is_json {
            return Err(no_json());
        }
        arrived(request, app).await.and_then(|bytes| read(&bytes)).map(Self)
    }
}

fn no_json() -> Problem {
    Problem::new(Kind::UnsupportedMediaType, "Send the body as JSON with `Content-Type: application/json`.")
}

async fn arrived(request: Request, app: &App) -> Result<Bytes, Problem> {
    let within = app.limits.body_timeout;
    let arrived = timeout(within, Bytes::from_request(request, app)).await.map_err(|_| {
        let detail = format!(
            "The body did not arrive within {} s; nothing was changed. Send it again.",
            within.as_secs()
        );
        Problem::new(Kind::RequestTimeout, detail)
    })?;
    arrived.map_err(|rejection| {
        if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
            let most = app.limits.body_bytes;
            Problem::new(Kind::BodyTooLarge, format!("The body is too large; the limit is {most} bytes."))
        } else {
            Problem::new(Kind::BadRequest, "The body ended before it was complete. Send it again.")
        }
    })
}

fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<Sent<T>, Problem> {
    let document: Value = serde_json::from_slice(bytes).map_err(|error| malformed(&error, bytes))?;
    if is_deeper(&document, MOST_LEVELS) {
        return Err(too_deep());
    }
    let found = faults::in_text(&document);
    if !found.is_empty() {
        return Err(Problem::fields(found));
    }
    let value = faults::read(&document).map_err(Problem::fields)?;
    Ok(Sent { document, value })
}

/// An optional JSON body; none if the request has none.
#[derive(Debug)]
pub(crate) struct BodyIfAny<T>(pub(crate) Option<Sent<T>>);

impl<T: DeserializeOwned> FromRequest<App> for BodyIfAny<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let is_json = is_json(request.headers());
        // Some clients announce chunks and send none.
        let bytes = arrived(request, app).await?;
        if bytes.is_empty() {
            return Ok(Self(None));
        }
        if !is_json {
            return Err(no_json());
        }
        let Sent { document, value } = read::<Option<T>>(&bytes)?;
        // Generated clients send `null` for an omitted body.
        Ok(Self(value.map(|value| Sent { document, value })))
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let text = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json"))
}

/// Whether arrays and objects are nested deeper than `levels`.
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
        "Arrays and objects in the body are nested more than {MOST_LEVELS} levels deep. Flatten the body and send it again."
    );
    Problem::new(Kind::TooDeep, detail)
}

/// `serde_json` describes characters; this adds what to do.
fn malformed(error: &serde_json::Error, bytes: &[u8]) -> Problem {
    if bytes.trim_ascii().is_empty() {
        return Problem::new(Kind::MalformedJson, "The body is empty. Send a JSON object.");
    }
    let (line, column) = place(error, bytes);
    let text = error.to_string();
    if text.starts_with("recursion limit exceeded") {
        return too_deep();
    }
    let what = match text.split(" at line ").next().unwrap_or_default() {
        "expected ident" | "expected value" => "this is not a JSON value (strings need double quotes)",
        "key must be a string" => "a field name needs double quotes",
        what => what,
    };
    let detail = format!("Line {line}, column {column}: {what}. Correct the JSON and send it again.");
    Problem::new(Kind::MalformedJson, detail)
}

/// `serde_json` reports a fault at the end of a line as column 0 of the next line; editors show it on the line itself.
fn place(error: &serde_json::Error, bytes: &[u8]) -> (usize, usize) {
    match (error.line(), error.column()) {
        (line, 0) if line > 1 => {
            let before = bytes.split(|byte| *byte == b'\n').nth(line - 2);
            (line - 1, before.map_or(0, <[u8]>::len))
        }
        place => place,
    }
}
