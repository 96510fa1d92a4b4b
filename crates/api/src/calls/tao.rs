//! TAO's own wire: its services post jobs to the microservice in a container, and ask it for their status. Here both
//! mean jobs of ours, for the functions of the published client that do so.

mod client;
pub(crate) mod health;
pub(crate) mod post;
pub(crate) mod status;

pub(crate) use client::understood;

/// Where TAO's own names for what went wrong are told too.
pub(crate) const ROOT: &str = "/api/v1/";
