//! Logs in: with the key file first, then with the keys of the agent.

use std::path::Path;

use ssh2::{ErrorCode, Session};

use crate::{HostPort, SshConfig, SshError, keys::key_file::inspect_key};

/// `LIBSSH2_ERROR_FILE`: libssh2 cannot use the key file.
const FILE: ErrorCode = ErrorCode::Session(-16);
/// The errors of libssh2 for a lost or silent connection: socket send, timeout, socket disconnect, socket
/// timeout, socket receive, bad socket.
const LINK_ERRORS: [i32; 6] = [-7, -9, -13, -30, -43, -45];

/// An error if there is certainly no key to log in with. Contacts no host.
pub(crate) fn check(config: &SshConfig) -> Result<(), SshError> {
    let agent = config.use_agent && config.agent_socket.is_some();
    match &config.key_path {
        None if agent => Ok(()),
        None => Err(SshError::NoKey),
        // The agent may still succeed; `log_in` reports the file if the agent fails too.
        Some(path) => inspect_key(path).map(drop).or_else(|error| if agent { Ok(()) } else { Err(error) }),
    }
}

/// Logs the session in, or reports which keys it tried.
pub(crate) fn log_in(session: &Session, config: &SshConfig, host: &HostPort) -> Result<(), SshError> {
    let mut attempt = Attempt { session, config, host, tried: Vec::new(), reason: None };
    let mut file_error = None;
    if let Some(path) = &config.key_path {
        file_error = inspect_key(path).err();
        if file_error.is_none() {
            match session.userauth_pubkey_file(&config.user, None, path, None) {
                Err(error) if error.code() == FILE => {
                    let reason = error.message().to_owned();
                    file_error = Some(SshError::KeyUnreadable { path: path.clone(), reason });
                }
                result => {
                    if attempt.is_accepted(format!("key file {}", path.display()), result)? {
                        return Ok(());
                    }
                }
            }
        }
    }
    if let Some(socket) = config.agent_socket.as_ref().filter(|_| config.use_agent)
        && attempt.by_agent(socket)?
    {
        return Ok(());
    }
    match file_error {
        // No key reached the server, so the file is what a person has to fix.
        Some(error) if attempt.reason.is_none() => return Err(error),
        Some(error) => attempt.tried.insert(0, error.to_string()),
        None => {}
    }
    Err(attempt.refused())
}

struct Attempt<'a> {
    session: &'a Session,
    config: &'a SshConfig,
    host: &'a HostPort,
    tried: Vec<String>,
    /// Why the server refused the last key that it was offered.
    reason: Option<String>,
}

impl Attempt<'_> {
    fn by_agent(&mut self, socket: &Path) -> Result<bool, SshError> {
        let identities = self.session.agent().and_then(|mut agent| {
            agent.set_identity_path(socket)?;
            agent.connect()?;
            agent.list_identities()?;
            let identities = agent.identities()?;
            Ok((agent, identities))
        });
        let (agent, identities) = match identities {
            Ok(found) => found,
            Err(error) => {
                let name = format!("agent at {} (unavailable: {})", socket.display(), error.message());
                self.tried.push(name);
                return Ok(false);
            }
        };
        if identities.is_empty() {
            self.tried.push(format!("agent at {} (it holds no keys)", socket.display()));
        }
        for identity in identities {
            let result = agent.userauth(&self.config.user, &identity);
            if self.is_accepted(format!("agent key {}", identity.comment()), result)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn is_accepted(&mut self, key: String, result: Result<(), ssh2::Error>) -> Result<bool, SshError> {
        let (reason, is_link_lost) = match result {
            Ok(()) if self.session.authenticated() => return Ok(true),
            Ok(()) => ("the server requires a second factor".to_owned(), false),
            Err(error) => (error.message().to_owned(), is_link_error(&error)),
        };
        if is_link_lost && self.tried.is_empty() {
            return Err(SshError::cannot_connect(self.host, &format!("while logging in: {reason}")));
        }
        self.tried.push(key);
        self.reason = Some(reason);
        // A server hangs up after it has refused enough keys: that is a refusal too.
        if is_link_lost { Err(self.refused()) } else { Ok(false) }
    }

    fn refused(&self) -> SshError {
        SshError::AuthRefused {
            host: self.host.clone(),
            user: self.config.user.clone(),
            tried: self.tried.clone(),
            reason: self.reason.clone().unwrap_or_else(|| "no key could be offered".to_owned()),
        }
    }
}

fn is_link_error(error: &ssh2::Error) -> bool {
    matches!(error.code(), ErrorCode::Session(code) if LINK_ERRORS.contains(&code))
}
