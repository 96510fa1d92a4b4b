//! The way from a name to the addresses that may be called. The connection is made to what came out of here and to
//! nothing else, so a name that leads elsewhere a moment later leads nobody astray.

use domain::Networks;
use ureq::{
    Error,
    config::Config,
    http::Uri,
    unversioned::{
        resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver},
        transport::NextTimeout,
    },
};

/// Every address of the name is one that must not be called.
#[derive(Debug, thiserror::Error)]
#[error("{0} leads to no address that may be called: {1}")]
pub(crate) struct NotAllowed(String, &'static str);

#[derive(Debug)]
pub(crate) struct Guarded<R = DefaultResolver> {
    pub(crate) networks: Networks,
    pub(crate) inner: R,
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
            let why = if scheme == "https" {
                "it is private, and the configuration does not allow it"
            } else {
                "http:// is for the networks that the configuration allows"
            };
            let host = uri.host().unwrap_or_default().to_owned();
            return Err(Error::Other(Box::new(NotAllowed(host, why))));
        }
        Ok(allowed)
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    /// Whatever the name is.
    #[derive(Debug)]
    struct LeadsTo(&'static [&'static str]);

    impl Resolver for LeadsTo {
        fn resolve(&self, _: &Uri, _: &Config, _: NextTimeout) -> Result<ResolvedSocketAddrs, Error> {
            let mut all = self.empty();
            self.0.iter().for_each(|text| all.push(text.parse().unwrap()));
            Ok(all)
        }
    }

    fn allowed(url: &'static str, found: &'static [&'static str], networks: &[&str]) -> Vec<String> {
        let networks = Networks::new(networks.iter().map(|text| text.parse().unwrap()).collect());
        let guarded = Guarded { networks, inner: LeadsTo(found) };
        let resolved = guarded.resolve(&Uri::from_static(url), &Config::default(), NextTimeout::default());
        resolved.map(|all| all.iter().map(SocketAddr::to_string).collect()).unwrap_or_default()
    }

    #[test]
    fn of_the_addresses_of_a_name_only_those_that_may_be_called_are_left() {
        const MIXED: &[&str] = &["10.0.0.1:443", "93.184.216.34:443", "[::1]:443", "[::ffff:127.0.0.1]:443"];
        assert_eq!(allowed("https://example.org/", MIXED, &[]), ["93.184.216.34:443"]);
        assert_eq!(
            allowed("https://example.org/", MIXED, &["10.0.0.0/8"]),
            ["10.0.0.1:443", "93.184.216.34:443"]
        );
        // Nothing goes out in the open to where nobody has vouched for the network.
        assert_eq!(allowed("http://example.org/", MIXED, &["10.0.0.0/8"]), ["10.0.0.1:443"]);
        assert!(allowed("http://example.org/", MIXED, &[]).is_empty());
    }
}
