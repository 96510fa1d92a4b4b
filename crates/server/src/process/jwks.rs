//! The keys of a token issuer: from a file, which may be replaced while the service runs, or from a URL.

use std::{path::PathBuf, sync::Arc};

use api::{JwtTerms, KeyReading, KeySource};
use ureq::Agent;
use webhooks::Authorities;

use super::issuer_http::{self, read_all};
use crate::config::{JwtConfig, KeyPlace};

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
        Self::Url(url, issuer_http::agent(authorities))
    }

    fn bytes(&self) -> Result<Vec<u8>, String> {
        match self {
            Self::File(path) => {
                let bytes = std::fs::File::open(path).and_then(read_all);
                bytes.map_err(|error| format!("{}: {error}", path.display()))
            }
            Self::Url(url, agent) => issuer_http::get(agent, url).map_err(|error| format!("{url}: {error}")),
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

#[cfg(test)]
mod tests;
