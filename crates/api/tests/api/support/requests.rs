//! Requests, and how their answers are read.

use axum::{
    body::Body,
    http::{HeaderMap, Method, Request, StatusCode, header, request},
    response::Response,
};
use http_body_util::BodyExt;
use serde_json::Value;
use tower::ServiceExt;

use super::{Answer, Events, TestApi, answer};
use crate::promised;

impl TestApi {
    /// The answer, which is one that the document has.
    pub(crate) async fn answer(&self, request: Request<Body>) -> Response {
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let response = self.router.clone().oneshot(request).await.unwrap();
        if self.is_whole {
            promised::is_kept(&method, uri.path(), response.status(), response.headers());
        }
        response
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Answer {
        self.read(request, |_| true).await
    }

    /// What is said of a request, and not what may go on and on after it: the body of a problem only.
    pub(crate) async fn verdict(&self, request: Request<Body>) -> Answer {
        self.read(request, answer::is_problem).await
    }

    async fn read(&self, request: Request<Body>, is_read: fn(&HeaderMap) -> bool) -> Answer {
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let (head, body) = self.answer(request).await.into_parts();
        let bytes = if is_read(&head.headers) {
            body.collect().await.unwrap().to_bytes().to_vec()
        } else {
            Vec::new()
        };
        let answer = Answer { status: head.status, headers: head.headers, bytes };
        if self.is_whole && answer::is_problem(&answer.headers) {
            promised::has_problem(&method, uri.path(), answer.status, &answer.json());
        }
        answer
    }

    /// An answer that goes on and on.
    pub(crate) async fn events(&self, path: &str, last: Option<&str>) -> Events {
        self.stream(Request::get(path), last).await
    }

    /// The same of somebody who shows a token.
    pub(crate) async fn events_as(&self, token: &str, path: &str, last: Option<&str>) -> Events {
        let request = Request::get(path).header(header::AUTHORIZATION, format!("Bearer {token}"));
        self.stream(request, last).await
    }

    async fn stream(&self, mut request: request::Builder, last: Option<&str>) -> Events {
        request = request.header(header::ACCEPT, "text/event-stream");
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let response = self.answer(request.body(Body::empty()).unwrap()).await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()[header::CONTENT_TYPE], "text/event-stream");
        Events::new(response.into_body())
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(Request::get(path).body(Body::empty()).unwrap()).await
    }

    pub(crate) async fn get_as(&self, token: &str, path: &str) -> Answer {
        self.call_as(token, Method::GET, path, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.post_text(path, &body.to_string()).await
    }

    pub(crate) async fn post_text(&self, path: &str, body: &str) -> Answer {
        let request = Request::post(path).header(header::CONTENT_TYPE, "application/json");
        self.send(request.body(Body::from(body.to_owned())).unwrap()).await
    }

    pub(crate) async fn call_as(
        &self,
        token: &str,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Answer {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::AUTHORIZATION, format!("Bearer {token}"))
            .header(header::CONTENT_TYPE, "application/json");
        let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
        self.send(request.body(body).unwrap()).await
    }

    /// Sends a job and returns its id.
    pub(crate) async fn job(&self, body: &Value) -> String {
        let answer = self.post("/jobs", body).await;
        assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text());
        answer.json()["id"].as_str().unwrap().to_owned()
    }
}
