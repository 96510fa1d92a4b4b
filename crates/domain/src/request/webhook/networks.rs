//! The addresses that webhooks may have: public ones, and those in the configured networks.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

const fn v4(a: u8, b: u8, c: u8, bits: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, 0), bits)
}

const fn v6(a: u16, b: u16, bits: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, 0, 0, 0, 0, 0, 0), bits)
}

/// The IPv4 networks that are not public (IANA's special-purpose registry), with multicast and the unassigned end.
const NOT_PUBLIC_V4: [Ipv4Net; 15] = [
    v4(0, 0, 0, 8),
    v4(10, 0, 0, 8),
    v4(100, 64, 0, 10),
    v4(127, 0, 0, 8),
    v4(169, 254, 0, 16),
    v4(172, 16, 0, 12),
    v4(192, 0, 0, 24),
    v4(192, 0, 2, 24),
    v4(192, 88, 99, 24),
    v4(192, 168, 0, 16),
    v4(198, 18, 0, 15),
    v4(198, 51, 100, 24),
    v4(203, 0, 113, 24),
    v4(224, 0, 0, 4),
    v4(240, 0, 0, 4),
];

/// The public part of IPv6, except for `NOT_PUBLIC_V6`.
const GLOBAL_V6: Ipv6Net = v6(0x2000, 0, 3);
/// Networks that map to other addresses (Teredo, 6to4), and those for documentation.
const NOT_PUBLIC_V6: [Ipv6Net; 4] =
    [v6(0x2001, 0, 23), v6(0x2001, 0x0db8, 32), v6(0x2002, 0, 16), v6(0x3fff, 0, 20)];

/// The configured networks: allowed even if they are not public.
#[derive(Debug, Clone, Default)]
pub struct Networks(Vec<IpNet>);

impl Networks {
    pub fn new(networks: Vec<IpNet>) -> Self {
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
        self.0.iter().any(|network| network.contains(&address))
    }
}

fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => !NOT_PUBLIC_V4.iter().any(|network| network.contains(&address)),
        IpAddr::V6(address) => {
            GLOBAL_V6.contains(&address) && !NOT_PUBLIC_V6.iter().any(|network| network.contains(&address))
        }
    }
}
