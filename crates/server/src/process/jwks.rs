//! Where the keys of an issuer of tokens come from: a file, which may be replaced while we run, or an address.

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

/// A few keys with their certificates are a tenth of it.
const LONGEST: u64 = 256 * 1024;
/// Callers with a new key wait for it.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Signed tokens as the API judges them.
pub(crate) fn jwt(config: &JwtConfig) -> (JwtTerms, Arc<dyn KeySource>) {
    let source: Arc<dyn KeySource> = match &config.keys {
        KeyPlace::File(path) => Arc::new(InFile(path.clone())),
        KeyPlace::Url { url, authorities } => {
            Arc::new(AtAddress { url: url.clone(), agent: agent(authorities) })
        }
    };
    (config.terms.clone(), source)
}

struct InFile(PathBuf);

impl KeySource for InFile {
    fn read(&self) -> KeyReading {
        let path = self.0.clone();
        in_background(move || {
            let file = std::fs::File::open(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            whole(file).map_err(|error| format!("{}: {error}", path.display()))
        })
    }
}

struct AtAddress {
    url: String,
    agent: Agent,
}

/// Keys come from the address that was named, and from nowhere that it leads to.
fn agent(authorities: &Authorities) -> Agent {
    Agent::config_builder()
        .max_redirects(0)
        .proxy(None)
        .timeout_global(Some(TIMEOUT))
        .user_agent("tao-slurm")
        .tls_config(authorities.tls())
        .build()
        .into()
}

impl KeySource for AtAddress {
    fn read(&self) -> KeyReading {
        let (url, agent) = (self.url.clone(), self.agent.clone());
        in_background(move || {
            let answer = agent.get(&url).header("accept", "application/json").call();
            let mut answer = answer.map_err(|error| format!("{url}: {error}"))?;
            // A redirect is no error to the client when none is followed.
            if !answer.status().is_success() {
                return Err(format!("{url}: the answer is {}", answer.status()));
            }
            whole(answer.body_mut().as_reader()).map_err(|error| format!("{url}: {error}"))
        })
    }
}

fn in_background(read: impl FnOnce() -> Result<Vec<u8>, String> + Send + 'static) -> KeyReading {
    Box::pin(
        async move { tokio::task::spawn_blocking(read).await.unwrap_or_else(|error| Err(error.to_string())) },
    )
}

fn whole(reader: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(LONGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LONGEST {
        return Err(io::Error::other(format!("has more than {LONGEST} bytes")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests;
