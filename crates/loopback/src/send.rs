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

use crate::{
    failure::Failure,
    path::{Query, filled},
};

/// The largest answer that is read into memory.
const LARGEST: usize = 32 * 1024 * 1024;

/// A call of the API whose answer has this shape.
#[derive(Debug)]
pub struct Call<T> {
    pub method: Method,
    /// As in the OpenAPI document.
    pub path: &'static str,
    shape: PhantomData<fn() -> T>,
}

impl<T> Call<T> {
    /// The call with this path, as in the OpenAPI document.
    pub const fn new(method: Method, path: &'static str) -> Self {
        Self { method, path, shape: PhantomData }
    }
}

/// An answer as it is.
#[derive(Debug)]
pub struct Document {
    /// A success, or "not modified".
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub bytes: Bytes,
}

impl Document {
    /// Reads the answer to this call.
    pub fn json<T: DeserializeOwned>(&self, call: &Call<T>) -> Result<T, Failure> {
        // A call without an answer, such as a deletion.
        let bytes: &[u8] = if self.bytes.is_empty() { b"null" } else { &self.bytes };
        serde_json::from_slice(bytes).map_err(|error| {
            tracing::error!(%error, path = call.path, "cannot read an answer of the API");
            Failure::Unreadable
        })
    }
}

/// The API with the rights of one caller, for those whose calls fail with `F`.
pub struct Api<F = Failure> {
    router: Router,
    /// None if the API takes every caller.
    token: Option<SecretString>,
    /// Headers that each call has.
    kept: HeaderMap,
    largest: usize,
    failing: PhantomData<fn() -> F>,
}

impl<F> Clone for Api<F> {
    fn clone(&self) -> Self {
        let Self { router, token, kept, largest, failing } = self;
        let (router, token, kept) = (router.clone(), token.clone(), kept.clone());
        Self { router, token, kept, largest: *largest, failing: *failing }
    }
}

impl<F> fmt::Debug for Api<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Api")
    }
}

/// A request and the calls that it leads to are one entry in searches of the log, and one trace.
const KEPT: [HeaderName; 3] = [
    HeaderName::from_static("x-request-id"),
    HeaderName::from_static("traceparent"),
    HeaderName::from_static("tracestate"),
];

impl<F: From<Failure>> Api<F> {
    pub fn new(router: Router, token: Option<SecretString>, headers: &HeaderMap) -> Self {
        let kept =
            KEPT.into_iter().filter_map(|name| Some((name.clone(), headers.get(&name)?.clone()))).collect();
        Self { router, token, kept, largest: LARGEST, failing: PhantomData }
    }

    /// The same with another header in each call.
    #[must_use]
    pub fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.kept.insert(name, value);
        self
    }

    /// The same for answers of at most so many bytes.
    #[must_use]
    pub fn at_most(mut self, largest: usize) -> Self {
        self.largest = largest;
        self
    }

    /// Reads what a path with these values returns.
    pub async fn get<T: DeserializeOwned>(
        &self,
        call: &Call<T>,
        values: &[&str],
        query: &Query,
    ) -> Result<T, F> {
        self.call(call, values, query, None).await
    }

    /// Changes something.
    pub async fn post<T: DeserializeOwned>(
        &self,
        call: &Call<T>,
        values: &[&str],
        body: Option<&Value>,
    ) -> Result<T, F> {
        self.call(call, values, &Query::new(), body).await
    }

    pub async fn call<T: DeserializeOwned>(
        &self,
        call: &Call<T>,
        values: &[&str],
        query: &Query,
        body: Option<&Value>,
    ) -> Result<T, F> {
        Ok(self.exchange(call, values, query, body).await?.json(call)?)
    }

    /// Reads an answer as it is.
    pub async fn document(
        &self,
        call: &Call<Document>,
        values: &[&str],
        query: &Query,
    ) -> Result<Document, F> {
        Ok(self.send(call, values, query, None, "*/*").await?)
    }

    /// The answer to any call, as it is.
    pub async fn exchange<T>(
        &self,
        call: &Call<T>,
        values: &[&str],
        query: &Query,
        body: Option<&Value>,
    ) -> Result<Document, F> {
        Ok(self.send(call, values, query, body, "application/json").await?)
    }

    /// The response to a read, whatever its status.
    pub async fn response<T>(&self, call: &Call<T>) -> Result<Response<Body>, F> {
        Ok(self.answer(self.request(call, &[], &Query::new(), None, "application/json")?).await)
    }

    /// The body of a stream of events. It ends when the caller loses the right to read it.
    pub async fn stream<T>(
        &self,
        call: &Call<T>,
        values: &[&str],
        query: &Query,
        last_event: Option<&HeaderValue>,
    ) -> Result<Option<Body>, F> {
        let mut request = self.request(call, values, query, None, "text/event-stream")?;
        if let Some(id) = last_event {
            request.headers_mut().insert("last-event-id", id.clone());
        }
        let response = self.answer(request).await;
        match response.status() {
            StatusCode::NO_CONTENT => Ok(None),
            status if status.is_success() => Ok(Some(response.into_body())),
            status => Err(Failure::of_answer(status, &self.read(response.into_body()).await?).into()),
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
        let bytes = self.read(body).await?;
        if head.status.is_success() || head.status == StatusCode::NOT_MODIFIED {
            return Ok(Document { status: head.status, headers: head.headers, bytes });
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
            .map_err(|_| Failure::NoAddress)?;
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

    async fn read(&self, body: Body) -> Result<Bytes, Failure> {
        match Limited::new(body, self.largest).collect().await {
            Ok(body) => Ok(body.to_bytes()),
            Err(error) if error.downcast_ref::<LengthLimitError>().is_some() => {
                Err(Failure::TooLarge(self.largest))
            }
            Err(error) => {
                tracing::error!(%error, "an answer of the API broke off");
                Err(Failure::Unreadable)
            }
        }
    }
}

/// Declares calls. `is` names the structures of an answer that is read in several parts.
#[macro_export]
macro_rules! calls {
    ($($name:ident: $answer:ty $(, is $($part:ty),+)? = $method:ident $path:literal;)+) => {
        $(pub(crate) static $name: $crate::Call<$answer> = $crate::Call::new(axum::http::Method::$method, $path);)+

        /// Each call, with the fields that are read in its answer.
        #[cfg(test)]
        pub(super) fn all() -> Vec<$crate::document::Read> {
            vec![$((axum::http::Method::$method, $path, $crate::calls!(@fields $answer $(, $($part),+)?))),+]
        }
    };
    (@fields $answer:ty) => { $crate::document::fields::<$answer>() };
    (@fields $answer:ty, $($part:ty),+) => { [$($crate::document::fields::<$part>()),+].concat() };
}
