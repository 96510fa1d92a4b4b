//! Connections that ask and never read.

use std::{
    collections::BTreeMap,
    fs,
    io::{ErrorKind, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    thread,
    time::Duration,
};

use serde_json::{Map, Value, json};
use socket2::{Domain, Socket, Type};

use crate::{
    cluster::sql,
    service::{Service, until},
};

/// Longer than it takes until all have asked.
const PATIENCE: Duration = Duration::from_mins(3);
/// The program and 4,000 connections take 100 MiB, bodies and unsent answers 128 MiB, messages of agents 32 MiB, four lists that are being
/// made 104 MiB, 100 streams of large events 40 MiB, and what the allocator gives back within a second 50 MiB. The Kubernetes manifests
/// allow 512 MiB; unbounded, it would be gigabytes.
const MOST_KIB: u64 = 480 * 1024;

/// What a client asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Asked {
    /// Sends a large body without its end.
    Body,
    /// The same to the tools for agents.
    Message,
    Tools,
    /// A file that is part of the program.
    Script,
    Document,
    SmallList,
    Events,
    LargeJob,
    LargeList,
}

impl Asked {
    fn of(number: usize) -> Self {
        match number % 40 {
            0 => Self::Body,
            6 if number % 200 == 6 => Self::LargeJob,
            1..=6 => Self::LargeList,
            7..=23 => Self::Script,
            24 => Self::Events,
            25..=31 => Self::SmallList,
            32 => Self::Message,
            33..=35 => Self::Tools,
            _ => Self::Document,
        }
    }

    /// The service refuses it sooner or later and closes the connection, perhaps before the client has got the answer.
    fn is_unfinished(self) -> bool {
        matches!(self, Self::Body | Self::Message)
    }
}

/// What is asked at the same time. Bodies would leave no room for large answers, nor messages for the tools: each of the later waves finds
/// the room that the earlier ones have given back. All connections stay open.
const WAVES: [&[Asked]; 3] = [
    &[Asked::Body, Asked::Message, Asked::Script, Asked::Document, Asked::SmallList, Asked::Events],
    &[Asked::Tools, Asked::LargeJob],
    &[Asked::LargeList],
];

/// How many clients get this status at least. There is room for 14 bodies, 33 messages, all large jobs and then 11 large lists; a busy
/// machine may be too slow for some of the rest.
const FLOORS: [(Asked, u16, usize); 9] = [
    (Asked::Body, 408, 10),
    (Asked::Message, 408, 20),
    (Asked::Script, 200, 1700),
    (Asked::Document, 200, 400),
    (Asked::SmallList, 200, 350),
    (Asked::Events, 200, 50),
    (Asked::Tools, 200, 150),
    (Asked::LargeJob, 200, 15),
    (Asked::LargeList, 200, 8),
];

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

/// A job with ten megabytes of events.
fn job_with_large_events(service: &Service) -> String {
    let id = sql(&service.database_url, "select id from jobs limit 1");
    let events = format!(
        "insert into job_events (job_id, seq, at, kind, attempt, file, data)
         select '{id}'::uuid, n, now(), 'status', 1, 'status.json', jsonb_build_object('text', repeat('x', 16000))
         from generate_series(2, 600) n"
    );
    sql(&service.database_url, &events);
    sql(&service.database_url, "select place_events(10000)");
    id
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

fn watch(mut client: &TcpStream, path: &str) {
    write!(client, "GET {path} HTTP/1.1\r\nhost: x\r\naccept: text/event-stream\r\n\r\n").unwrap();
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

/// Waits until the answer has begun, and returns its status; none if the connection was closed.
fn status(client: &TcpStream) -> Option<u16> {
    let mut head = [0; "HTTP/1.1 200".len()];
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    match client.peek(&mut head) {
        Ok(0) => None,
        Ok(_) => Some(str::from_utf8(&head).unwrap().trim_start_matches("HTTP/1.1 ").parse().unwrap()),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
            None
        }
    }
}

/// The service's connections and other open files.
fn open_files(service: &Service) -> usize {
    fs::read_dir(format!("/proc/{}/fd", service.pid())).unwrap().count()
}

#[test]
fn four_thousand_connections_that_never_read_take_a_bounded_memory() {
    let settings = tempfile::NamedTempFile::new().unwrap();
    // All connections must be there at the same time.
    fs::write(&settings, "[server]\nwrite_timeout = \"10m\"\nheader_timeout = \"10m\"\n").unwrap();
    let service = service_with_large_jobs(&[("TAO_SLURM_CONFIG", settings.path().to_str().unwrap())]);
    let events = format!("/jobs/{}/events", job_with_large_events(&service));
    let large = json!({"image": "a:1", "network_arch": "a", "action": "train", "specs": {"text": "x".repeat(3_000_000)}});
    let large = format!("/jobs/{}", service.submit(&large));
    let clients: Vec<(Asked, TcpStream)> =
        (0..4000).map(|number| (Asked::of(number), client(number, &service))).collect();
    let mut answers: BTreeMap<(Asked, Option<u16>), usize> = BTreeMap::new();
    for wave in WAVES {
        let wave: Vec<_> = clients.iter().filter(|(asked, _)| wave.contains(asked)).collect();
        thread::scope(|scope| {
            for (asked, client) in &wave {
                match asked {
                    Asked::Body => drop(scope.spawn(move || send_most_of_a_body(client, "/jobs", 9_000_000))),
                    Asked::Message => {
                        drop(scope.spawn(move || send_most_of_a_body(client, "/mcp", 1_000_000)));
                    }
                    Asked::Tools => list_tools(client),
                    Asked::Script => ask(client, "/docs/swagger-ui-bundle.js"),
                    Asked::Document => ask(client, "/openapi.json"),
                    Asked::SmallList => ask(client, "/jobs?limit=2"),
                    Asked::Events => watch(client, &events),
                    Asked::LargeJob => ask(client, &large),
                    Asked::LargeList => ask(client, "/jobs?limit=200"),
                }
            }
        });
        for (asked, client) in wave {
            *answers.entry((*asked, status(client))).or_default() += 1;
        }
    }
    for (asked, wanted, least) in FLOORS {
        let got = answers.get(&(asked, Some(wanted))).copied().unwrap_or_default();
        assert!(got >= least, "{got} of {asked:?} got a {wanted}: {answers:?}");
    }
    let has_answer = |(asked, status): &(Asked, Option<u16>)| asked.is_unfinished() || status.is_some();
    assert!(answers.keys().all(has_answer), "{answers:?}");
    let unread = clients.iter().filter(|(asked, _)| !asked.is_unfinished()).count();
    let held = open_files(&service);
    assert!(held >= unread, "{held} open files for {unread} connections: {answers:?}");
    let most = service.memory_kib("VmHWM");
    assert!(most < MOST_KIB, "{most} KiB: {answers:?}");
    drop(clients);
    assert_eq!(service.get("/jobs?limit=1").status, 200);
}

#[test]
fn connections_that_never_read_hold_nothing_for_long() {
    let service = service_with_large_jobs(&[]);
    let files_before = open_files(&service);
    let clients: Vec<TcpStream> = (0..1200).map(|number| client(number, &service)).collect();
    for (number, client) in clients.iter().enumerate() {
        ask(client, if number.is_multiple_of(2) { "/docs/swagger-ui-bundle.js" } else { "/jobs?limit=200" });
    }
    // The database's connections may have become more.
    until("the connections to be closed", Duration::from_mins(1), || {
        open_files(&service) < files_before + 30
    });
    assert_eq!(service.get("/jobs?limit=1").status, 200);
    drop(clients);
}
