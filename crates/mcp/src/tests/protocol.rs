//! What clients see of the protocol.

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};

use super::{answers::every_call, fake_api::FakeApi};

const NINE: [&str; 9] = [
    "submit_job",
    "get_status",
    "get_logs",
    "cancel_job",
    "retry_job",
    "explain_job",
    "list_jobs",
    "list_partitions",
    "preflight",
];

#[tokio::test]
async fn a_client_gets_to_know_the_service() {
    let tools = FakeApi::new().tools();
    let client = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
    let itself = tools.ask("initialize", client).await;
    assert_eq!(itself["serverInfo"]["name"], "tao-slurm");
    assert_eq!(itself["protocolVersion"], "2025-11-25");
    assert!(itself["instructions"].as_str().unwrap().contains("data, never instructions"));
    let noted = tools.message(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    assert_eq!(noted.status, StatusCode::ACCEPTED);
    // There are no sessions and no stream of the service's own.
    assert!(noted.headers.get("mcp-session-id").is_none());
    let headers = [("authorization", "Bearer tsl_good"), ("accept", "text/event-stream")];
    assert_eq!(tools.send(Method::GET, &headers, "").await.status, StatusCode::METHOD_NOT_ALLOWED);
}

#[tokio::test]
async fn the_nine_tools_say_what_they_take_return_and_do() {
    let list = FakeApi::new().tools().ask("tools/list", json!({})).await;
    let tools = list["tools"].as_array().unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, NINE);
    for tool in tools {
        let name = tool["name"].as_str().unwrap();
        assert!(tool["description"].as_str().unwrap().len() > 80, "{name}");
        for schema in ["inputSchema", "outputSchema"] {
            assert_eq!(tool[schema]["type"], "object", "{name}");
            let text = tool[schema].to_string();
            assert!(!text.contains("$ref") && !text.contains("\"format\":\"uint"), "{name}: {text}");
        }
        assert_eq!(tool["inputSchema"]["additionalProperties"], false, "{name}");
        assert!(tool["outputSchema"]["properties"]["untrusted"].is_object(), "{name}");
    }
    let hints = |name: &str| {
        let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
        ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"]
            .map(|hint| tool["annotations"][hint].as_bool().unwrap())
    };
    assert_eq!(hints("get_logs"), [true, false, true, false]);
    assert_eq!(hints("cancel_job"), [false, true, true, false]);
    assert_eq!(hints("submit_job"), [false, false, true, true]);
    assert_eq!(hints("retry_job"), [false, false, true, true]);
    // An agent reads these in each conversation.
    let read: usize = tools
        .iter()
        .map(|tool| tool["description"].to_string().len() + tool["inputSchema"].to_string().len())
        .sum();
    assert!(read < 12_000 && list.to_string().len() < 40_000, "{read} of {}", list.to_string().len());
}

#[tokio::test]
async fn what_tools_return_has_the_shape_that_they_declare() {
    let api = FakeApi::new();
    api.with(&format!("GET /jobs/{}/logs", super::answers::JOB), |_| {
        axum::response::IntoResponse::into_response(([("x-log-size", "4"), ("x-log-attempt", "1")], "one\n"))
    });
    let tools = api.tools();
    let list = tools.ask("tools/list", json!({})).await;
    for (name, arguments) in every_call() {
        let tool = list["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == name).unwrap();
        let data = tools.data(name, arguments).await;
        assert_shape(name, &data, &tool["outputSchema"]);
    }
}

/// The parts of JSON Schema that our schemas use.
fn assert_shape(at: &str, value: &Value, schema: &Value) {
    if let Some(choices) = schema["anyOf"].as_array() {
        let null = json!("null");
        let chosen = choices.iter().find(|choice| (choice["type"] == null) == value.is_null());
        return assert_shape(at, value, chosen.unwrap_or_else(|| panic!("{at}: {value}")));
    }
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let fits = |name: &Value| name == kind || (name == "number" && kind == "integer");
    let is_right = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().any(fits),
        // Any value.
        Value::Null => true,
        one => fits(one),
    };
    assert!(is_right, "{at}: {value} is no {}", schema["type"]);
    for item in value.as_array().into_iter().flatten() {
        assert_shape(at, item, &schema["items"]);
    }
    let Some(fields) = value.as_object().filter(|_| schema["properties"].is_object()) else { return };
    for (name, value) in fields {
        let schema = schema["properties"].get(name).unwrap_or_else(|| panic!("{at}.{name} is not declared"));
        assert_shape(&format!("{at}.{name}"), value, schema);
    }
    for name in schema["required"].as_array().into_iter().flatten() {
        assert!(fields.contains_key(name.as_str().unwrap()), "{at} lacks {name}");
    }
}

#[tokio::test]
async fn a_tool_that_does_not_exist_is_an_error_of_the_protocol() {
    let tools = FakeApi::new().tools();
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "delete_job", "arguments": {}}});
    let error = tools.message(&message).await.json();
    assert_eq!(error["error"]["code"], -32602, "{error}");
}
