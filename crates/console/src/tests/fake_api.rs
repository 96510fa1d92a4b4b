//! An API that takes one token, notes what it was asked, and answers with what a test gives it.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use axum::{
    Json, Router,
    body::Body,
    extract::{Request, State},
    http::{HeaderMap, Method, StatusCode, header},
    response::{IntoResponse, Response},
};
use chrono::DateTime;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::{
    Issuer, LogIn, Now, SessionKey, Settings,
    model::{Diagnosis, Job, JobSummary},
    mount,
};

pub(super) const TOKEN: &str = "tsl_good";
pub(super) const JOB: &str = "01997a5e-7c1b-7c05-9d1e-0c5f3a0b5a11";

/// A request that reached the API.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) method: Method,
    pub(super) uri: String,
    pub(super) headers: HeaderMap,
    pub(super) body: String,
}

#[derive(Clone, Default)]
pub(super) struct FakeApi {
    answers: Arc<Mutex<HashMap<String, (StatusCode, Value)>>>,
    texts: Arc<Mutex<HashMap<String, String>>>,
    asked: Arc<Mutex<Vec<Asked>>>,
    is_open: bool,
    takes_all: Arc<AtomicBool>,
}

impl FakeApi {
    /// With an answer for each path that a page reads.
    pub(super) fn new() -> Self {
        let api = Self::default();
        for (path, answer) in super::answers::all() {
            api.answer(&path, StatusCode::OK, answer);
        }
        api.text(&format!("/jobs/{JOB}/script"), "#!/bin/bash\ntrue\n");
        api.text(&format!("/jobs/{JOB}/logs"), "one\ntwo\n");
        api.text("/events", "");
        api
    }

    /// One that takes every caller.
    pub(super) fn open() -> Self {
        Self { is_open: true, ..Self::new() }
    }

    pub(super) fn answer(&self, path: &str, status: StatusCode, answer: Value) {
        self.answers.lock().unwrap().insert(path.to_owned(), (status, answer));
    }

    pub(super) fn text(&self, path: &str, text: &str) {
        self.texts.lock().unwrap().insert(path.to_owned(), text.to_owned());
    }

    pub(super) fn refuse(&self, path: &str, status: StatusCode, code: &str, detail: &str) {
        self.answer(
            path,
            status,
            json!({"title": "Refused", "detail": detail, "code": code, "request_id": "r-1"}),
        );
    }

    pub(super) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// Forgets what it was asked.
    pub(super) fn forget(&self) {
        self.asked.lock().unwrap().clear();
    }

    pub(super) fn answers(&self) -> Vec<(String, Value)> {
        let answers = self.answers.lock().unwrap();
        answers.iter().map(|(path, (_, answer))| (path.clone(), answer.clone())).collect()
    }

    /// Takes every token from now on.
    pub(super) fn answer_everybody(&self) {
        self.takes_all.store(true, Ordering::Relaxed);
    }

    /// The pages before this API.
    pub(super) fn console(&self) -> Router {
        let now = || "2026-11-28T01:00:00Z".parse().unwrap_or(DateTime::UNIX_EPOCH);
        self.console_at(None, Arc::new(now))
    }

    /// The same with an issuer and a clock.
    pub(super) fn console_at(&self, issuer: Option<Arc<dyn Issuer>>, now: Now) -> Router {
        let login = if self.is_open { LogIn::Nothing } else { LogIn::Token };
        let settings = Settings { login, issuer, key: SessionKey::derive(&[7; 32]), now };
        mount(Router::new().fallback(answer).with_state(self.clone()), settings)
    }
}

async fn answer(State(api): State<FakeApi>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let body = String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap();
    let path = head.uri.path().to_owned();
    let authorization =
        head.headers.get(header::AUTHORIZATION).map(|value| value.to_str().unwrap().to_owned());
    api.asked.lock().unwrap().push(Asked {
        method: head.method,
        uri: head.uri.to_string(),
        headers: head.headers,
        body,
    });
    if path == "/" {
        return Json(json!({"service": "tao-slurm"})).into_response();
    }
    let is_open = api.is_open || api.takes_all.load(Ordering::Relaxed);
    if !is_open && authorization.as_deref() != Some(&format!("Bearer {TOKEN}")) {
        let problem = json!({"title": "A valid token is required", "detail": "The token is unknown, expired or revoked.", "code": "unauthorized"});
        return (StatusCode::UNAUTHORIZED, Json(problem)).into_response();
    }
    if let Some(text) = api.texts.lock().unwrap().get(&path) {
        return text.clone().into_response();
    }
    let missing =
        || (StatusCode::NOT_FOUND, json!({"title": "No such path", "detail": "No.", "code": "not_found"}));
    let (status, answer) = api.answers.lock().unwrap().get(&path).cloned().unwrap_or_else(missing);
    (status, Json(answer)).into_response()
}

/// An answer of the console.
#[derive(Debug)]
pub(super) struct Shown {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) text: String,
}

impl Shown {
    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

/// Sends a request with these headers; a body is a form.
pub(super) async fn send(
    console: &Router,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    form: Option<&str>,
) -> Shown {
    let mut request = Request::builder().method(method).uri(path).header("host", "console.example");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    if form.is_some() {
        request = request.header("content-type", "application/x-www-form-urlencoded");
    }
    let body = form.map_or_else(Body::empty, |form| Body::from(form.to_owned()));
    let answer = console.clone().oneshot(request.body(body).unwrap()).await.unwrap();
    let (head, body) = answer.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    Shown { status: head.status, headers: head.headers, text: String::from_utf8_lossy(&bytes).into_owned() }
}

pub(super) async fn get(console: &Router, path: &str, headers: &[(&str, &str)]) -> Shown {
    send(console, Method::GET, path, headers, None).await
}

/// Logs in and returns the cookie to send.
pub(super) async fn logged_in(console: &Router) -> String {
    let form = format!("token={TOKEN}");
    let answer =
        send(console, Method::POST, "/ui/login", &[("sec-fetch-site", "same-origin")], Some(&form)).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER, "{}", answer.text);
    answer.header("set-cookie").split(';').next().unwrap().to_owned()
}

/// A job in a list, with changed fields, and without times that are not among them.
pub(crate) fn summary(changed: &Value) -> JobSummary {
    let mut changed = changed.clone();
    for name in ["submitted_on", "started_on", "finished_on"] {
        changed[name] = changed[name].take();
    }
    job(&changed).summary
}

/// A job with changed fields.
pub(crate) fn job(changed: &Value) -> Job {
    let mut job = super::answers::job();
    for (name, value) in changed.as_object().unwrap() {
        job[name] = value.clone();
    }
    serde_json::from_value(job).unwrap()
}

/// Why that job failed.
pub(crate) fn diagnosis() -> Diagnosis {
    serde_json::from_value(super::answers::diagnosis()).unwrap()
}
