//! The parts of the OpenAPI document beside its operations.

use serde_json::{Value, json};
use utoipa::OpenApi;

use crate::problem::{Document, FieldError};

mod bounds;
mod examples;
mod headers;
pub(crate) mod serve;
mod shapes;

/// The document before operations are added.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "tao-slurm",
        description = "Runs GPU jobs on Slurm clusters. Every error is an RFC 9457 problem with a stable `code`.",
        contact(name = "The operator of this service"),
        license(name = "Apache-2.0", identifier = "Apache-2.0")
    ),
    servers((url = "/", description = "The service that serves this document.")),
    tags(
        (name = "jobs", description = "Submit jobs, watch them, read their logs, cancel them."),
        (name = "clusters", description = "Read, change and test clusters."),
        (name = "callers", description = "Who calls, and the tokens of the service."),
        (name = "tao", description = "TAO's own API for the same jobs, for TAO's services."),
        (name = "service", description = "The service's health and metrics. These calls need no token.")
    ),
    components(schemas(Document, FieldError))
)]
pub(crate) struct Metadata;

/// The whole document: what the operations declare, security schemes, limits of requests, examples, common headers, and required
/// fields of views. Each field of a view is always present, and null without a value; the macros take `Option` to mean that a
/// field can be absent.
pub(crate) fn document(declared: &utoipa::openapi::OpenApi) -> Value {
    // As JSON, because utoipa's types give no access to nested schemas. A test compares the result with the committed document.
    let mut json = serde_json::to_value(declared).unwrap_or_default();
    merge(&mut json["components"]["securitySchemes"], security_schemes());
    for (path, item) in json["paths"].as_object_mut().into_iter().flatten() {
        for operation in item.as_object_mut().into_iter().flat_map(|item| item.values_mut()) {
            operation["tags"] = json!([tag(path)]);
        }
    }
    bounds::put(&mut json);
    for (schema, field) in SEALED {
        json["components"]["schemas"][schema]["properties"][field]["writeOnly"] = true.into();
    }
    examples::put(&mut json);
    headers::put(&mut json);
    for (name, schema) in json["components"]["schemas"].as_object_mut().into_iter().flatten() {
        if name.ends_with("View")
            || matches!(name.as_str(), "JobSummary" | "JobList" | "ClusterList" | "PartitionList")
            || matches!(name.as_str(), "EventEnd" | "LogEnd" | "NextAttempt")
        {
            require_all(schema);
        }
    }
    shapes::put(&mut json);
    // utoipa's types sort everything, and drop what is null.
    let sorted = serde_json::from_value::<utoipa::openapi::OpenApi>(json).and_then(serde_json::to_value);
    let mut json = sorted.unwrap_or_default();
    shapes::any_json(&mut json);
    shapes::in_reading_order(&mut json);
    json
}

/// The tag of the operations of a path.
fn tag(path: &str) -> &'static str {
    match path.split('/').nth(1) {
        Some("jobs" | "events" | "stats" | "webhooks") => "jobs",
        Some("clusters") => "clusters",
        Some("me" | "tokens") => "callers",
        Some("api") => "tao",
        _ => "service",
    }
}

fn security_schemes() -> Value {
    json!({
        "bearer": {
            "type": "http",
            "scheme": "bearer",
            "bearerFormat": "token",
            "description": "A token from `tao-slurm token create`, or a JWT of the issuer that the operator has configured. Each \
                call names the scope that it needs: `read` to read, `write` to change jobs, `admin` for clusters and other shared \
                settings. `admin` includes the other scopes and sees all jobs.",
        },
        "basic": {
            "type": "http",
            "scheme": "basic",
            "description": "The same token as the password of any user name, for TAO's client.",
        },
    })
}

/// Fields that no answer contains. For maps and free objects the macros put `writeOnly` in the wrong place or ignore it.
const SEALED: [(&str, &str); 7] = [
    ("JobRequest", "secret_env_vars"),
    ("JobRequest", "cloud_metadata"),
    ("RetryRequest", "secret_env_vars"),
    ("RetryRequest", "cloud_metadata"),
    ("RetryRequest", "components"),
    ("ComponentRequest", "secret_env"),
    ("ContainerJob", "cloud_metadata"),
];

/// JSON Merge Patch (RFC 7396), without removals.
fn merge(target: &mut Value, patch: Value) {
    match (target, patch) {
        (Value::Object(target), Value::Object(patch)) => {
            for (key, value) in patch {
                merge(target.entry(key).or_insert(Value::Null), value);
            }
        }
        (target, patch) => *target = patch,
    }
}

fn operations(document: &mut Value) -> impl Iterator<Item = &mut Value> {
    let items = document["paths"].as_object_mut().into_iter().flat_map(|paths| paths.values_mut());
    items.filter_map(Value::as_object_mut).flat_map(|item| item.values_mut())
}

fn require_all(schema: &mut Value) {
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        schema["required"] = properties.keys().cloned().collect();
    }
    for part in schema.get_mut("allOf").and_then(Value::as_array_mut).into_iter().flatten() {
        require_all(part);
    }
}
