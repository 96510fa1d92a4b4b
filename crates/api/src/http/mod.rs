//! Requests before they reach a call: layers, limits, extractors, streams.

pub(crate) mod buffers;
pub(crate) mod cors;
pub(crate) mod extract;
pub(crate) mod layers;
pub(crate) mod link;
pub(crate) mod metrics;
pub(crate) mod rate;
pub(crate) mod spelling;
pub(crate) mod sse;
