use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
};

use axum::{
    body::{Body, Bytes},
    routing::get,
};
use futures_util::stream;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpSocket,
    runtime::Handle,
    sync::Notify,
    task::spawn_blocking,
    time::{advance, sleep, timeout},
};

use super::*;

const LONG: Duration = Duration::from_mins(2);
const PAUSE: Duration = Duration::from_millis(20);

fn limits() -> ConnectionLimits {
    ConnectionLimits {
        header_timeout: LONG,
        header_bytes: 1024,
        write_timeout: LONG,
        connections: 100,
        connections_of_address: 100,
    }
}

struct Served {
    address: SocketAddr,
    stop: CancellationToken,
    tasks: JoinSet<io::Result<()>>,
}

async fn served(all: Router, limits: ConnectionLimits) -> Served {
    let probes = Router::new().route("/livez", get(async || "alive")).fallback(async || "probes only");
    let routes = Routes { all, probes };
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

/// Stops the clock until it is dropped. The clock of tokio jumps whenever the process waits for a socket, but not while a blocking
/// task runs.
struct StoppedClock(#[expect(dead_code, reason = "its end is the end of the task")] mpsc::Sender<()>);

fn stop_clock() -> StoppedClock {
    tokio::time::pause();
    let (sender, receiver) = mpsc::channel();
    spawn_blocking(move || receiver.recv());
    StoppedClock(sender)
}

/// More than the buffers of both ends take.
const LARGE: usize = 32 << 20;

/// An answer that is large at once, and one that does not end.
fn endless(begun: &Arc<AtomicUsize>) -> Router {
    let (large_begun, stream_begun) = (Arc::clone(begun), Arc::clone(begun));
    let bytes = Bytes::from(vec![0; LARGE]);
    let large = async move || {
        large_begun.fetch_add(1, Ordering::Relaxed);
        Body::from(bytes)
    };
    let stream = async move || {
        stream_begun.fetch_add(1, Ordering::Relaxed);
        Body::from_stream(stream::repeat_with(|| Ok::<_, Infallible>(Bytes::from(vec![b'x'; 1024]))))
    };
    Router::new().route("/large", get(large)).route("/stream", get(stream))
}

fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Until the condition is true; the bound is for a machine that does much else.
async fn until(what: &str, mut done: impl FnMut() -> bool) {
    let wait = async {
        while !done() {
            sleep(PAUSE).await;
        }
    };
    timeout(2 * LONG, wait).await.unwrap_or_else(|_| panic!("waited for {what}"));
}

#[tokio::test]
async fn answers_that_nobody_reads_hold_connections_tasks_and_memory_only_for_a_while() {
    const CLIENTS: usize = 1000;
    crate::process::open_files::raise_limit();
    let begun = Arc::new(AtomicUsize::new(0));
    let limits = ConnectionLimits {
        // In it, on a busy machine too, one who reads takes something.
        write_timeout: Duration::from_secs(5),
        header_bytes: 32 * 1024,
        connections: 2 * CLIENTS,
        connections_of_address: 2 * CLIENTS,
        ..limits()
    };
    let service = served(endless(&begun), limits).await;
    let tasks = || Handle::current().metrics().num_alive_tasks();
    let (files_before, tasks_before, memory_before) = (open_files(), tasks(), resident_kib());
    let mut clients = Vec::new();
    for number in 0..CLIENTS {
        let mut client = TcpStream::connect(service.address).await.unwrap();
        let path = if number % 2 == 0 { "/large" } else { "/stream" };
        client.write_all(format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes()).await.unwrap();
        clients.push(client);
    }
    until("all answers to begin", || begun.load(Ordering::Relaxed) == CLIENTS).await;
    let grown = resident_kib().saturating_sub(memory_before);
    assert!(grown < 200 * 1024, "{grown} KiB for {CLIENTS} connections");
    until("the tasks to end", || tasks() == tasks_before).await;
    // The other ends are files of this process, too.
    until("the files to be closed", || open_files() == files_before + CLIENTS).await;
    // Those who read are served as before.
    let mut reader = TcpStream::connect(service.address).await.unwrap();
    reader.write_all(b"GET /large HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut read = Vec::new();
    reader.read_to_end(&mut read).await.unwrap();
    assert!(read.len() > LARGE, "{}", read.len());
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

mod crowded;
mod slow_clients;
