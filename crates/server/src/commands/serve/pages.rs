//! The web console and the tools for agents before the API.

use std::sync::Arc;

use axum::Router;
use console::{LogIn, SessionKey};
use domain::Clock;

use crate::{
    config::{AuthMode, Config, sealing_key},
    process::{http_server::Routes, log_in},
};

/// The API with the pages and the tools before it. Connections beyond the limits have neither.
pub(super) fn before(api: Router, clock: Arc<dyn Clock>, config: &Config) -> anyhow::Result<Routes> {
    let probes = api::probes_only(api.clone());
    let settings = &config.settings;
    let login = config.jwt.as_ref().and_then(|jwt| jwt.login.clone());
    let pages = console::Settings {
        login: match settings.auth.mode {
            AuthMode::Tokens => LogIn::Token,
            AuthMode::Disabled => LogIn::Nothing,
        },
        issuer: login.map(log_in::issuer),
        key: SessionKey::derive(&sealing_key(&settings.secrets.key_file)?),
        now: Arc::new(move || clock.now()),
    };
    Ok(Routes { all: mcp::mount(console::mount(api.clone(), pages), api), probes })
}
