//! Shows an OpenTelemetry collector where the time of a request goes: request → worker step → command on the cluster, in the
//! trace stored with the job.
//!
//! The collector gets the spans of this crate and nothing else: no log line, no variable, no script. The logs do not contain
//! these spans. Without a collector no span is created. The service never waits for the collector: spans that it does not
//! accept in time are dropped.

mod client;
mod exporter;
mod span;

pub use exporter::{Collector, Exporter, ExporterError};
pub use span::{Steps, command, here, is_trace, request};
