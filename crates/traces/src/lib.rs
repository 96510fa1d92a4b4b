//! Where the time of one request goes, told to a collector of OpenTelemetry: request → step of the worker → command on the
//! cluster, in the trace that the job keeps.
//!
//! The spans of this crate are no part of the logs, and nothing else goes to the collector: no log line, no variable, no
//! script. While there is no collector they are not even made. Nothing here waits for the collector: what it does not take in
//! time is dropped.

mod client;
mod exporter;
mod span;

pub use exporter::{Collector, Exporter, ExporterError};
pub use span::{Steps, command, here, is_trace, request};
