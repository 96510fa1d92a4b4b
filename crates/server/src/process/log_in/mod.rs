//! Log-ins of the console's visitors at the issuer of tokens.
//!
//! `document` reads what the issuer says of itself, `client` makes requests and reads answers; this file sends them.

mod client;
mod document;

use std::{io, sync::Arc, time::Duration};

use client::NoAnswer;
use console::{Begun, Issuer, IssuerFault, Pending, Returned};
use document::Document;
use oauth2::{HttpRequest, HttpResponse};
use secrecy::SecretString;
use tokio::{
    sync::{Mutex, Semaphore},
    task::spawn_blocking,
    time::{Instant, timeout},
};
use ureq::Agent;

use super::issuer_http::{self, TIMEOUT, read_all};
use crate::config::{LogInConfig, client_secret};

/// How long the issuer's document is used.
const KEEP: Duration = Duration::from_hours(1);
/// How long its failure is: visitors without a session can make the service ask for it.
const PAUSE: Duration = Duration::from_secs(5);
/// The most codes that are exchanged at a time: each holds a thread.
const EXCHANGES: usize = 8;

/// The issuer, as its visitors reach it.
pub(crate) fn issuer(config: LogInConfig) -> Arc<dyn Issuer> {
    let name = url::Url::parse(&config.issuer).ok().and_then(|url| url.host_str().map(str::to_owned));
    let agent = issuer_http::agent(&config.authorities);
    let known = Mutex::default();
    let name = name.unwrap_or_default();
    Arc::new(Known(Arc::new(State { config, name, agent, known, exchanges: Semaphore::new(EXCHANGES) })))
}

struct Known(Arc<State>);

struct State {
    config: LogInConfig,
    name: String,
    agent: Agent,
    /// Held while the document is read: visitors wait for one request.
    known: Mutex<Option<Reading>>,
    exchanges: Semaphore,
}

struct Reading {
    at: Instant,
    document: Result<Arc<Document>, IssuerFault>,
}

impl Issuer for Known {
    fn name(&self) -> &str {
        &self.0.name
    }

    fn is_https(&self) -> bool {
        self.0.config.redirect_url.scheme() == "https"
    }

    fn begin(&self) -> Pending<Begun> {
        let state = Arc::clone(&self.0);
        Box::pin(async move { Ok(client::begin(&state.config, &*state.document().await?)) })
    }

    fn finish(&self, returned: Returned) -> Pending<SecretString> {
        let state = Arc::clone(&self.0);
        Box::pin(async move {
            let token = state.token(returned).await;
            if let Err(fault) = &token {
                tracing::warn!(error = %fault, "a log-in at the issuer has failed");
            }
            token
        })
    }
}

impl State {
    async fn document(self: &Arc<Self>) -> Result<Arc<Document>, IssuerFault> {
        let mut known = self.known.lock().await;
        if let Some(Reading { at, document }) = &*known
            && at.elapsed() < if document.is_ok() { KEEP } else { PAUSE }
        {
            return document.clone();
        }
        let address = document::address(&self.config.issuer);
        let at = Instant::now();
        // Recorded first, so that a read whose visitor went away also counts for the pause.
        let reason = "another log-in waits for it".to_owned();
        let unread = IssuerFault::Unreachable { address: address.clone(), reason };
        *known = Some(Reading { at, document: Err(unread) });
        let (state, url) = (Arc::clone(self), address.clone());
        let read = spawn_blocking(move || {
            Document::parse(&issuer_http::get(&state.agent, &url)?, &state.config.issuer)
        });
        let read = read.await.unwrap_or_else(|error| Err(error.to_string()));
        let document = read.map(Arc::new).map_err(|reason| IssuerFault::Unreachable { address, reason });
        if let Err(fault) = &document {
            tracing::warn!(error = %fault, "cannot read the issuer's document, so visitors cannot log in there");
        }
        *known = Some(Reading { at, document: document.clone() });
        document
    }

    async fn token(self: &Arc<Self>, returned: Returned) -> Result<SecretString, IssuerFault> {
        let document = self.document().await?;
        client::check_issuer(&self.config, &document, returned.issuer.as_deref())?;
        let failed =
            |reason: String| IssuerFault::Unreachable { address: document.token.to_string(), reason };
        let Ok(Ok(_place)) = timeout(TIMEOUT, self.exchanges.acquire()).await else {
            return Err(failed(format!("{EXCHANGES} other log-ins wait for it")));
        };
        let (state, asked) = (Arc::clone(self), Arc::clone(&document));
        let exchange = spawn_blocking(move || {
            let Self { config, agent, .. } = &*state;
            let secret = config.secret_file.as_deref().map(client_secret).transpose();
            let secret = secret.map_err(|reason| IssuerFault::Unreachable {
                address: "auth.jwt.login.client_secret_file".to_owned(),
                reason,
            })?;
            let Returned { code, verifier, .. } = &returned;
            let send = |request| sent(agent, request);
            client::exchange(config, &asked, secret.as_ref(), code, verifier, &send)
        });
        exchange.await.unwrap_or_else(|error| Err(failed(error.to_string())))
    }
}

/// The answer of whatever status.
fn sent(agent: &Agent, request: HttpRequest) -> Result<HttpResponse, NoAnswer> {
    let answer = agent.run(request).map_err(|error| NoAnswer(error.to_string()))?;
    let (head, mut body) = answer.into_parts();
    let bytes = read_all(body.as_reader()).map_err(|error: io::Error| NoAnswer(error.to_string()))?;
    Ok(HttpResponse::from_parts(head, bytes))
}

#[cfg(test)]
mod tests;
