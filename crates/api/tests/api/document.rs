use std::collections::BTreeSet;

use api::AuthMode;
use serde_json::Value;

use crate::support::TestApi;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../openapi/openapi.json");

/// The committed document, which takes less time to read than to build. A test below compares both.
pub(crate) fn committed() -> Value {
    serde_json::from_slice(&std::fs::read(FILE).unwrap()).unwrap()
}

/// Every operation of the document: method, path and the operation itself.
pub(crate) fn operations() -> Vec<(String, String, Value)> {
    let document = committed();
    let paths = document["paths"].as_object().unwrap().clone();
    let flat = paths.into_iter().flat_map(|(path, item)| {
        let item = item.as_object().unwrap().clone();
        item.into_iter().map(move |(method, operation)| (method, path.clone(), operation))
    });
    flat.collect()
}

pub(crate) fn is_secured(operation: &Value) -> bool {
    operation["security"].as_array().unwrap().iter().any(|one| one.get("bearer").is_some())
}

#[test]
fn the_committed_document_is_what_the_code_says() {
    let committed = std::fs::read_to_string(FILE).unwrap_or_default();
    let now = serde_json::to_string_pretty(&api::openapi()).unwrap() + "\n";
    assert!(
        committed == now,
        "openapi/openapi.json is not current; run: cargo run -- openapi > openapi/openapi.json"
    );
}

#[test]
fn every_operation_is_described_in_full() {
    let mut ids = BTreeSet::new();
    for (method, path, operation) in operations() {
        let at = format!("{method} {path}");
        for text in ["operationId", "summary", "description"] {
            assert!(operation[text].as_str().is_some_and(|text| !text.is_empty()), "{at} has no {text}");
        }
        assert!(ids.insert(operation["operationId"].to_string()), "{at}: its operationId is taken");
        assert_eq!(operation["tags"].as_array().unwrap().len(), 1, "{at}");
        let responses = operation["responses"].as_object().unwrap();
        assert!(responses.contains_key("500"), "{at}");
        for (status, response) in responses.iter().filter(|(status, _)| status.as_str() >= "400") {
            let schema = &response["content"]["application/problem+json"]["schema"]["$ref"];
            assert_eq!(schema, "#/components/schemas/Problem", "{at} {status}");
        }
        if is_secured(&operation) {
            assert!(responses.contains_key("401") && responses.contains_key("403"), "{at}");
        }
        assert_eq!(
            is_secured(&operation),
            [
                "/jobs",
                "/pipelines",
                "/clusters",
                "/events",
                "/api/v1/internal",
                "/webhooks",
                "/tokens",
                "/stats"
            ]
            .iter()
            .any(|start| path.starts_with(start))
                || path == "/me",
            "{at}"
        );
    }
    assert!(ids.len() >= 9);
}

#[test]
fn every_reference_leads_somewhere() {
    let document = committed();
    let text = document.to_string();
    for reference in text.split("\"$ref\":\"#").skip(1).map(|rest| rest.split('"').next().unwrap()) {
        assert!(document.pointer(reference).is_some(), "{reference} leads nowhere");
    }
}

/// What a part of the document leads to: every object in it, each of them once.
fn objects_of(document: &Value, part: &Value, seen: &mut BTreeSet<String>, found: &mut Vec<Value>) {
    match part {
        Value::Object(fields) => {
            if let Some(place) = fields.get("$ref").and_then(Value::as_str)
                && seen.insert(place.to_owned())
            {
                objects_of(document, document.pointer(place.trim_start_matches('#')).unwrap(), seen, found);
            }
            if fields.get("properties").is_some_and(Value::is_object) {
                found.push(part.clone());
            }
            fields.values().for_each(|part| objects_of(document, part, seen, found));
        }
        Value::Array(parts) => parts.iter().for_each(|part| objects_of(document, part, seen, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// openapi-generator takes a `$ref` with a description inside a list for another schema, and its clients do not compile; an object
/// that can be null has no name to generate.
#[test]
fn nothing_is_in_a_form_that_a_generator_does_not_read() {
    fn look(part: &Value, found: &mut Vec<String>) {
        match part {
            Value::Object(fields) => {
                for list in
                    ["oneOf", "allOf", "anyOf"].iter().filter_map(|list| fields.get(*list)?.as_array())
                {
                    let told =
                        |part: &&Value| part.get("$ref").is_some() && part.get("description").is_some();
                    found.extend(list.iter().filter(told).map(ToString::to_string));
                }
                if fields.get("type").is_some_and(|kinds| *kinds == serde_json::json!(["object", "null"])) {
                    found.push(part.to_string());
                }
                fields.values().for_each(|part| look(part, found));
            }
            Value::Array(parts) => parts.iter().for_each(|part| look(part, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let document = committed();
    let mut found = Vec::new();
    look(&document, &mut found);
    assert!(found.is_empty(), "{found:#?}");
    let format = document["components"]["securitySchemes"]["bearer"]["bearerFormat"].as_str().unwrap();
    assert!(format.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{format} is part of generated code");
    assert!(document["servers"][0]["url"].is_string() && document["info"]["contact"]["name"].is_string());
}

#[test]
fn the_document_begins_with_what_is_used_most() {
    let document = committed();
    let schemes = document["components"]["securitySchemes"].as_object().unwrap();
    assert_eq!(schemes.keys().next().unwrap(), "bearer");
    for (path, expected) in [("/jobs", "201"), ("/jobs/{id}/cancel", "202")] {
        let responses = document["paths"][path]["post"]["responses"].as_object().unwrap();
        assert_eq!(responses.keys().next().unwrap(), expected, "{path}");
        assert!(responses.contains_key("200"), "{path}");
    }
}

/// A field that nobody reads would be lost without a word, and one that is only ever sent is in no answer.
#[test]
fn what_is_sent_has_no_field_but_those_named_and_what_is_secret_never_comes_back() {
    let document = committed();
    let (mut sent, mut answered) = (Vec::new(), Vec::new());
    for (_, _, operation) in operations() {
        objects_of(&document, &operation["requestBody"]["content"], &mut BTreeSet::new(), &mut sent);
        objects_of(&document, &operation["responses"], &mut BTreeSet::new(), &mut answered);
    }
    assert!(sent.len() > 10 && answered.len() > 50, "{} {}", sent.len(), answered.len());
    for object in &sent {
        assert_eq!(object["additionalProperties"], false, "{object}");
    }
    let with = |objects: &[Value], mark: &str| {
        let fields = objects.iter().flat_map(|object| object["properties"].as_object().unwrap().clone());
        fields.filter(|(_, field)| field[mark] == true).map(|(name, _)| name).collect::<BTreeSet<_>>()
    };
    let secrets = [
        "cloud_metadata",
        "components",
        "password",
        "secret",
        "secret_env",
        "secret_env_vars",
        "url",
        "webhook",
    ];
    assert_eq!(with(&sent, "writeOnly").iter().collect::<Vec<_>>(), secrets);
    assert_eq!(with(&answered, "writeOnly"), BTreeSet::new());
    assert_eq!(with(&sent, "readOnly"), BTreeSet::new());
}

#[tokio::test]
async fn the_served_document_is_the_one_that_is_committed() {
    let answer = TestApi::offline(AuthMode::Tokens).get("/openapi.json").await;
    assert_eq!(answer.header("content-type"), "application/json");
    assert_eq!(answer.json(), committed());
}
