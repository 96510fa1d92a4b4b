//! The address of a login host: a name or an IP address, and a port.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use serde_with::{DeserializeFromStr, SerializeDisplay};

/// The port if none is given.
const DEFAULT_PORT: u16 = 22;
/// The longest DNS name, in bytes.
const LONGEST_NAME: usize = 253;
/// The longest label of a DNS name, in bytes.
const LONGEST_LABEL: usize = 63;

/// A login host: a DNS name or an IP address, and a port.
///
/// The text form is `host`, `host:port`, `[v6]`, `[v6]:port` or a bare IPv6 address; the default port is 22.
/// A name consists of letters, digits, `.`, `-` and `_`, and no label begins with `-`. So the value needs no
/// quoting on a command line or in a `known_hosts` line.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, SerializeDisplay, DeserializeFromStr)]
pub struct HostPort {
    host: String,
    port: u16,
}

/// Why a text is not a valid [`HostPort`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostPortError {
    /// The part before the port is neither a DNS name nor an IP address.
    #[error("{0:?} is neither a host name nor an IP address")]
    Host(String),
    /// The part after the colon is not a port.
    #[error("{0:?} is not a port (1 to 65535)")]
    Port(String),
}

impl HostPort {
    /// A host and a port, with the same checks as the text form. IPv6 addresses have no brackets here.
    pub fn new(host: impl Into<String>, port: u16) -> Result<Self, HostPortError> {
        let host = host.into();
        if port == 0 {
            return Err(HostPortError::Port(port.to_string()));
        }
        if host.parse::<IpAddr>().is_ok() || is_name(&host) {
            return Ok(Self { host: host.to_ascii_lowercase(), port });
        }
        Err(HostPortError::Host(host))
    }

    /// The name or address, in lower case, without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The TCP port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The name in `known_hosts` lines: `host` on port 22, `[host]:port` on other ports.
    pub(crate) fn known_hosts_name(&self) -> String {
        if self.port == DEFAULT_PORT { self.host.clone() } else { format!("[{}]:{}", self.host, self.port) }
    }
}

fn is_name(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let label = |part: &str| {
        (1..=LONGEST_LABEL).contains(&part.len()) && !part.starts_with('-') && part.bytes().all(allowed)
    };
    text.len() <= LONGEST_NAME && text.strip_suffix('.').unwrap_or(text).split('.').all(label)
}

fn port(text: &str) -> Result<u16, HostPortError> {
    match text.parse() {
        // `u16::from_str` accepts a leading plus sign.
        Ok(number) if !text.starts_with('+') => Ok(number),
        _ => Err(HostPortError::Port(text.to_owned())),
    }
}

impl FromStr for HostPort {
    type Err = HostPortError;

    fn from_str(text: &str) -> Result<Self, HostPortError> {
        if text.parse::<Ipv6Addr>().is_ok() {
            return Self::new(text, DEFAULT_PORT);
        }
        let (host, port) = match text.rsplit_once(':') {
            Some((host, digits)) if !digits.ends_with(']') => (host, port(digits)?),
            _ => (text, DEFAULT_PORT),
        };
        match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
            Some(host) if host.parse::<Ipv6Addr>().is_ok() => Self::new(host, port),
            None if !host.contains(':') => Self::new(host, port),
            _ => Err(HostPortError::Host(host.to_owned())),
        }
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.host.contains(':'), self.port == DEFAULT_PORT) {
            (true, _) => write!(f, "[{}]:{}", self.host, self.port),
            (false, true) => f.write_str(&self.host),
            (false, false) => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_text_form_is_parsed_and_displayed() {
        for (text, host, port, shown) in [
            ("login1", "login1", 22, "login1"),
            ("Login1.Example.org:2222", "login1.example.org", 2222, "login1.example.org:2222"),
            ("10.0.0.7", "10.0.0.7", 22, "10.0.0.7"),
            ("10.0.0.7:2200", "10.0.0.7", 2200, "10.0.0.7:2200"),
            ("[2001:db8::1]:2200", "2001:db8::1", 2200, "[2001:db8::1]:2200"),
            ("[::1]", "::1", 22, "[::1]:22"),
            ("::1", "::1", 22, "[::1]:22"),
            ("node_1", "node_1", 22, "node_1"),
        ] {
            let read: HostPort = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!((read.host(), read.port(), read.to_string().as_str()), (host, port, shown));
            assert_eq!(
                read.to_string().parse::<HostPort>(),
                Ok(read),
                "{text} does not survive a round trip"
            );
        }
    }

    #[test]
    fn a_text_that_could_be_an_option_or_shell_syntax_is_refused() {
        let refused = [
            "",
            ":22",
            "-oProxyCommand=x",
            "a b",
            "a;b",
            "a$(b)",
            "host:",
            "host:0",
            "host:65536",
            "host:+22",
            "host:22x",
            "[login1]:22",
            "[::1",
            "[::1]22",
            "a..b",
            "user@host",
            "a/b",
            "x\n",
            "a.-b",
        ];
        for text in refused {
            assert!(text.parse::<HostPort>().is_err(), "{text:?} was accepted");
        }
        assert!("a".repeat(64).parse::<HostPort>().is_err());
    }

    #[test]
    fn known_hosts_names_contain_the_port_unless_it_is_22() {
        let name = |text: &str| text.parse::<HostPort>().map(|host| host.known_hosts_name());
        assert_eq!(name("login1"), Ok("login1".to_owned()));
        assert_eq!(name("login1:2222"), Ok("[login1]:2222".to_owned()));
        assert_eq!(name("[::1]:2222"), Ok("[::1]:2222".to_owned()));
    }

    proptest! {
        #[test]
        fn a_parsed_value_is_no_option_and_needs_no_quoting(
            text in prop_oneof![any::<String>(), "[ -~\n]{0,30}", "[a-z0-9.:\\[\\]_-]{0,30}"],
        ) {
            if let Ok(address) = text.parse::<HostPort>() {
                let plain = |c: char| c.is_ascii_alphanumeric() || "._-:%".contains(c);
                prop_assert!(address.host().chars().all(plain) && !address.host().starts_with('-'), "{}", address);
                prop_assert_eq!(address.to_string().parse::<HostPort>().unwrap(), address);
            }
        }
    }
}
