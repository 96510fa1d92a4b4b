//! From a host name to a session that is connected, verified and logged in.

use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use ssh2::Session;

use crate::keys::auth::{cannot_connect, log_in};
use crate::keys::host_key::HostKeys;
use crate::session::link::Link;
use crate::{HostPort, SshConfig, SshError};

/// How long sent bytes may stay unacknowledged before the kernel gives up the connection, in keepalive
/// intervals. It notices a dead link in the middle of a silent command.
const UNACKNOWLEDGED_INTERVALS: u32 = 2;

/// Opens a session on one host. Nothing of this runs a program, so every error means that nothing ran.
pub(crate) fn connect(config: &SshConfig, host: &HostPort) -> Result<Link, SshError> {
    let socket = dial(host, config.connect_timeout).map_err(|reason| cannot_connect(host, &reason))?;
    let (mut session, socket) = prepared(socket, config)
        .map_err(|error| cannot_connect(host, &format!("cannot set up the socket: {error}")))?;
    let keys = HostKeys::load(config, host, &session);
    keys.prefer_known_kinds(&session)
        .and_then(|()| session.handshake())
        .map_err(|error| cannot_connect(host, &format!("no key exchange: {}", error.message())))?;
    keys.verify(&session)?;
    log_in(&session, config, host)?;
    session.set_keepalive(false, u32::try_from(config.keepalive.as_secs()).unwrap_or(u32::MAX));
    session.set_blocking(false);
    Ok(Link { session, socket, host: host.clone(), opened: Instant::now() })
}

/// A TCP connection to the first address that takes one. The bound is for all addresses together.
fn dial(host: &HostPort, bound: Duration) -> Result<TcpStream, String> {
    let addresses =
        (host.host(), host.port()).to_socket_addrs().map_err(|error| format!("no address: {error}"))?;
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
    // The crate leaves Nagle's algorithm on; with delayed acknowledgements each exec takes 40 ms more.
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
    fn small_packets_do_not_wait_until_others_are_confirmed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (_session, socket) = prepared(socket, &SshConfig::new("tao", Vec::new())).unwrap();
        assert!(socket.nodelay().unwrap());
    }
}
