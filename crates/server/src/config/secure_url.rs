//! Addresses whose documents cannot be changed on the way.

use std::net::IpAddr;

use url::{Host, Url};

/// Why an address is not secure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Insecure {
    #[error("is not a URL")]
    NoUrl,
    #[error("has no host")]
    NoHost,
    #[error("must begin with https:// or lead to this machine")]
    Open,
}

/// An address by HTTPS, or on this machine.
pub(crate) fn secure_url(text: &str) -> Result<Url, Insecure> {
    let url = Url::parse(text).map_err(|_| Insecure::NoUrl)?;
    let is_here = match url.host() {
        Some(Host::Ipv4(address)) => IpAddr::from(address).is_loopback(),
        Some(Host::Ipv6(address)) => IpAddr::from(address).is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => return Err(Insecure::NoHost),
    };
    match url.scheme() {
        "https" => Ok(url),
        "http" if is_here => Ok(url),
        _ => Err(Insecure::Open),
    }
}
