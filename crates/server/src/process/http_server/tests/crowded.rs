//! More connections than the limits allow.

use super::*;

async fn connected(service: &Served, from: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(format!("{from}:0").parse().unwrap()).unwrap();
    socket.connect(service.address).await.unwrap()
}

/// The whole answer to one request, empty if the connection is closed.
async fn asked(service: &Served, from: &str, path: &str) -> String {
    let mut stream = connected(service, from).await;
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    let _ = stream.write_all(request.as_bytes()).await;
    received(&mut stream).await
}

#[tokio::test]
async fn probes_are_answered_when_all_connections_are_taken() {
    let service = served(routes(), ConnectionLimits { connections: 2, ..limits() }).await;
    let held = [connected(&service, "127.0.0.1").await, connected(&service, "127.0.0.2").await];
    // Connections are accepted in their order, so those are counted by now.
    assert!(asked(&service, "127.0.0.3", "/livez").await.ends_with("alive"));
    assert!(asked(&service, "127.0.0.3", "/").await.ends_with("probes only"));
    // A client that takes up what is kept for probes keeps no other from it.
    let mut greedy = Vec::new();
    for _ in 0..RESERVE {
        greedy.push(connected(&service, "127.0.0.1").await);
    }
    assert_eq!(asked(&service, "127.0.0.1", "/livez").await, "");
    assert!(asked(&service, "127.0.0.3", "/livez").await.ends_with("alive"));
    // Nor does it keep itself from it for long.
    for mut idle in greedy {
        let mut bytes = Vec::new();
        let _ = idle.read_to_end(&mut bytes).await;
        assert_eq!(bytes, b"");
    }
    assert!(asked(&service, "127.0.0.1", "/livez").await.ends_with("alive"));
    drop(held);
    while !asked(&service, "127.0.0.1", "/").await.ends_with("here") {
        sleep(PAUSE).await;
    }
}

#[tokio::test]
async fn an_address_with_its_maximum_of_connections_gets_probes_only() {
    let limits = ConnectionLimits { connections_of_address: 2, ..limits() };
    let service = served(routes(), limits).await;
    let held = [connected(&service, "127.0.0.1").await, connected(&service, "127.0.0.1").await];
    assert!(asked(&service, "127.0.0.1", "/").await.ends_with("probes only"));
    assert!(asked(&service, "127.0.0.2", "/").await.ends_with("here"));
    drop(held);
    while !asked(&service, "127.0.0.1", "/").await.ends_with("here") {
        sleep(PAUSE).await;
    }
}
