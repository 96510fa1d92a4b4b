use std::net::SocketAddr;

use axum::routing::get;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::Notify,
    time::timeout,
};

use super::*;

const LONG: Duration = Duration::from_secs(20);

fn limits() -> ConnectionLimits {
    ConnectionLimits { header_timeout: LONG, header_bytes: 1024, connections: 100 }
}

struct Served {
    address: SocketAddr,
    stop: CancellationToken,
    tasks: JoinSet<io::Result<()>>,
}

async fn served(routes: Router, limits: ConnectionLimits) -> Served {
    let listener = TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let (address, stop) = (listener.local_addr().unwrap(), CancellationToken::new());
    let mut tasks = JoinSet::new();
    tasks.spawn(serve(listener, routes, limits, stop.clone()));
    Served { address, stop, tasks }
}

fn routes() -> Router {
    Router::new().route("/", get(async || "here"))
}

/// Everything that the service sends until it closes the connection.
async fn received(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let _ =
        timeout(LONG / 2, stream.read_to_end(&mut bytes)).await.expect("the connection is closed in time");
    String::from_utf8(bytes).unwrap()
}

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";

#[tokio::test]
async fn a_slow_head_closes_the_connection() {
    let limits = ConnectionLimits { header_timeout: Duration::from_millis(200), ..limits() };
    let service = served(routes(), limits).await;
    let mut stream = TcpStream::connect(service.address).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nx-slow: ").await.unwrap();
    assert!(!received(&mut stream).await.contains("here"));
    // Without a head, too.
    let mut stream = TcpStream::connect(service.address).await.unwrap();
    assert_eq!(received(&mut stream).await, "");
}

#[tokio::test]
async fn a_head_that_is_too_large_is_a_431() {
    let service = served(routes(), limits()).await;
    let mut stream = TcpStream::connect(service.address).await.unwrap();
    let head = format!("GET / HTTP/1.1\r\nhost: x\r\nx-large: {}\r\n\r\n", "x".repeat(8192));
    let _ = stream.write_all(head.as_bytes()).await;
    assert!(received(&mut stream).await.starts_with("HTTP/1.1 431"));
}

#[tokio::test]
async fn a_connection_beyond_the_maximum_waits_until_another_ends() {
    let service = served(routes(), ConnectionLimits { connections: 1, ..limits() }).await;
    let mut first = TcpStream::connect(service.address).await.unwrap();
    // Its response shows that it has the only permit.
    first.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let mut start = [0; 15];
    first.read_exact(&mut start).await.unwrap();
    assert_eq!(&start, b"HTTP/1.1 200 OK");
    let mut second = TcpStream::connect(service.address).await.unwrap();
    second.write_all(REQUEST).await.unwrap();
    let nothing = timeout(Duration::from_millis(300), second.read(&mut start)).await;
    assert!(nothing.is_err(), "it is served in parallel with the first");
    drop(first);
    assert!(received(&mut second).await.ends_with("here"));
}

#[tokio::test]
async fn a_stop_answers_running_requests_and_closes_idle_connections() {
    let (asked, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let routes = {
        let (asked, go) = (Arc::clone(&asked), Arc::clone(&go));
        routes().route(
            "/slow",
            get(async move || {
                asked.notify_one();
                go.notified().await;
                "slow"
            }),
        )
    };
    let mut service = served(routes, limits()).await;
    let mut idle = TcpStream::connect(service.address).await.unwrap();
    let mut busy = TcpStream::connect(service.address).await.unwrap();
    busy.write_all(b"GET /slow HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    timeout(LONG, asked.notified()).await.unwrap();
    service.stop.cancel();
    assert_eq!(received(&mut idle).await, "");
    go.notify_one();
    assert!(received(&mut busy).await.ends_with("slow"));
    timeout(LONG, service.tasks.join_next()).await.unwrap().unwrap().unwrap().unwrap();
}
