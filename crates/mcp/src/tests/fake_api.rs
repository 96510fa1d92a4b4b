//! An API that takes one token, notes what it was asked, and answers with what a test gives it; and a client of the tools before it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use axum::{
    Json, Router,
    body::{Body, to_bytes},
    extract::{Request, State},
    http::{HeaderMap, Method, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};
use tower::ServiceExt;

use super::answers;
use crate::mount;

pub(super) const TOKEN: &str = "tsl_good";

/// A request that reached the API.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    /// Its method and address.
    pub(super) what: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Value,
}

type Answering = Arc<dyn Fn(&Asked) -> Response + Send + Sync>;

#[derive(Clone, Default)]
pub(super) struct FakeApi {
    answers: Arc<Mutex<HashMap<String, Answering>>>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl FakeApi {
    pub(super) fn new() -> Self {
        let api = Self::default();
        for (what, answer) in answers::all() {
            api.answer(&what, StatusCode::OK, answer);
        }
        api
    }

    /// Answers a method and a path from now on.
    pub(super) fn with(&self, what: &str, answering: impl Fn(&Asked) -> Response + Send + Sync + 'static) {
        self.answers.lock().unwrap().insert(what.to_owned(), Arc::new(answering));
    }

    pub(super) fn answer(&self, what: &str, status: StatusCode, answer: Value) {
        self.with(what, move |_| (status, Json(answer.clone())).into_response());
    }

    pub(super) fn refuse(&self, what: &str, status: StatusCode, code: &str, detail: &str) {
        let problem = json!({"title": "Refused", "detail": detail, "code": code, "request_id": "r-1"});
        self.answer(what, status, problem);
    }

    /// What it was asked, but for who asks.
    pub(super) fn asked(&self) -> Vec<Asked> {
        let asked = self.asked.lock().unwrap().clone();
        asked.into_iter().filter(|asked| asked.what != "GET /me").collect()
    }

    pub(super) fn tools(&self) -> Tools {
        let rest = Router::new().fallback(async || "the rest");
        Tools { router: mount(rest, Router::new().fallback(answer).with_state(self.clone())) }
    }
}

async fn answer(State(api): State<FakeApi>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let bytes = to_bytes(body, usize::MAX).await.unwrap();
    let asked = Asked {
        what: format!("{} {}", head.method, head.uri),
        headers: head.headers,
        body: serde_json::from_slice(&bytes).unwrap_or_default(),
    };
    api.asked.lock().unwrap().push(asked.clone());
    let authorization = asked.headers.get(header::AUTHORIZATION).map(|value| value.to_str().unwrap());
    if authorization != Some(&format!("Bearer {TOKEN}")) {
        let problem =
            json!({"title": "A valid token is required", "detail": "No token.", "code": "unauthorized"});
        return (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Bearer")], Json(problem))
            .into_response();
    }
    let answering = api.answers.lock().unwrap().get(&format!("{} {}", head.method, head.uri.path())).cloned();
    if let Some(answering) = answering {
        return answering(&asked);
    }
    let problem = json!({"title": "No such job", "detail": "There is no such job.", "code": "job_not_found"});
    (StatusCode::NOT_FOUND, Json(problem)).into_response()
}

/// A client of the tools.
pub(super) struct Tools {
    pub(super) router: Router,
}

/// An answer of the tools.
#[derive(Debug)]
pub(super) struct Got {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) text: String,
}

impl Got {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }
}

impl Tools {
    pub(super) async fn send(&self, method: Method, headers: &[(&str, &str)], body: impl Into<Body>) -> Got {
        let mut request = Request::builder().method(method).uri("/mcp").header("host", "tao.example");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = self.router.clone().oneshot(request.body(body.into()).unwrap()).await.unwrap();
        let (head, body) = response.into_parts();
        let bytes = to_bytes(body, usize::MAX).await.unwrap();
        Got { status: head.status, headers: head.headers, text: String::from_utf8(bytes.to_vec()).unwrap() }
    }

    /// Sends a message with the token.
    pub(super) async fn message(&self, message: &Value) -> Got {
        let headers = [
            ("authorization", "Bearer tsl_good"),
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            ("mcp-protocol-version", "2025-11-25"),
        ];
        self.send(Method::POST, &headers, message.to_string()).await
    }

    /// Calls a method of the protocol, and returns its result.
    pub(super) async fn ask(&self, method: &str, parameters: Value) -> Value {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters});
        let got = self.message(&message).await;
        assert_eq!(got.status, StatusCode::OK, "{}", got.text);
        got.json()["result"].clone()
    }

    pub(super) async fn call(&self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({"name": tool, "arguments": arguments})).await
    }

    /// Calls a tool that must succeed, and returns its data.
    pub(super) async fn data(&self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments).await;
        assert_eq!(result["isError"], false, "{result}");
        let text = result["content"][1]["text"].as_str().unwrap();
        let data = result["structuredContent"].clone();
        assert_eq!(serde_json::from_str::<Value>(text).unwrap(), data, "clients read one or the other");
        data
    }

    /// Calls a tool that must refuse, and returns its error.
    pub(super) async fn error(&self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments).await;
        assert_eq!(result["isError"], true, "{result}");
        assert!(result.get("structuredContent").is_none(), "the schema is for answers: {result}");
        let text = result["content"][1]["text"].as_str().unwrap();
        serde_json::from_str::<Value>(text).unwrap()["error"].clone()
    }
}
