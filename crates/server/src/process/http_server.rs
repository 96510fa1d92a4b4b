//! The HTTP server. It limits the number of connections in all and of each address, the time and size of each request's head, and
//! the pace at which a client takes its answer. The API limits what else comes after the head.

mod addresses;
mod pace;
mod room;

use std::{io, time::Duration};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
    service::TowerToHyperService,
};
use pace::PacedStream;
use room::Room;
use socket2::SockRef;
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

/// The pause after a failed `accept`, such as without a free file descriptor: other connections end meanwhile.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How much of an answer the kernel keeps beyond what the client has room for.
const KEPT_UNSENT: u32 = 128 * 1024;
/// hyper's least buffer.
const LEAST_BUFFER: usize = 8192;
/// Connections beyond the limits that are served nevertheless, so that probes are answered.
const RESERVE: usize = 64;
/// The same for each address: a client that has used up its connections must not use up these.
const RESERVE_OF_ADDRESS: usize = 8;
/// How long such a connection may stay. The slowest answer of a probe takes two seconds, without the database.
const RESERVE_TIME: Duration = Duration::from_secs(5);

/// The limits of connections.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionLimits {
    /// How long the head of a request may take, counted from the end of the previous request.
    pub(crate) header_timeout: Duration,
    /// The largest head that the API accepts. A head of more than four times this size closes the connection.
    pub(crate) header_bytes: usize,
    /// How long a client may take nothing of its answer, and how far it may fall behind the least pace.
    pub(crate) write_timeout: Duration,
    /// The maximum number of open connections.
    pub(crate) connections: usize,
    /// The same for each address.
    pub(crate) connections_of_address: usize,
}

/// What connections get.
#[derive(Debug, Clone)]
pub(crate) struct Routes {
    pub(crate) all: Router,
    /// For connections beyond the limits.
    pub(crate) probes: Router,
}

/// Serves until `stop`, then answers the requests that have begun.
pub(crate) async fn serve(
    listener: TcpListener,
    routes: Routes,
    limits: ConnectionLimits,
    stop: CancellationToken,
) -> io::Result<()> {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout)
        .max_header_size(limits.header_bytes.saturating_mul(4))
        // Also what a stream may have unsent.
        .max_buf_size(limits.header_bytes.saturating_mul(4).max(LEAST_BUFFER))
        .max_headers(512);
    let mut once = http.clone();
    once.keep_alive(false);
    let room = Room::new(limits.connections, limits.connections_of_address);
    let reserve = Room::new(RESERVE, RESERVE_OF_ADDRESS);
    let ending = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    while let Some(accepted) = stop.run_until_cancelled(listener.accept()).await {
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            // The client closed the connection before it was accepted.
            Err(error) if was_closed_by_client(&error) => continue,
            Err(error) => {
                tracing::warn!(%error, "cannot accept connections; retrying");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        while connections.try_join_next().is_some() {}
        let (place, http, routes, most) = if let Some(place) = room.take(peer.ip()) {
            (place, &http, &routes.all, Duration::MAX)
        } else if let Some(place) = reserve.take(peer.ip()) {
            (place, &once, &routes.probes, RESERVE_TIME)
        } else {
            continue;
        };
        tracing::trace!(%peer, "connection accepted");
        if let Err(error) = prepare(&stream, limits.write_timeout) {
            tracing::warn!(%error, "cannot set the options of a connection");
        }
        let stream = TokioIo::new(PacedStream::new(stream, limits.write_timeout));
        let served = http.serve_connection(stream, TowerToHyperService::new(routes.clone()));
        let served = timeout(most, ending.watch(served));
        connections.spawn(async move {
            let _held = place;
            match served.await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::debug!(%error, "connection ended early"),
                Err(_) => tracing::debug!("connection beyond the limits took too long"),
            }
        });
    }
    drop(listener);
    ending.shutdown().await;
    Ok(())
}

/// [`PacedStream`] watches what the kernel has not taken yet. What it has taken, such as the small events of a stream or the end of
/// an answer, only the kernel can watch: it closes a connection whose client takes nothing of that for `write_timeout`, even after
/// our side has closed the connection. So it should keep little that is unsent.
fn prepare(stream: &TcpStream, write_timeout: Duration) -> io::Result<()> {
    // Nagle's algorithm would delay small responses.
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
    socket.set_tcp_user_timeout(Some(write_timeout))?;
    socket.set_tcp_notsent_lowat(KEPT_UNSENT)
}

fn was_closed_by_client(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset
    )
}

#[cfg(test)]
mod tests;
