//! The HTTP server. It limits the number of connections, and the time and size of each request's head. The API limits what
//! comes after the head.

use std::{io, sync::Arc, time::Duration};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

/// The pause after a failed `accept`, such as without a free file descriptor: other connections end meanwhile.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The limits of connections.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionLimits {
    /// How long the head of a request may take, counted from the end of the previous request.
    pub(crate) header_timeout: Duration,
    /// The largest head that the API accepts. A head of more than four times this size closes the connection.
    pub(crate) header_bytes: usize,
    /// The maximum number of open connections.
    pub(crate) connections: usize,
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
        .max_headers(512);
    let permits = Arc::new(Semaphore::new(limits.connections));
    let ending = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    while let Some(accepted) = stop.run_until_cancelled(accept(&listener, &permits)).await {
        let (stream, permit) = match accepted {
            Ok(accepted) => accepted,
            // The client closed the connection before it was accepted.
            Err(error) if was_closed_by_client(&error) => continue,
            Err(error) => {
                tracing::warn!(%error, "cannot accept connections; retrying");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        tracing::trace!(peer = ?stream.peer_addr().ok(), "connection accepted");
        // Nagle's algorithm would delay small responses.
        let _ = stream.set_nodelay(true);
        let served = http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes.clone()));
        let served = ending.watch(served);
        connections.spawn(async move {
            let _permit = permit;
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
) -> io::Result<(TcpStream, OwnedSemaphorePermit)> {
    let permit = Arc::clone(permits).acquire_owned().await.map_err(io::Error::other)?;
    Ok((listener.accept().await?.0, permit))
}

fn was_closed_by_client(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset
    )
}

#[cfg(test)]
mod tests;
