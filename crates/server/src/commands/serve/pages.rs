//! The web console before the API.

use std::sync::Arc;

use axum::Router;
use console::{LogIn, SessionKey};
use domain::Clock;

use crate::{
    config::{AuthMode, Settings, sealing_key},
    process::http_server::Routes,
};

/// The API with the pages before it. Connections beyond the limits have no pages.
pub(super) fn before(api: Router, clock: Arc<dyn Clock>, settings: &Settings) -> anyhow::Result<Routes> {
    let probes = api::probes_only(api.clone());
    let pages = console::Settings {
        login: match settings.auth.mode {
            AuthMode::Tokens => LogIn::Token,
            AuthMode::Disabled => LogIn::Nothing,
        },
        key: SessionKey::derive(&sealing_key(&settings.secrets.key_file)?),
        now: Arc::new(move || clock.now()),
    };
    Ok(Routes { all: console::mount(api, pages), probes })
}
