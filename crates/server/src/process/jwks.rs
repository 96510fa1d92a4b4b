//! The keys of a token issuer: from a file, which may be replaced while the service runs, or from a URL.

use std::{
    io::{self, Read},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use api::{JwtTerms, KeyReading, KeySource};
use ureq::Agent;
use webhooks::Authorities;

use crate::config::{JwtConfig, KeyPlace};

/// Ten times the size of a few keys with their certificates.
const MAX_BYTES: u64 = 256 * 1024;
/// Requests with an unknown key wait for it.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The accepted tokens, with the source of the keys that sign them.
pub(crate) fn jwt(config: &JwtConfig) -> (JwtTerms, Arc<dyn KeySource>) {
    let source = match &config.keys {
        KeyPlace::File(path) => Source::File(path.clone()),
        KeyPlace::Url { url, authorities } => Source::url(url.clone(), authorities),
    };
    (config.terms.clone(), Arc::new(source))
}

#[derive(Clone)]
enum Source {
    File(PathBuf),
    Url(String, Agent),
}

impl Source {
    /// Keys come from this URL only: redirects are errors.
    fn url(url: String, authorities: &Authorities) -> Self {
        let agent = Agent::config_builder()
            .max_redirects(0)
            .proxy(None)
            .timeout_global(Some(TIMEOUT))
            .user_agent("tao-slurm")
            .tls_config(authorities.tls())
            .build();
        Self::Url(url, agent.into())
    }

    fn bytes(&self) -> Result<Vec<u8>, String> {
        match self {
            Self::File(path) => {
                let bytes = std::fs::File::open(path).and_then(read_all);
                bytes.map_err(|error| format!("{}: {error}", path.display()))
            }
            Self::Url(url, agent) => {
                let answer = agent.get(url).header("accept", "application/json").call();
                let mut answer = answer.map_err(|error| format!("{url}: {error}"))?;
                // The client does not report a redirect as an error.
                if !answer.status().is_success() {
                    return Err(format!("{url}: the response is {}", answer.status()));
                }
                read_all(answer.body_mut().as_reader()).map_err(|error| format!("{url}: {error}"))
            }
        }
    }
}

impl KeySource for Source {
    fn read(&self) -> KeyReading {
        let source = self.clone();
        let reading = tokio::task::spawn_blocking(move || source.bytes());
        Box::pin(async { reading.await.unwrap_or_else(|error| Err(error.to_string())) })
    }
}

fn read_all(reader: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(io::Error::other(format!("has more than {MAX_BYTES} bytes")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests;
