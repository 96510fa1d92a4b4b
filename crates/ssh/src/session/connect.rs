//! Opens a session: connects, verifies the host key and logs in.

use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use ssh2::Session;

use crate::keys::auth::log_in;
use crate::keys::host_key::HostKeys;
use crate::session::link::Link;
use crate::{HostPort, SshConfig, SshError};

/// How long sent bytes may stay unacknowledged before the kernel closes the connection, in keepalive
/// intervals. This detects a dead connection while a command prints nothing.
const UNACKNOWLEDGED_INTERVALS: u32 = 2;

/// Opens a session on one host. This runs no program, so every error means that nothing ran.
pub(crate) fn connect(config: &SshConfig, host: &HostPort) -> Result<Link, SshError> {
    let cannot_connect = |reason: String| SshError::cannot_connect(host, &reason);
    let socket = dial(host, config.connect_timeout).map_err(cannot_connect)?;
    let (mut session, socket) = prepared(socket, config)
        .map_err(|error| cannot_connect(format!("cannot set up the socket: {error}")))?;
    let keys = HostKeys::load(config, host, &session);
    keys.prefer_known_kinds(&session)
        .and_then(|()| session.handshake())
        .map_err(|error| cannot_connect(format!("the key exchange failed: {}", error.message())))?;
    keys.verify(&session)?;
    log_in(&session, config, host)?;
    session.set_keepalive(false, u32::try_from(config.keepalive.as_secs()).unwrap_or(u32::MAX));
    session.set_blocking(false);
    Ok(Link { session, socket, host: host.clone(), opened: Instant::now() })
}

/// A TCP connection to the first address that accepts one. `bound` limits all attempts together.
fn dial(host: &HostPort, bound: Duration) -> Result<TcpStream, String> {
    let addresses = (host.host(), host.port())
        .to_socket_addrs()
        .map_err(|error| format!("the name does not resolve: {error}"))?;
    let until = Instant::now() + bound;
    let mut reason = "the name has no address".to_owned();
    for address in addresses {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        match TcpStream::connect_timeout(&address, left) {
            Ok(socket) => return Ok(socket),
            Err(error) => reason = format!("{address}: {error}"),
        }
    }
    Err(reason)
}

fn prepared(socket: TcpStream, config: &SshConfig) -> Result<(Session, TcpStream), std::io::Error> {
    // ssh2 leaves Nagle's algorithm on. With delayed acknowledgements each exec then takes 40 ms more.
    socket.set_nodelay(true)?;
    let bound = config.keepalive.saturating_mul(UNACKNOWLEDGED_INTERVALS).max(config.connect_timeout);
    rustix::net::sockopt::set_tcp_user_timeout(&socket, millis(bound))?;
    let mut session = Session::new()?;
    session.set_timeout(millis(config.connect_timeout));
    session.set_tcp_stream(socket.try_clone()?);
    Ok((session, socket))
}

fn millis(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn small_packets_are_sent_without_delay() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (_session, socket) = prepared(socket, &SshConfig::new("tao", Vec::new())).unwrap();
        assert!(socket.nodelay().unwrap());
    }
}
