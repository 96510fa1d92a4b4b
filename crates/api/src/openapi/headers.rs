//! Headers of all answers, which layers add whatever the call. Headers of one call are documented there.

use serde_json::{Value, json};

use super::operations;

/// Name, type and description.
const HEADERS: [(&str, &str, &str); 5] = [
    (
        "X-Request-Id",
        "string",
        "The request's id: the one that was sent, or a new one. The service's log contains it.",
    ),
    ("WWW-Authenticate", "string", "What is wrong with the token, or which scope is missing (RFC 6750)."),
    ("Retry-After", "integer", "The number of seconds to wait before the next try."),
    (
        "RateLimit-Policy",
        "string",
        "The limit: `q` requests in `w` seconds for a token. Absent without a limit.",
    ),
    (
        "RateLimit",
        "string",
        "The token's remaining requests `r`, and the seconds `t` until all are available again. Absent without a limit.",
    ),
];

/// Adds them to every response.
pub(super) fn put(document: &mut Value) {
    for (name, kind, description) in HEADERS {
        let header = json!({"schema": {"type": kind}, "description": description});
        document["components"]["headers"][name] = header;
    }
    for operation in operations(document) {
        let is_secured = operation["security"].as_array().is_some_and(|ways| !ways.is_empty());
        for (status, response) in operation["responses"].as_object_mut().into_iter().flatten() {
            for (name, ..) in HEADERS {
                let applies = match name {
                    "X-Request-Id" => true,
                    "WWW-Authenticate" => matches!(status.as_str(), "401" | "403"),
                    "Retry-After" => matches!(status.as_str(), "429" | "503"),
                    // These errors occur before the caller is known.
                    _ => is_secured && !matches!(status.as_str(), "401" | "414" | "431"),
                };
                if applies && response["headers"][name].is_null() {
                    response["headers"][name] = json!({"$ref": format!("#/components/headers/{name}")});
                }
            }
        }
    }
}
