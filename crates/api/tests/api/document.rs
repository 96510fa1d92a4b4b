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

#[tokio::test]
async fn the_served_document_is_the_one_that_is_committed() {
    let answer = TestApi::offline(AuthMode::Tokens).get("/openapi.json").await;
    assert_eq!(answer.header("content-type"), "application/json");
    assert_eq!(answer.json(), serde_json::to_value(api::openapi()).unwrap());
}
