//! Requests to an issuer of tokens: to the given address only, with limits of time and size.

use std::{
    io::{self, Read},
    time::Duration,
};

use ureq::Agent;
use webhooks::Authorities;

/// Ten times the size of a few keys with their certificates.
pub(super) const MAX_BYTES: u64 = 256 * 1024;
/// Requests of callers and log-ins of visitors wait for it.
pub(super) const TIMEOUT: Duration = Duration::from_secs(5);

/// A client that follows no redirect and uses no proxy. A status that is no success is an answer like others.
pub(super) fn agent(authorities: &Authorities) -> Agent {
    let agent = Agent::config_builder()
        .max_redirects(0)
        .proxy(None)
        .http_status_as_error(false)
        .timeout_global(Some(TIMEOUT))
        .user_agent("tao-slurm")
        .tls_config(authorities.tls())
        .build();
    agent.into()
}

/// Reads a document.
pub(super) fn get(agent: &Agent, url: &str) -> Result<Vec<u8>, String> {
    let answer = agent.get(url).header("accept", "application/json").call();
    let mut answer = answer.map_err(|error| error.to_string())?;
    if !answer.status().is_success() {
        return Err(format!("the response is {}", answer.status()));
    }
    read_all(answer.body_mut().as_reader()).map_err(|error| error.to_string())
}

pub(super) fn read_all(reader: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(io::Error::other(format!("has more than {MAX_BYTES} bytes")));
    }
    Ok(bytes)
}
