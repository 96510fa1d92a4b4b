//! Repeated requests: the same `Idempotency-Key` and the same body get the same answer.

use axum::{
    http::{HeaderName, HeaderValue, StatusCode},
    response::Response,
};
use domain::Job;
use persistence::{Known, Once};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{
    auth::Caller,
    problem::{Kind, Problem},
    state::App,
};

const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// The current state of the job that an earlier request with this key was about, and the status of its answer; none without an
/// earlier request.
pub(super) async fn answered(
    app: &App,
    caller: &Caller,
    once: Option<&Once>,
) -> Result<Option<(Job, StatusCode)>, Problem> {
    let Some(once) = once else { return Ok(None) };
    let (id, status) = match app.store.known(once).await? {
        Known::New => return Ok(None),
        Known::Answered { job, status } => (job, status),
        Known::Other => return Err(key_reused()),
    };
    let job = app.store.find_job(id, &caller.viewer()).await?.ok_or_else(|| {
        let detail = format!(
            "The request with this Idempotency-Key was about the job `{id}`, which has been deleted."
        );
        Problem::new(Kind::JobNotFound, detail)
    })?;
    let status = StatusCode::from_u16(status).map_err(|_| Problem::internal())?;
    Ok(Some((job, status)))
}

pub(crate) fn key_reused() -> Problem {
    Problem::new(
        Kind::IdempotencyKeyReused,
        "This Idempotency-Key belongs to a different request. Repeat that request unchanged, or use a new key.",
    )
}

/// The answer to a repeated retry or resume: the job's current status.
pub(super) async fn status_replayed(
    app: &App,
    caller: &Caller,
    once: Option<&Once>,
) -> Result<Option<Response>, Problem> {
    let Some((job, status)) = answered(app, caller, once).await? else { return Ok(None) };
    super::answered(app, status, &job).await.map(mark).map(Some)
}

/// Marks a repeated answer.
pub(crate) fn mark(mut answer: Response) -> Response {
    answer.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    answer
}

/// SHA-256 of a canonical form, so that white space and the order of keys do not matter.
pub(crate) fn request_hash(document: &Value) -> [u8; 32] {
    let mut hash = Sha256::new();
    write_canonical(document, &mut hash);
    hash.finalize().into()
}

fn write_canonical(value: &Value, hash: &mut Sha256) {
    match value {
        Value::Object(fields) => {
            let mut sorted: Vec<_> = fields.iter().collect();
            sorted.sort_unstable_by_key(|(key, _)| key.as_str());
            hash.update(b"{");
            for (key, item) in sorted {
                text(key, hash);
                write_canonical(item, hash);
            }
            hash.update(b"}");
        }
        Value::Array(items) => {
            hash.update(b"[");
            for item in items {
                write_canonical(item, hash);
            }
            hash.update(b"]");
        }
        Value::String(string) => text(string, hash),
        Value::Null | Value::Bool(_) | Value::Number(_) => {
            hash.update(b"=");
            hash.update(value.to_string());
            hash.update(b";");
        }
    }
}

/// Length-prefixed, so that the boundary between two texts is unambiguous.
fn text(text: &str, hash: &mut Sha256) {
    hash.update(format!("\"{}:", text.len()));
    hash.update(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(text: &str) -> [u8; 32] {
        request_hash(&serde_json::from_str(text).unwrap())
    }

    #[test]
    fn order_and_white_space_do_not_matter() {
        assert_eq!(
            hash(r#"{"a":1,"b":{"c":[1,2],"d":null}}"#),
            hash(r#" {"b": {"d": null, "c": [1, 2]}, "a": 1}"#)
        );
    }

    #[test]
    fn everything_else_does() {
        let texts = [
            "{}",
            "[]",
            "null",
            "1",
            "\"1\"",
            "true",
            r#"{"a":1}"#,
            r#"{"a":"1"}"#,
            r#"{"a":[1]}"#,
            r#"{"a":[1,2]}"#,
            r#"{"a":[2,1]}"#,
            r#"{"a":[12]}"#,
            r#"{"ab":"c"}"#,
            r#"{"a":"bc"}"#,
            r#"["a","b"]"#,
            r#"["ab"]"#,
            r#"[["a"],"b"]"#,
        ];
        let hashes: std::collections::HashSet<_> = texts.iter().map(|text| hash(text)).collect();
        assert_eq!(hashes.len(), texts.len());
    }
}
