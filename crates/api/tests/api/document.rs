use std::collections::BTreeSet;

use api::AuthMode;
use serde_json::Value;

use crate::support::TestApi;

/// Every operation of the document: method, path and the operation itself.
pub(crate) fn operations() -> Vec<(String, String, Value)> {
    let document = serde_json::to_value(api::openapi()).unwrap();
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
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../openapi/openapi.json");
    let committed = std::fs::read_to_string(file).unwrap_or_default();
    let now = api::openapi().to_pretty_json().unwrap() + "\n";
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
            ["/jobs", "/clusters", "/events", "/api/v1/internal", "/webhooks"]
                .iter()
                .any(|start| path.starts_with(start)),
            "{at}"
        );
    }
    assert!(ids.len() >= 9);
}

#[test]
fn every_reference_leads_somewhere() {
    let document = serde_json::to_value(api::openapi()).unwrap();
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

/// A field that nobody reads would be lost without a word, and one that is only ever sent is in no answer.
#[test]
fn what_is_sent_has_no_field_but_those_named_and_what_is_secret_never_comes_back() {
    let document = serde_json::to_value(api::openapi()).unwrap();
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
    let secrets = ["cloud_metadata", "password", "secret", "secret_env_vars", "url", "webhook"];
    assert_eq!(with(&sent, "writeOnly").iter().collect::<Vec<_>>(), secrets);
    assert_eq!(with(&answered, "writeOnly"), BTreeSet::new());
    assert_eq!(with(&sent, "readOnly"), BTreeSet::new());
}

#[tokio::test]
async fn the_served_document_is_the_one_that_is_committed() {
    let answer = TestApi::offline(AuthMode::Tokens).get("/openapi.json").await;
    assert_eq!(answer.header("content-type"), "application/json");
    assert_eq!(answer.json(), serde_json::to_value(api::openapi()).unwrap());
}
