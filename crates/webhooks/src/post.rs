//! One attempt to deliver a message.

use std::time::Duration;

use domain::Networks;
use ureq::{
    Agent, Error,
    unversioned::{resolver::DefaultResolver, transport::DefaultConnector},
};

use crate::{authorities::Authorities, resolver::Guarded};

/// A message, ready to be sent.
pub(crate) struct Message {
    pub(crate) url: String,
    pub(crate) id: String,
    pub(crate) timestamp: i64,
    pub(crate) signature: String,
    pub(crate) body: String,
}

/// How an attempt failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: Option<u16>,
    pub(crate) error: String,
    /// Whether trying again has a point.
    pub(crate) again: bool,
    /// When the receiver wants it (`Retry-After`), as it was written.
    pub(crate) retry_after: Option<String>,
}

/// The client that may call only what is allowed. It follows no redirect, uses no proxy and keeps no connection: each
/// of them would lead where nobody has looked.
pub(crate) fn agent(networks: Networks, authorities: &Authorities, timeout: Duration) -> Agent {
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .proxy(None)
        .max_idle_connections(0)
        .timeout_global(Some(timeout))
        .user_agent("tao-slurm")
        .tls_config(authorities.tls())
        .build();
    let resolver = Guarded { networks, inner: DefaultResolver::default() };
    Agent::with_parts(config, DefaultConnector::default(), resolver)
}

/// Posts it; the answer's status when it was taken. What the receiver says beside that is not read,
/// but for when to come back.
pub(crate) fn post(agent: &Agent, message: &Message) -> Result<u16, Failure> {
    let answered = agent
        .post(&message.url)
        .header("content-type", "application/json")
        .header("webhook-id", &message.id)
        .header("webhook-timestamp", message.timestamp.to_string())
        .header("webhook-signature", &message.signature)
        .send(&message.body);
    let response = answered.map_err(|error| Failure {
        status: None,
        error: in_words(&error),
        again: true,
        retry_after: None,
    })?;
    let status = response.status().as_u16();
    let error = match status {
        200..=299 => return Ok(status),
        300..=399 => format!("the receiver answered {status}; redirects are not followed"),
        // As the Standard Webhooks specification has it: whoever is gone wants no more of this.
        410 => "the receiver answered 410: it is gone".to_owned(),
        _ => format!("the receiver answered {status}"),
    };
    let asked = response.headers().get("retry-after").and_then(|value| value.to_str().ok());
    Err(Failure { status: Some(status), error, again: status != 410, retry_after: asked.map(str::to_owned) })
}

fn in_words(error: &Error) -> String {
    match error {
        Error::Other(inner) => inner.to_string(),
        Error::Timeout(_) => "the receiver did not answer in time".to_owned(),
        Error::HostNotFound => "no address was found for the name".to_owned(),
        error => error.to_string(),
    }
}
