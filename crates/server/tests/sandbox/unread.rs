//! Connections that ask and never read.

use std::{
    fs,
    io::{ErrorKind, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    thread,
    time::Duration,
};

use serde_json::{Map, Value, json};
use socket2::{Domain, Socket, Type};

use crate::service::{Service, until};

/// Longer than it takes until all have asked.
const PATIENCE: Duration = Duration::from_mins(3);
/// The program and 4,000 connections take 100 MiB, bodies and unsent answers 128 MiB, four lists that are being made 104 MiB, and what the
/// allocator gives back within a second 50 MiB. The Kubernetes manifests allow 512 MiB; unbounded, it would be gigabytes.
const MOST_KIB: u64 = 480 * 1024;

/// A service with jobs whose list has six megabytes.
fn service_with_large_jobs(changed: &[(&str, &str)]) -> Service {
    let mut service = Service::prepare(changed);
    service.role = "api";
    service.spawn();
    for job in 0..200 {
        let label = |number: usize| (format!("label-{number}"), json!(format!("{job}{}", "x".repeat(490))));
        let labels: Map<String, Value> = (0..60).map(label).collect();
        service.submit(&json!({"command": "true", "labels": labels}));
    }
    service
}

/// A client with little room for an answer. An address may have only half of all connections.
fn client(number: usize, service: &Service) -> TcpStream {
    let server: SocketAddr = service.url.trim_start_matches("http://").parse().unwrap();
    let host = if number.is_multiple_of(2) { 2 } else { 3 };
    let client = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    client.set_recv_buffer_size(4096).unwrap();
    client.bind(&SocketAddr::from((Ipv4Addr::new(127, 0, 0, host), 0)).into()).unwrap();
    client.connect(&server.into()).unwrap();
    client.into()
}

fn ask(mut client: &TcpStream, path: &str) {
    write!(client, "GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
}

/// Sends a body of this size but for its end, as far as the service takes it.
fn send_most_of_a_body(mut client: &TcpStream, path: &str, size: usize) {
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {size}\r\n\r\n"
    );
    let sent = client.write_all(head.as_bytes()).and_then(|()| client.write_all(&vec![b' '; size - 1]));
    // The service may have refused the body.
    if let Err(error) = sent {
        assert!(matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset), "{error}");
    }
}

/// The tools for agents, with their schemas.
fn list_tools(mut client: &TcpStream) {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    write!(
        client,
        "POST /mcp HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\ncontent-length: {}\r\n\r\n{message}",
        message.len()
    )
    .unwrap();
}

#[test]
fn four_thousand_connections_that_never_read_take_a_bounded_memory() {
    let settings = tempfile::NamedTempFile::new().unwrap();
    // All connections must be there at the same time.
    fs::write(&settings, "[server]\nwrite_timeout = \"10m\"\nheader_timeout = \"10m\"\n").unwrap();
    let service = service_with_large_jobs(&[("TAO_SLURM_CONFIG", settings.path().to_str().unwrap())]);
    let large = json!({"image": "a:1", "network_arch": "a", "action": "train", "specs": {"text": "x".repeat(3_000_000)}});
    let large = format!("/jobs/{}", service.submit(&large));
    let clients: Vec<TcpStream> = (0..4000).map(|number| client(number, &service)).collect();
    thread::scope(|scope| {
        for (number, client) in clients.iter().enumerate() {
            match number % 40 {
                0 => drop(scope.spawn(|| send_most_of_a_body(client, "/jobs", 9_000_000))),
                32 => drop(scope.spawn(|| send_most_of_a_body(client, "/mcp", 1_000_000))),
                33..36 => list_tools(client),
                1..5 => ask(client, "/jobs?limit=200"),
                5..7 => ask(client, &large),
                7..25 => ask(client, "/docs/swagger-ui-bundle.js"),
                25..32 => ask(client, "/jobs?limit=2"),
                _ => ask(client, "/openapi.json"),
            }
        }
    });
    for client in &clients {
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        // Until its answer has begun. A connection whose body was refused may be reset.
        match client.peek(&mut [0]) {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}"),
        }
    }
    let most = service.memory_kib("VmHWM");
    assert!(most < MOST_KIB, "{most} KiB");
    drop(clients);
    assert_eq!(service.get("/jobs?limit=1").status, 200);
}

#[test]
fn connections_that_never_read_hold_nothing_for_long() {
    let service = service_with_large_jobs(&[]);
    let files = || fs::read_dir(format!("/proc/{}/fd", service.pid())).unwrap().count();
    let files_before = files();
    let clients: Vec<TcpStream> = (0..1200).map(|number| client(number, &service)).collect();
    for (number, client) in clients.iter().enumerate() {
        ask(client, if number.is_multiple_of(2) { "/docs/swagger-ui-bundle.js" } else { "/jobs?limit=200" });
    }
    // The database's connections may have become more.
    until("the connections to be closed", Duration::from_mins(1), || files() < files_before + 30);
    assert_eq!(service.get("/jobs?limit=1").status, 200);
    drop(clients);
}
