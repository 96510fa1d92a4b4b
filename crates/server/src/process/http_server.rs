//! Connections: each bounded in the time and the size of what it sends before anybody has read it, and all of them in
//! number. What a request may cost once it is read is the API's business.

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

/// How long accepting rests when the process has no file descriptor left: connections end meanwhile.
const BREATH: Duration = Duration::from_millis(100);

/// What a connection may cost.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionLimits {
    /// How long the head of a request may take, from the end of the request before.
    pub(crate) header_timeout: Duration,
    /// The largest head that the API answers for. Beyond four times as much the connection is cut short.
    pub(crate) header_bytes: usize,
    /// How many there may be at a time.
    pub(crate) connections: usize,
}

/// Serves until it is asked to stop, and then until what was begun is answered.
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
    let places = Arc::new(Semaphore::new(limits.connections));
    let ending = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    while let Some(arrival) = stop.run_until_cancelled(accept(&listener, &places)).await {
        let (stream, place) = match arrival {
            Ok(arrival) => arrival,
            // The client gave up before we came to it: its affair.
            Err(error) if is_the_clients(&error) => continue,
            Err(error) => {
                tracing::warn!(%error, "no connection can be accepted");
                tokio::time::sleep(BREATH).await;
                continue;
            }
        };
        tracing::trace!(peer = ?stream.peer_addr().ok(), "a connection is accepted");
        // Answers are small and waited for: Nagle's algorithm would hold them back.
        let _ = stream.set_nodelay(true);
        let served = http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes.clone()));
        let served = ending.watch(served);
        connections.spawn(async move {
            let _place = place;
            // How a connection ends is the client's affair as well.
            if let Err(error) = served.await {
                tracing::debug!(%error, "a connection ended early");
            }
        });
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    ending.shutdown().await;
    Ok(())
}

/// The next connection, once there is a place for it.
async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> io::Result<(TcpStream, OwnedSemaphorePermit)> {
    let place = Arc::clone(places).acquire_owned().await.map_err(io::Error::other)?;
    Ok((listener.accept().await?.0, place))
}

fn is_the_clients(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset
    )
}

#[cfg(test)]
mod tests;
