//! `login`: the address and the token of a service, kept for later commands.

use std::{
    io::{self, BufRead, IsTerminal},
    process::ExitCode,
};

use anyhow::{Context, bail};
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

use super::output::{Output, note};
use crate::{
    cli::{DEFAULT_URL, LoginArgs},
    client::{
        Client, is_loopback, on_one_line,
        profiles::{self, DEFAULT_PROFILE, Profile},
    },
    config::Environment,
};

#[derive(Deserialize)]
struct Caller {
    owner: String,
    scopes: Vec<String>,
}

pub(super) fn run(args: &LoginArgs) -> anyhow::Result<ExitCode> {
    let path = profiles::path(&Environment::of_process())
        .context("neither HOME nor XDG_CONFIG_HOME is set, so there is no place for a profile")?;
    let name = args.profile.as_deref().unwrap_or(DEFAULT_PROFILE);
    let url = args.url.as_deref().unwrap_or(DEFAULT_URL).trim_end_matches('/');
    let token = match &args.token {
        Some(token) => Some(token.clone()).filter(|token| !token.expose_secret().trim().is_empty()),
        None => token(url)?,
    };
    if token.is_some() && url.starts_with("http://") && !is_loopback(url) {
        note(&format!(
            "warning: {url} is not encrypted, so others on the way can read the token; use https."
        ));
    }
    // A wrong token or address is not stored.
    let client = Client::of(url, token.clone());
    let Caller { owner, scopes } = client.get("/me")?.document()?;
    profiles::write(&path, name, &Profile { url: Some(client.url().to_owned()), token })?;
    let owner = on_one_line(&format!("{owner} ({})", scopes.join(", ")));
    Output::new().line(&format!("Logged in at {url} as {owner}. Profile {name} in {}.", path.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// The token that the user types, unseen, or that a pipe brings; none for a service without authentication.
fn token(url: &str) -> anyhow::Result<Option<SecretString>> {
    let stdin = io::stdin();
    let mut line = String::new();
    if stdin.is_terminal() {
        note(&format!(
            "Token for {url} (made by `tao-slurm token create`; empty for a service without authentication):"
        ));
        let before = tcgetattr(&stdin).context("cannot hide what is typed")?;
        let mut hidden = before.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        tcsetattr(&stdin, OptionalActions::Now, &hidden).context("cannot hide what is typed")?;
        let read = stdin.lock().read_line(&mut line);
        tcsetattr(&stdin, OptionalActions::Now, &before)?;
        read?;
    } else {
        stdin.lock().read_line(&mut line)?;
    }
    let token = line.trim();
    if token.contains(char::is_whitespace) || !token.is_ascii() {
        bail!("a token is one word of ASCII characters");
    }
    Ok((!token.is_empty()).then(|| token.to_owned().into()))
}
