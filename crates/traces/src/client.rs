//! The HTTP client that sends spans to the collector. It runs on the exporter's own thread.

use std::{
    io::Read,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use ureq::Agent;

const TIMEOUT: Duration = Duration::from_secs(5);
const MAX_RESPONSE_BYTES: u64 = 64 * 1024;

#[derive(Debug)]
pub(crate) struct Client {
    agent: Agent,
    /// Whether the last export failed, so that a failure is logged once and not every few seconds.
    failing: AtomicBool,
}

impl Client {
    pub(crate) fn new() -> Self {
        for outcome in ["sent", "failed"] {
            metrics::counter!("tao_slurm_trace_exports_total", "outcome" => outcome).increment(0);
        }
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(TIMEOUT))
            .max_redirects(0)
            .build();
        Self { agent: config.into(), failing: AtomicBool::new(false) }
    }

    fn post(&self, request: Request<Bytes>) -> Result<Response<Bytes>, ureq::Error> {
        let (parts, body) = request.into_parts();
        let response = self.agent.run(Request::from_parts(parts, body.to_vec()))?;
        let (parts, body) = response.into_parts();
        let mut bytes = Vec::new();
        body.into_reader().take(MAX_RESPONSE_BYTES).read_to_end(&mut bytes)?;
        Ok(Response::from_parts(parts, bytes.into()))
    }

    /// Counts the export, and logs when exports start to fail and when they succeed again.
    fn record(&self, result: &Result<Response<Bytes>, ureq::Error>) {
        let error = match result {
            Ok(response) if response.status().is_success() => None,
            Ok(response) => Some(format!("it answered with HTTP {}", response.status())),
            Err(error) => Some(error.to_string()),
        };
        let outcome = if error.is_none() { "sent" } else { "failed" };
        metrics::counter!("tao_slurm_trace_exports_total", "outcome" => outcome).increment(1);
        let failed_before = self.failing.swap(error.is_some(), Ordering::Relaxed);
        match error {
            Some(error) if !failed_before => {
                tracing::warn!(
                    error,
                    "the trace collector does not accept spans; they are dropped until it does"
                );
            }
            None if failed_before => tracing::info!("the trace collector accepts spans again"),
            _ => {}
        }
    }
}

#[async_trait::async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let result = self.post(request);
        self.record(&result);
        Ok(result?)
    }
}
