//! What the pages need from the composition root.

use std::{fmt, sync::Arc};

use axum::Router;
use chrono::{DateTime, Utc};

use crate::session::{Sealer, SessionKey};

/// The current time.
pub type Now = Arc<dyn Fn() -> DateTime<Utc> + Send + Sync>;

/// How visitors show who they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogIn {
    /// With a token of the API.
    Token,
    /// Not at all: the API takes every caller.
    Nothing,
}

/// The settings of the pages.
pub struct Settings {
    pub login: LogIn,
    /// Seals sessions. All processes of a service must have the same.
    pub key: SessionKey,
    pub now: Now,
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").field("login", &self.login).finish_non_exhaustive()
    }
}

/// The state of all pages.
#[derive(Clone)]
pub(crate) struct Console {
    pub(crate) api: Router,
    pub(crate) login: LogIn,
    pub(crate) sealer: Sealer,
    pub(crate) now: Now,
}

impl Console {
    pub(crate) fn new(api: Router, settings: Settings) -> Self {
        let Settings { login, key, now } = settings;
        Self { api, login, sealer: Sealer::new(&key), now }
    }
}
