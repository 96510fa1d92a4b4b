//! Messages to a job's webhook.

use serde::Deserialize;

use super::{Moment, Text};

#[derive(Debug, Deserialize)]
pub(crate) struct Webhook {
    pub(crate) url: Text,
    pub(crate) pending: u64,
    pub(crate) dead: u64,
    pub(crate) next_attempt_at: Option<Moment>,
    pub(crate) deliveries: Vec<Delivery>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Delivery {
    pub(crate) seq: u64,
    pub(crate) state: Text,
    pub(crate) attempts: u32,
    pub(crate) created_at: Moment,
    pub(crate) last_attempt_at: Option<Moment>,
    pub(crate) delivered_at: Option<Moment>,
    pub(crate) response_status: Option<u16>,
    pub(crate) error: Option<Text>,
}
