//! Clients that read, but slowly. The connections are real; the clock stands still and is moved by hand.

use std::fs;

use futures_util::StreamExt;

use super::*;

/// Less than the patience of 30 s.
const STEP: Duration = Duration::from_secs(25);
const PATIENCE: Duration = Duration::from_secs(30);
/// What a client's kernel takes, more or less, without the client.
const WINDOW: u32 = 64 * 1024;

async fn asking(service: &Served, path: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(WINDOW).unwrap();
    let mut stream = socket.connect(service.address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

/// Reads `bytes` in each step, and returns what it has read when the service has closed the connection, or the size of a large
/// answer.
async fn read_in_steps(stream: &mut TcpStream, bytes: usize) -> usize {
    let (mut part, mut read) = (vec![0; bytes], 0);
    while read < LARGE && stream.read_exact(&mut part).await.is_ok() {
        read += bytes;
        advance(STEP).await;
    }
    read
}

async fn slow_service() -> Served {
    let limits = ConnectionLimits { write_timeout: PATIENCE, header_bytes: 32 * 1024, ..limits() };
    served(endless(&Arc::default()), limits).await
}

#[tokio::test]
async fn a_client_that_takes_a_little_now_and_then_is_disconnected() {
    let (service, _clock) = (slow_service().await, stop_clock());
    // Eight kilobytes per second, and less than one.
    for (path, bytes) in [("/large", 200 * 1024), ("/large", 20 * 1024), ("/stream", 20 * 1024)] {
        let read = read_in_steps(&mut asking(&service, path).await, bytes).await;
        assert!(read < LARGE / 4, "{path}: {read} bytes");
    }
}

#[tokio::test]
async fn a_client_at_the_least_pace_gets_the_whole_answer_and_more_of_a_stream_than_that() {
    let (service, _clock) = (slow_service().await, stop_clock());
    // Somewhat more than 16 KiB per second. The end of the answer is less than a step.
    let read = read_in_steps(&mut asking(&service, "/large").await, 420 * 1024).await;
    assert!(read > LARGE - 420 * 1024, "{read} bytes");
    // Of a stream, only what is in memory has to be taken in time.
    let mut stream = asking(&service, "/stream").await;
    let mut part = vec![0; 150 * 1024];
    for _ in 0..100 {
        stream.read_exact(&mut part).await.unwrap();
        advance(STEP).await;
    }
}

#[tokio::test]
async fn a_client_that_was_fast_may_not_stop_for_long() {
    let (service, _clock) = (slow_service().await, stop_clock());
    let mut stream = asking(&service, "/large").await;
    stream.read_exact(&mut vec![0; LARGE / 2]).await.unwrap();
    advance(PATIENCE + STEP).await;
    let mut rest = Vec::new();
    assert!(stream.read_to_end(&mut rest).await.is_err(), "{} more bytes", rest.len());
}

#[tokio::test]
async fn a_stream_with_long_pauses_goes_on() {
    let (event, events) = tokio::sync::mpsc::unbounded_channel::<Bytes>();
    let events = stream::unfold(events, async |mut events| Some((events.recv().await?, events)));
    let events = Arc::new(std::sync::Mutex::new(Some(events.map(Ok::<_, Infallible>))));
    let routes = Router::new()
        .route("/events", get(async move || Body::from_stream(events.lock().unwrap().take().unwrap())));
    let limits = ConnectionLimits { write_timeout: PATIENCE, ..limits() };
    let (service, _clock) = (served(routes, limits).await, stop_clock());
    let mut stream = asking(&service, "/events").await;
    let mut received = Vec::new();
    for number in 0..20 {
        let text = format!("event {number}.");
        event.send(Bytes::from(text.clone())).unwrap();
        while !String::from_utf8_lossy(&received).contains(&text) {
            assert!(stream.read_buf(&mut received).await.unwrap() > 0);
        }
        advance(10 * PATIENCE).await;
    }
}

/// An answer that is in the kernel when the service closes the connection.
#[tokio::test]
async fn the_kernel_forgets_answers_that_nobody_reads() {
    let body = Bytes::from(vec![0; 2 * WINDOW as usize]);
    let routes = Router::new().route("/", get(async move || Body::from(body)));
    let limits = ConnectionLimits { write_timeout: Duration::from_secs(1), ..limits() };
    let service = served(routes, limits).await;
    let _unread = asking(&service, "/").await;
    let port = format!(":{:04X}", service.address.port());
    // FIN-WAIT-1: our side has closed the connection, and the answer is not taken.
    let waits = || {
        let sockets = fs::read_to_string("/proc/net/tcp").unwrap();
        sockets.lines().any(|line| {
            let mut fields = line.split_whitespace().skip(1);
            fields.next().is_some_and(|local| local.ends_with(&port)) && fields.nth(1) == Some("04")
        })
    };
    until("the service to close the connection", waits).await;
    until("the kernel to forget it", || !waits()).await;
}
