//! Sends a request to the API's router and reads the answer.

use std::{fmt, marker::PhantomData};

use axum::{
    Router,
    body::{Body, Bytes},
    http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header},
};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use secrecy::{ExposeSecret, SecretString};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tower::ServiceExt;

use super::{
    failure::Failure,
    path::{Query, filled},
};

/// The largest answer that a page reads into memory.
const LARGEST: usize = 32 * 1024 * 1024;

/// A call of the API whose answer has this shape.
#[derive(Debug)]
pub(crate) struct Call<T> {
    pub(crate) method: Method,
    /// As in the OpenAPI document.
    pub(crate) path: &'static str,
    shape: PhantomData<fn() -> T>,
}

impl<T> Call<T> {
    pub(super) const fn new(method: Method, path: &'static str) -> Self {
        Self { method, path, shape: PhantomData }
    }
}

/// An answer that is no JSON.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) headers: HeaderMap,
    pub(crate) bytes: Bytes,
}

/// The API with the rights of one visitor.
#[derive(Clone)]
pub(crate) struct Api {
    router: Router,
    /// None if the API takes every caller.
    token: Option<SecretString>,
    /// Headers of the visitor's request that its calls have too.
    kept: HeaderMap,
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Api")
    }
}

/// One request for a page is one entry in searches of the log, and one trace.
const KEPT: [HeaderName; 3] = [
    HeaderName::from_static("x-request-id"),
    HeaderName::from_static("traceparent"),
    HeaderName::from_static("tracestate"),
];

impl Api {
    pub(crate) fn new(router: Router, token: Option<SecretString>, headers: &HeaderMap) -> Self {
        let kept =
            KEPT.into_iter().filter_map(|name| Some((name.clone(), headers.get(&name)?.clone()))).collect();
        Self { router, token, kept }
    }

    /// Reads what a path with these values returns.
    pub(crate) async fn get<T: DeserializeOwned>(
        &self,
        call: &Call<T>,
        values: &[&str],
        query: &Query,
    ) -> Result<T, Failure> {
        self.call(call, values, query, None).await
    }

    /// Changes something.
    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        call: &Call<T>,
        values: &[&str],
        body: Option<&Value>,
    ) -> Result<T, Failure> {
        self.call(call, values, &Query::new(), body).await
    }

    pub(crate) async fn call<T: DeserializeOwned>(
        &self,
        call: &Call<T>,
        values: &[&str],
        query: &Query,
        body: Option<&Value>,
    ) -> Result<T, Failure> {
        let Document { bytes, .. } = self.send(call, values, query, body, "application/json").await?;
        // A call without an answer, such as a deletion.
        let bytes = if bytes.is_empty() { Bytes::from_static(b"null") } else { bytes };
        serde_json::from_slice(&bytes).map_err(|error| {
            tracing::error!(%error, path = call.path, "a page cannot read an answer of the API");
            Failure::unreadable()
        })
    }

    /// Reads an answer that is no JSON.
    pub(crate) async fn document(
        &self,
        call: &Call<Document>,
        values: &[&str],
        query: &Query,
    ) -> Result<Document, Failure> {
        self.send(call, values, query, None, "*/*").await
    }

    /// The body of a stream of events. It ends when the visitor loses the right to read it.
    pub(crate) async fn stream<T>(
        &self,
        call: &Call<T>,
        values: &[&str],
        query: &Query,
        last_event: Option<&HeaderValue>,
    ) -> Result<Option<Body>, Failure> {
        let mut request = self.request(call, values, query, None, "text/event-stream")?;
        if let Some(id) = last_event {
            request.headers_mut().insert("last-event-id", id.clone());
        }
        let response = self.answer(request).await;
        match response.status() {
            StatusCode::NO_CONTENT => Ok(None),
            status if status.is_success() => Ok(Some(response.into_body())),
            status => Err(Failure::of_answer(status, &read(response.into_body()).await?)),
        }
    }

    async fn send<T>(
        &self,
        call: &Call<T>,
        values: &[&str],
        query: &Query,
        body: Option<&Value>,
        accept: &'static str,
    ) -> Result<Document, Failure> {
        let response = self.answer(self.request(call, values, query, body, accept)?).await;
        let (head, body) = response.into_parts();
        let bytes = read(body).await?;
        if head.status.is_success() {
            return Ok(Document { headers: head.headers, bytes });
        }
        Err(Failure::of_answer(head.status, &bytes))
    }

    async fn answer(&self, request: Request<Body>) -> Response<Body> {
        match self.router.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }

    fn request<T>(
        &self,
        call: &Call<T>,
        values: &[&str],
        query: &Query,
        body: Option<&Value>,
        accept: &'static str,
    ) -> Result<Request<Body>, Failure> {
        let request = Request::builder().method(&call.method).uri(query.after(&filled(call.path, values)));
        let mut request = request
            .body(body.map_or_else(Body::empty, |body| Body::from(body.to_string())))
            .map_err(|_| Failure::no_page())?;
        let headers = request.headers_mut();
        headers.extend(self.kept.clone());
        headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
        if body.is_some() {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        if let Some(token) = &self.token {
            let text = format!("Bearer {}", token.expose_secret());
            // A token of other characters is none of the API's.
            let mut value = HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("Bearer ?"));
            value.set_sensitive(true);
            headers.insert(header::AUTHORIZATION, value);
        }
        Ok(request)
    }
}

async fn read(body: Body) -> Result<Bytes, Failure> {
    match Limited::new(body, LARGEST).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.downcast_ref::<LengthLimitError>().is_some() => {
            let detail = format!("It has more than {} MiB. Read it by the API.", LARGEST / 1024 / 1024);
            Err(Failure::new(StatusCode::BAD_GATEWAY, "Too much for a page", detail))
        }
        Err(error) => {
            tracing::error!(%error, "an answer of the API broke off");
            Err(Failure::unreadable())
        }
    }
}
