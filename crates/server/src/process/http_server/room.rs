//! The room for connections: so many in all, and so many for each address.

use std::{net::IpAddr, sync::Arc};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::addresses::{Addresses, Counted};

#[derive(Debug)]
pub(super) struct Room {
    places: Arc<Semaphore>,
    addresses: Arc<Addresses>,
}

/// The place of one connection, until it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    _permit: OwnedSemaphorePermit,
    _counted: Counted,
}

impl Room {
    pub(super) fn new(places: usize, places_of_address: usize) -> Self {
        let places = places.min(Semaphore::MAX_PERMITS);
        Self { places: Arc::new(Semaphore::new(places)), addresses: Addresses::new(places_of_address) }
    }

    /// None if there is no place left, or none for this address.
    pub(super) fn take(&self, address: IpAddr) -> Option<Place> {
        let permit = Arc::clone(&self.places).try_acquire_owned().ok()?;
        Some(Place { _permit: permit, _counted: self.addresses.count(address)? })
    }
}
