//! Connections that ask and never read.

use std::{fs, io::Write, net::TcpStream, time::Duration};

use serde_json::{Map, Value, json};

use crate::service::{Service, until};

const CLIENTS: usize = 1200;
/// For the answers, for those that are being made, and for the sockets.
const MOST_KIB: u64 = 700 * 1024;

#[test]
fn connections_that_never_read_hold_nothing_for_long() {
    let mut service = Service::prepare(&[]);
    service.role = "api";
    service.spawn();
    // A list of these jobs has three megabytes.
    for job in 0..100 {
        let label = |number: usize| (format!("label-{number}"), json!(format!("{job}{}", "x".repeat(490))));
        let labels: Map<String, Value> = (0..60).map(label).collect();
        service.submit(&json!({"command": "true", "labels": labels}));
    }
    let files = || fs::read_dir(format!("/proc/{}/fd", service.pid())).unwrap().count();
    let (files_before, memory_before) = (files(), service.resident_kib());
    let address = service.url.trim_start_matches("http://");
    let ask = |number: usize| {
        let mut client = TcpStream::connect(address).unwrap();
        let path = if number.is_multiple_of(2) { "/docs/swagger-ui-bundle.js" } else { "/jobs?limit=200" };
        write!(client, "GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
        client
    };
    let clients: Vec<TcpStream> = (0..CLIENTS).map(ask).collect();
    let mut most = 0;
    until("the connections to be closed", Duration::from_mins(1), || {
        most = most.max(service.resident_kib());
        // The database's connections may have become more.
        files() < files_before + 30
    });
    let grown = most.saturating_sub(memory_before);
    assert!(grown < MOST_KIB, "{grown} KiB more than before");
    assert_eq!(service.get("/jobs?limit=1").status, 200);
    drop(clients);
}
