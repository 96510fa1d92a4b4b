//! How many connections each client address has, so that one client cannot take all of them.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The open connections by address.
#[derive(Debug)]
pub(super) struct Addresses {
    most: usize,
    open: Mutex<HashMap<IpAddr, Open>>,
}

#[derive(Debug, Default)]
struct Open {
    connections: usize,
    /// One line for each flood is enough.
    is_logged: bool,
}

impl Addresses {
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, open: Mutex::default() })
    }

    /// Counts a connection until the result is dropped; none if the address has as many as it may have.
    pub(super) fn count(self: &Arc<Self>, address: IpAddr) -> Option<Counted> {
        let client = client(address);
        let mut addresses = self.open();
        let open = addresses.entry(client).or_default();
        if open.connections < self.most {
            open.connections += 1;
            return Some(Counted { addresses: Arc::clone(self), client });
        }
        if !std::mem::replace(&mut open.is_logged, true) {
            tracing::warn!(%client, connections = self.most, "the address has its maximum of connections");
        }
        None
    }

    fn open(&self) -> MutexGuard<'_, HashMap<IpAddr, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One counted connection.
#[derive(Debug)]
pub(super) struct Counted {
    addresses: Arc<Addresses>,
    client: IpAddr,
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut addresses = self.addresses.open();
        let Some(open) = addresses.get_mut(&self.client) else { return };
        open.connections -= 1;
        if open.connections == 0 {
            addresses.remove(&self.client);
        }
    }
}

/// What counts as one client: an IPv4 address, or an IPv6 network of 64 bits, which one machine usually has to itself.
fn client(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_number_of_connections_of_its_own() {
        let addresses = Addresses::new(2);
        let count = |text: &str| addresses.count(text.parse().unwrap());
        let held =
            [count("192.0.2.1"), count("::ffff:192.0.2.1"), count("2001:db8::1"), count("2001:db8::2")];
        assert!(held.iter().all(Option::is_some));
        for full in ["192.0.2.1", "2001:db8::ffff"] {
            assert!(count(full).is_none(), "{full}");
        }
        for other in ["192.0.2.2", "2001:db8:0:1::1"] {
            assert!(count(other).is_some(), "{other}");
        }
        drop(held);
        assert!(addresses.open().is_empty(), "nothing stays of closed connections");
        assert!(count("192.0.2.1").is_some());
    }
}
