//! The addresses that webhooks may have: public ones, and those in the configured networks.

use std::{fmt, net::IpAddr, str::FromStr};

/// A network such as `10.1.0.0/16`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

/// A text that is not a valid network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a network is an address and a prefix length, such as 10.1.0.0/16 or fd00::/8")]
pub struct InvalidNetwork;

impl FromStr for Network {
    type Err = InvalidNetwork;

    fn from_str(text: &str) -> Result<Self, InvalidNetwork> {
        let (address, bits) = text.split_once('/').ok_or(InvalidNetwork)?;
        let address: IpAddr = address.parse().map_err(|_| InvalidNetwork)?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.parse().ok().filter(|bits| *bits <= most).ok_or(InvalidNetwork)?;
        Ok(Self { address, bits })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

impl Network {
    const fn v4(a: u8, b: u8, c: u8, bits: u8) -> Self {
        Self { address: IpAddr::V4(std::net::Ipv4Addr::new(a, b, c, 0)), bits }
    }

    const fn v6(a: u16, b: u16, bits: u8) -> Self {
        Self { address: IpAddr::V6(std::net::Ipv6Addr::new(a, b, 0, 0, 0, 0, 0, 0)), bits }
    }

    fn contains(self, other: IpAddr) -> bool {
        let (own, other, width) = match (self.address, other) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                (u128::from(own.to_bits()), u128::from(other.to_bits()), 32)
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => (own.to_bits(), other.to_bits(), 128),
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => return false,
        };
        let rest = width - u32::from(self.bits);
        own.checked_shr(rest).unwrap_or(0) == other.checked_shr(rest).unwrap_or(0)
    }
}

/// The IPv4 networks that are not public (IANA's special-purpose registry), with multicast and the unassigned end.
const NOT_PUBLIC_V4: [Network; 15] = [
    Network::v4(0, 0, 0, 8),
    Network::v4(10, 0, 0, 8),
    Network::v4(100, 64, 0, 10),
    Network::v4(127, 0, 0, 8),
    Network::v4(169, 254, 0, 16),
    Network::v4(172, 16, 0, 12),
    Network::v4(192, 0, 0, 24),
    Network::v4(192, 0, 2, 24),
    Network::v4(192, 88, 99, 24),
    Network::v4(192, 168, 0, 16),
    Network::v4(198, 18, 0, 15),
    Network::v4(198, 51, 100, 24),
    Network::v4(203, 0, 113, 24),
    Network::v4(224, 0, 0, 4),
    Network::v4(240, 0, 0, 4),
];

/// The public part of IPv6, except for `NOT_PUBLIC_V6`.
const GLOBAL_V6: Network = Network::v6(0x2000, 0, 3);
/// Networks that map to other addresses (Teredo, 6to4), and those for documentation.
const NOT_PUBLIC_V6: [Network; 4] = [
    Network::v6(0x2001, 0, 23),
    Network::v6(0x2001, 0x0db8, 32),
    Network::v6(0x2002, 0, 16),
    Network::v6(0x3fff, 0, 20),
];

/// The configured networks: allowed even if they are not public.
#[derive(Debug, Clone, Default)]
pub struct Networks(Vec<Network>);

impl Networks {
    pub fn new(networks: Vec<Network>) -> Self {
        Self(networks)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether an address may be called with a scheme. Unencrypted calls stay in the configured networks.
    pub fn allow_for(&self, scheme: &str, address: IpAddr) -> bool {
        if scheme == "https" { self.allow(address) } else { self.includes(address) }
    }

    /// Whether an address may be called.
    pub fn allow(&self, address: IpAddr) -> bool {
        self.includes(address) || is_public(address)
    }

    /// Whether an address is in a configured network.
    fn includes(&self, address: IpAddr) -> bool {
        // ::ffff:10.0.0.1 is 10.0.0.1.
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(address))
    }
}

fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        address @ IpAddr::V4(_) => !NOT_PUBLIC_V4.iter().any(|network| network.contains(address)),
        address @ IpAddr::V6(_) => {
            GLOBAL_V6.contains(address) && !NOT_PUBLIC_V6.iter().any(|network| network.contains(address))
        }
    }
}
