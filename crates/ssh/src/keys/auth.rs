//! Logging in: the key file first, then the keys of the agent.

use std::path::Path;

use ssh2::{ErrorCode, Session};

use crate::{HostFailure, HostPort, SshConfig, SshError, keys::key_file};

/// `LIBSSH2_ERROR_FILE`: the key file is not what it seemed to be.
const FILE: ErrorCode = ErrorCode::Session(-16);
/// The errors of libssh2 that mean a lost or silent link: socket send, timeout, socket disconnect,
/// socket timeout, socket receive, bad socket.
const LINK_ERRORS: [i32; 6] = [-7, -9, -13, -30, -43, -45];

/// What went wrong with one key.
enum Refusal {
    /// The server did not accept it.
    Key(String),
    /// The link broke.
    Link(String),
    /// The key file is unusable.
    File(String),
}

/// An error when there is certainly nothing to log in with. Finds out without any host.
pub(crate) fn check(config: &SshConfig) -> Result<(), SshError> {
    let agent = config.use_agent && config.agent_socket.is_some();
    match &config.key_path {
        None if agent => Ok(()),
        None => Err(SshError::NoKey),
        // The agent may still do it; `log_in` reports the file if that fails too.
        Some(path) => key_file::check(path).or_else(|error| if agent { Ok(()) } else { Err(error) }),
    }
}

/// Logs the session in, or says which keys were tried.
pub(crate) fn log_in(session: &Session, config: &SshConfig, host: &HostPort) -> Result<(), SshError> {
    let mut attempt = Attempt { config, host, tried: Vec::new(), reason: String::new(), file_error: None };
    if let Some(path) = &config.key_path {
        attempt.file_error = key_file::check(path).err();
        if attempt.file_error.is_none() {
            let name = format!("key file {}", path.display());
            let result = session.userauth_pubkey_file(&config.user, None, path, None);
            if attempt.is_accepted(name, result, session, Some(path))? {
                return Ok(());
            }
        }
    }
    if let Some(socket) = config.agent_socket.as_ref().filter(|_| config.use_agent)
        && attempt.by_agent(session, socket)?
    {
        return Ok(());
    }
    Err(attempt.failure())
}

struct Attempt<'a> {
    config: &'a SshConfig,
    host: &'a HostPort,
    tried: Vec<String>,
    reason: String,
    file_error: Option<SshError>,
}

impl Attempt<'_> {
    fn by_agent(&mut self, session: &Session, socket: &Path) -> Result<bool, SshError> {
        let identities = session.agent().and_then(|mut agent| {
            agent.set_identity_path(socket)?;
            agent.connect()?;
            agent.list_identities()?;
            let identities = agent.identities()?;
            Ok((agent, identities))
        });
        let (agent, identities) = match identities {
            Ok(found) => found,
            Err(error) => {
                self.tried.push(format!(
                    "agent at {} (not available: {})",
                    socket.display(),
                    error.message()
                ));
                return Ok(false);
            }
        };
        if identities.is_empty() {
            self.tried.push(format!("agent at {} (it holds no keys)", socket.display()));
        }
        for identity in identities {
            let name = format!("agent key {}", identity.comment());
            let result = agent.userauth(&self.config.user, &identity);
            if self.is_accepted(name, result, session, None)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn is_accepted(
        &mut self,
        name: String,
        result: Result<(), ssh2::Error>,
        session: &Session,
        file: Option<&Path>,
    ) -> Result<bool, SshError> {
        let error = match result {
            Ok(()) if session.authenticated() => return Ok(true),
            Ok(()) => Refusal::Key("the server asks for a further factor".to_owned()),
            Err(error) => refusal(&error),
        };
        match error {
            Refusal::Key(reason) => {
                self.tried.push(name);
                self.reason = reason;
                Ok(false)
            }
            // A server that has refused enough keys hangs up: that is a refusal too.
            Refusal::Link(reason) if !self.tried.is_empty() => {
                self.tried.push(name);
                self.reason = reason;
                Err(self.refused())
            }
            Refusal::Link(reason) => Err(cannot_connect(self.host, &format!("while logging in: {reason}"))),
            Refusal::File(reason) => {
                let path = file.map(Path::to_owned).unwrap_or_default();
                self.file_error = Some(SshError::KeyUnreadable { path, reason });
                Ok(false)
            }
        }
    }

    fn refused(&self) -> SshError {
        SshError::AuthRefused {
            host: self.host.clone(),
            user: self.config.user.clone(),
            tried: self.tried.clone(),
            reason: if self.reason.is_empty() {
                "no key could be offered".to_owned()
            } else {
                self.reason.clone()
            },
        }
    }

    fn failure(&mut self) -> SshError {
        match self.file_error.take() {
            // No key reached the server, so the file is what has to be mended.
            Some(error) if self.reason.is_empty() => error,
            Some(error) => {
                self.tried.insert(0, error.to_string());
                self.refused()
            }
            None => self.refused(),
        }
    }
}

fn refusal(error: &ssh2::Error) -> Refusal {
    let reason = error.message().to_owned();
    match error.code() {
        FILE => Refusal::File(reason),
        ErrorCode::Session(code) if LINK_ERRORS.contains(&code) => Refusal::Link(reason),
        _ => Refusal::Key(reason),
    }
}

/// The error for one host that could not be reached.
pub(crate) fn cannot_connect(host: &HostPort, reason: &str) -> SshError {
    SshError::Unreachable {
        failures: vec![HostFailure {
            host: host.clone(),
            reason: format!("cannot connect to {host}: {reason}"),
            advice: format!(
                "Check that {host} is up, that a firewall lets us through, and the configured name and port."
            ),
        }],
    }
}
