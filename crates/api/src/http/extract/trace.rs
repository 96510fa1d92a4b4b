//! The trace that a request belongs to (W3C Trace Context).

use std::convert::Infallible;

use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, HeaderName, request::Parts},
};
use slurm::TraceParent;
use utoipa::{
    IntoParams,
    openapi::{
        ObjectBuilder, Required,
        path::{Parameter, ParameterBuilder, ParameterIn},
        schema::Type,
    },
};

use crate::state::App;

const NAME: HeaderName = HeaderName::from_static("traceparent");

/// Where in its trace the request is, when it is told to a collector: what it makes belongs there.
#[derive(Debug, Clone)]
pub(crate) struct TraceHere(pub(crate) TraceParent);

/// The request's `traceparent`, or our own place below it. One that is not well-formed is none: nobody is refused because a proxy garbled it.
#[derive(Debug)]
pub(crate) struct Trace(pub(crate) Option<TraceParent>);

impl FromRequestParts<App> for Trace {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Infallible> {
        let here = parts.extensions.get::<TraceHere>().map(|TraceHere(trace)| trace.clone());
        Ok(Self(here.or_else(|| trace_of(&parts.headers))))
    }
}

pub(crate) fn trace_of(headers: &HeaderMap) -> Option<TraceParent> {
    let mut values = headers.get_all(NAME).into_iter();
    let trace = values.next()?.to_str().ok()?.parse().ok()?;
    if values.next().is_some() { None } else { Some(trace) }
}

impl IntoParams for Trace {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let description = "The trace of W3C Trace Context that the request belongs to. It is kept with the job and stands \
            in Slurm's comment; one that is not well-formed is ignored, and so is `tracestate`.";
        let parameter = ParameterBuilder::new()
            .name("traceparent")
            .parameter_in(ParameterIn::Header)
            .required(Required::False)
            .description(Some(description))
            .schema(Some(ObjectBuilder::new().schema_type(Type::String)));
        vec![parameter.build()]
    }
}
