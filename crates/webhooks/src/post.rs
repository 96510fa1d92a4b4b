//! One attempt to deliver a message.

use std::time::Duration;

use domain::Networks;
use ureq::{
    Agent, Error, RequestBuilder,
    config::Config,
    http::Uri,
    typestate::WithBody,
    unversioned::{
        resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver},
        transport::{DefaultConnector, NextTimeout},
    },
};

use crate::authorities::Authorities;

/// Why an attempt failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: Option<u16>,
    pub(crate) error: String,
    /// Whether another attempt may succeed.
    pub(crate) retryable: bool,
    /// The receiver's `Retry-After` header, unparsed.
    pub(crate) retry_after: Option<String>,
}

impl Failure {
    pub(crate) fn without_answer(error: String, retryable: bool) -> Self {
        Self { status: None, error, retryable, retry_after: None }
    }
}

/// The HTTP client for webhooks. It follows no redirect, uses no proxy and reuses no connection: each of them could reach an
/// address that was not checked.
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

/// Posts the message and returns the status of the answer. Of a failed answer it reads only `Retry-After`.
pub(crate) fn post(request: RequestBuilder<WithBody>, body: &str) -> Result<u16, Failure> {
    let response = request.send(body).map_err(|error| Failure::without_answer(describe(&error), true))?;
    let status = response.status().as_u16();
    let error = match status {
        200..=299 => return Ok(status),
        300..=399 => format!("the receiver answered {status}; redirects are not followed"),
        // The Standard Webhooks specification: 410 means that the receiver wants no more messages.
        410 => "the receiver answered 410: it is gone".to_owned(),
        _ => format!("the receiver answered {status}"),
    };
    let retry_after = response.headers().get("retry-after").and_then(|value| value.to_str().ok());
    let retry_after = retry_after.map(str::to_owned);
    Err(Failure { status: Some(status), error, retryable: status != 410, retry_after })
}

fn describe(error: &Error) -> String {
    match error {
        Error::Other(inner) => inner.to_string(),
        Error::Timeout(_) => "the receiver did not answer in time".to_owned(),
        Error::HostNotFound => "the host name has no address".to_owned(),
        error => error.to_string(),
    }
}

/// Resolves a name to those of its addresses that may be called. The connection goes to one of these addresses, so a DNS
/// change after the check has no effect.
#[derive(Debug)]
struct Guarded<R = DefaultResolver> {
    networks: Networks,
    inner: R,
}

impl<R: Resolver> Resolver for Guarded<R> {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, Error> {
        let found = self.inner.resolve(uri, config, timeout)?;
        let scheme = uri.scheme_str().unwrap_or_default();
        let mut allowed = self.empty();
        for address in found.iter().filter(|address| self.networks.allow_for(scheme, address.ip())) {
            allowed.push(*address);
        }
        if allowed.is_empty() {
            let reason = if scheme == "https" {
                "it is private, and the configuration does not allow it"
            } else {
                "http:// is only for the networks that the configuration allows"
            };
            let host = uri.host().unwrap_or_default();
            return Err(Error::Other(format!("{host} has no address that may be called: {reason}").into()));
        }
        Ok(allowed)
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    /// Resolves every name to these addresses.
    #[derive(Debug)]
    struct ResolvesTo(&'static [&'static str]);

    impl Resolver for ResolvesTo {
        fn resolve(&self, _: &Uri, _: &Config, _: NextTimeout) -> Result<ResolvedSocketAddrs, Error> {
            let mut all = self.empty();
            self.0.iter().for_each(|text| all.push(text.parse().unwrap()));
            Ok(all)
        }
    }

    fn allowed(url: &'static str, found: &'static [&'static str], networks: &[&str]) -> Vec<String> {
        let networks = Networks::new(networks.iter().map(|text| text.parse().unwrap()).collect());
        let guarded = Guarded { networks, inner: ResolvesTo(found) };
        let resolved = guarded.resolve(&Uri::from_static(url), &Config::default(), NextTimeout::default());
        resolved.map(|all| all.iter().map(SocketAddr::to_string).collect()).unwrap_or_default()
    }

    #[test]
    fn only_the_allowed_addresses_of_a_name_are_used() {
        const MIXED: &[&str] = &["10.0.0.1:443", "93.184.216.34:443", "[::1]:443", "[::ffff:127.0.0.1]:443"];
        assert_eq!(allowed("https://example.org/", MIXED, &[]), ["93.184.216.34:443"]);
        assert_eq!(
            allowed("https://example.org/", MIXED, &["10.0.0.0/8"]),
            ["10.0.0.1:443", "93.184.216.34:443"]
        );
        // Plain HTTP is only for networks that the configuration allows.
        assert_eq!(allowed("http://example.org/", MIXED, &["10.0.0.0/8"]), ["10.0.0.1:443"]);
        assert!(allowed("http://example.org/", MIXED, &[]).is_empty());
    }
}
