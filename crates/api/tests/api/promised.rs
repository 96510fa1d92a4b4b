//! Every answer of these tests against the document: a status, a header or a type of content that it does not have of the
//! operation is one that no client can be made for.

use std::sync::LazyLock;

use axum::http::{HeaderMap, Method, StatusCode, header};
use serde_json::Value;

use crate::document::{committed, operations};

static OPERATIONS: LazyLock<Vec<(String, String, Value)>> = LazyLock::new(operations);

/// Of each answer that has content, whatever it is about.
const OF_CONTENT: [header::HeaderName; 2] = [header::CONTENT_TYPE, header::CONTENT_LENGTH];

/// Fails when the answer is none of those that the document has for this request.
#[track_caller]
pub(crate) fn is_kept(method: &Method, path: &str, status: StatusCode, headers: &HeaderMap) {
    let Some(operation) = operation(method, path) else { return };
    let at = format!("{method} {path}: {status}");
    let response = &operation["responses"][status.as_str()];
    assert!(response.is_object(), "{at} is not in the document");
    // Pages of other origins are let in by the configuration, and read `Vary` for that.
    let of_origins = |name: &str| {
        name.starts_with("access-control-")
            || (name == "vary" && headers.contains_key("access-control-allow-origin"))
    };
    for name in headers.keys().filter(|name| !OF_CONTENT.contains(name) && !of_origins(name.as_str())) {
        let mut documented = response["headers"].as_object().into_iter().flat_map(|headers| headers.keys());
        assert!(
            documented.any(|documented| name.as_str().eq_ignore_ascii_case(documented)),
            "{at} has a header `{name}` that is not in the document"
        );
    }
    let Some(kind) = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()) else { return };
    let kind = kind.split(';').next().unwrap_or_default();
    assert!(
        response["content"][kind].is_object(),
        "{at} has content of {kind}, which is not in the document"
    );
}

/// Fails when the document does not have the problem of this code among those of the request.
#[track_caller]
pub(crate) fn has_problem(method: &Method, path: &str, status: StatusCode, problem: &Value) {
    let Some(operation) = operation(method, path) else { return };
    let told = operation["responses"][status.as_str()]["description"].as_str().unwrap_or_default();
    let code = problem["code"].as_str().unwrap_or_default();
    assert!(
        told.contains(&format!("(`{code}`)")),
        "{method} {path}: {status} `{code}` is not in the document"
    );
}

/// Fails when the data of a streamed event fits none of the schemas of events, or several.
#[track_caller]
pub(crate) fn is_one_event(data: &Value) {
    static DOCUMENT: LazyLock<Value> = LazyLock::new(committed);
    let schemas = &DOCUMENT["components"]["schemas"];
    let lists = ["StreamedEvent", "LogEvent"].map(|name| schemas[name]["oneOf"].as_array().unwrap());
    let variants = lists.into_iter().flatten().map(|variant| variant["$ref"].as_str().unwrap());
    let fits = |place: &&str| {
        let schema = DOCUMENT.pointer(place.trim_start_matches('#')).unwrap();
        let has = |name: &Value| data.get(name.as_str().unwrap()).is_some();
        let is_allowed = |(name, field): (&String, &Value)| match (data.get(name), field["enum"].as_array()) {
            (Some(value), Some(values)) => values.contains(value),
            _ => true,
        };
        schema["required"].as_array().unwrap().iter().all(has)
            && schema["properties"].as_object().unwrap().iter().all(is_allowed)
    };
    let fitting: Vec<_> = variants.filter(fits).collect();
    assert_eq!(fitting.len(), 1, "{data} fits {fitting:?}");
}

/// The operation of the document that answers; the one without a parameter goes before the one with.
fn operation(method: &Method, path: &str) -> Option<&'static Value> {
    let method = if method == Method::HEAD { Method::GET } else { method.clone() };
    let path = path.split('?').next().unwrap_or_default();
    let fits = |template: &str| {
        let (mut ours, mut theirs) = (path.split('/'), template.split('/'));
        ours.by_ref().zip(theirs.by_ref()).all(|(ours, theirs)| theirs.starts_with('{') || ours == theirs)
            && path.split('/').count() == template.split('/').count()
    };
    let all = OPERATIONS
        .iter()
        .filter(|(known, template, _)| method.as_str().eq_ignore_ascii_case(known) && fits(template));
    all.min_by_key(|(_, template, _)| template.matches('{').count()).map(|(_, _, operation)| operation)
}

#[test]
fn an_answer_that_the_document_does_not_have_is_noticed() {
    use std::panic::catch_unwind;

    let kept = |method: Method, path: &'static str, status: u16, headers: &[(&'static str, &'static str)]| {
        let pairs = headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        let headers = pairs.collect::<HeaderMap>();
        catch_unwind(|| is_kept(&method, path, StatusCode::from_u16(status).unwrap(), &headers)).is_ok()
    };
    let json = ("content-type", "application/json");
    assert!(kept(Method::GET, "/jobs?limit=1", 200, &[json, ("link", "x"), ("x-request-id", "x")]));
    assert!(!kept(Method::GET, "/jobs", 202, &[json]), "a status");
    assert!(!kept(Method::GET, "/jobs", 200, &[json, ("x-else", "x")]), "a header");
    assert!(!kept(Method::GET, "/jobs", 200, &[("content-type", "text/html")]), "a type");
    assert!(!kept(Method::POST, "/jobs/validate", 201, &[json]), "it is no job of that name");
    assert!(kept(Method::GET, "/nowhere", 299, &[]), "nothing is promised there");
}
