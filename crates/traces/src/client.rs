//! The way to the collector: the HTTP client that webhooks are posted with, on the exporter's own thread.

use std::{
    fmt,
    io::Read,
    pin::Pin,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use ureq::Agent;

/// A collector that takes longer is as good as none.
const TIMEOUT: Duration = Duration::from_secs(5);
const LONGEST_ANSWER: u64 = 64 * 1024;

pub(crate) struct Client {
    agent: Agent,
    /// So that a collector that is away is said once, and not every few seconds.
    failing: AtomicBool,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("failing", &self.failing).finish_non_exhaustive()
    }
}

impl Client {
    pub(crate) fn new() -> Self {
        for outcome in ["sent", "failed"] {
            metrics::counter!("trace_exports_total", "outcome" => outcome).increment(0);
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
        body.into_reader().take(LONGEST_ANSWER).read_to_end(&mut bytes)?;
        Ok(Response::from_parts(parts, bytes.into()))
    }

    /// Counts, and says when it begins to fail and when it goes again.
    fn note(&self, result: &Result<Response<Bytes>, ureq::Error>) {
        let why = match result {
            Ok(response) if response.status().is_success() => None,
            Ok(response) => Some(format!("it answered {}", response.status())),
            Err(error) => Some(error.to_string()),
        };
        let outcome = if why.is_none() { "sent" } else { "failed" };
        metrics::counter!("trace_exports_total", "outcome" => outcome).increment(1);
        let failed_before = self.failing.swap(why.is_some(), Ordering::Relaxed);
        match why {
            Some(error) if !failed_before => {
                tracing::warn!(
                    error,
                    "the collector of traces takes nothing; until it does, traces are dropped"
                );
            }
            None if failed_before => tracing::info!("the collector of traces takes them again"),
            _ => {}
        }
    }
}

impl HttpClient for Client {
    // Spelled out as `async_trait` would do it.
    fn send_bytes<'this, 'answer>(
        &'this self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'answer>>
    where
        'this: 'answer,
        Self: 'answer,
    {
        Box::pin(async move {
            let result = self.post(request);
            self.note(&result);
            Ok(result?)
        })
    }
}
