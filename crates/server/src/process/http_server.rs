//! The HTTP server. It limits the number of connections in all and of each address, the time and size of each request's head, and
//! the time in which a client takes nothing of its answer. The API limits what else comes after the head.

mod addresses;

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use addresses::{Addresses, Counted};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
    service::TowerToHyperService,
};
use socket2::SockRef;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

/// The pause after a failed `accept`, such as without a free file descriptor: other connections end meanwhile.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How much of an answer the kernel keeps beyond what the client has room for.
const KEPT_UNSENT: u32 = 128 * 1024;
/// hyper's least buffer.
const LEAST_BUFFER: usize = 8192;

/// The limits of connections.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionLimits {
    /// How long the head of a request may take, counted from the end of the previous request.
    pub(crate) header_timeout: Duration,
    /// The largest head that the API accepts. A head of more than four times this size closes the connection.
    pub(crate) header_bytes: usize,
    /// How long a client may take nothing of its answer.
    pub(crate) write_timeout: Duration,
    /// The maximum number of open connections.
    pub(crate) connections: usize,
    /// The same for each address.
    pub(crate) connections_of_address: usize,
}

/// Serves until `stop`, then answers the requests that have begun.
pub(crate) async fn serve(
    listener: TcpListener,
    routes: Router,
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
    let permits = Arc::new(Semaphore::new(limits.connections));
    let addresses = Addresses::new(limits.connections_of_address);
    let ending = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    while let Some(accepted) = stop.run_until_cancelled(accept(&listener, &permits)).await {
        let (stream, peer, permit) = match accepted {
            Ok(accepted) => accepted,
            // The client closed the connection before it was accepted.
            Err(error) if was_closed_by_client(&error) => continue,
            Err(error) => {
                tracing::warn!(%error, "cannot accept connections; retrying");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let Some(counted) = addresses.count(peer.ip()) else { continue };
        tracing::trace!(%peer, "connection accepted");
        if let Err(error) = prepare(&stream, limits.write_timeout) {
            tracing::warn!(%error, "cannot set the options of a connection");
        }
        let served = http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes.clone()));
        let served = ending.watch(served);
        connections.spawn(async move {
            let _held: (OwnedSemaphorePermit, Counted) = (permit, counted);
            if let Err(error) = served.await {
                tracing::debug!(%error, "connection ended early");
            }
        });
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    ending.shutdown().await;
    Ok(())
}

/// Accepts the next connection once fewer than the maximum are open.
async fn accept(
    listener: &TcpListener,
    permits: &Arc<Semaphore>,
) -> io::Result<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let permit = Arc::clone(permits).acquire_owned().await.map_err(io::Error::other)?;
    let (stream, peer) = listener.accept().await?;
    Ok((stream, peer, permit))
}

/// The kernel closes a connection whose client takes nothing for `write_timeout`, and keeps little that is unsent. It still does so
/// after our side has closed the connection.
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
