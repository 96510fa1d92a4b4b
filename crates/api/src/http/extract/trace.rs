//! The trace of a request (W3C Trace Context).

use std::convert::Infallible;

use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, HeaderName, request::Parts},
};
use slurm::TraceParent;
use utoipa::IntoParams;

use crate::state::App;

const NAME: HeaderName = HeaderName::from_static("traceparent");

/// The request's own span, if it is exported: jobs that it creates belong to it.
#[derive(Debug, Clone)]
pub(crate) struct TraceHere(pub(crate) TraceParent);

/// The request's span or its `traceparent`. A malformed header is ignored, because proxies may garble it.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Header)]
pub(crate) struct Trace {
    /// The W3C Trace Context of the request. It is stored with the job and is part of Slurm's comment. A malformed header is
    /// ignored, and so is `tracestate`.
    #[param(value_type = Option<String>)]
    pub(crate) traceparent: Option<TraceParent>,
}

impl FromRequestParts<App> for Trace {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Infallible> {
        let here = parts.extensions.get::<TraceHere>().map(|TraceHere(trace)| trace.clone());
        Ok(Self { traceparent: here.or_else(|| trace_of(&parts.headers)) })
    }
}

pub(crate) fn trace_of(headers: &HeaderMap) -> Option<TraceParent> {
    let mut values = headers.get_all(NAME).into_iter();
    let trace = values.next()?.to_str().ok()?.parse().ok()?;
    if values.next().is_some() { None } else { Some(trace) }
}
