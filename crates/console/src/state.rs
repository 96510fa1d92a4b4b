//! What the pages need from the composition root.

use std::{fmt, sync::Arc};

use axum::{Router, http::HeaderMap};
use chrono::{DateTime, Utc};

use crate::{
    issuer::Issuer,
    session::{self, Sealer, SessionKey},
};

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
    /// Where visitors can get a token; none if they must have one.
    pub issuer: Option<Arc<dyn Issuer>>,
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
    pub(crate) issuer: Option<Arc<dyn Issuer>>,
    pub(crate) sealer: Sealer,
    pub(crate) now: Now,
}

impl Console {
    pub(crate) fn new(api: Router, settings: Settings) -> Self {
        let Settings { login, issuer, key, now } = settings;
        Self { api, login, issuer, sealer: Sealer::new(&key), now }
    }

    /// Whether browsers come by HTTPS, so that they keep cookies for it alone.
    pub(crate) fn is_https(&self, headers: &HeaderMap) -> bool {
        session::is_https(headers) || self.issuer.as_ref().is_some_and(|issuer| issuer.is_https())
    }
}
