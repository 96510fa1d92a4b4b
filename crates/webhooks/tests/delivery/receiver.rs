//! A webhook receiver: a server on this machine with scripted answers.

use std::{
    collections::HashMap,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        mpsc::{Receiver as Channel, Sender, channel},
    },
    time::Duration,
};

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::Value;

/// The answer to a request.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Answer {
    Status(u16),
    /// 503 with this `Retry-After`.
    Busy(&'static str),
    /// No answer; the connection stays open until the client closes it.
    Hang,
}

/// A received request.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) path: String,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) text: String,
    pub(crate) body: Value,
}

pub(crate) struct Receiver {
    pub(crate) url: String,
    answers: Arc<Mutex<Vec<Answer>>>,
    seen: Channel<Seen>,
}

impl Receiver {
    /// Gives these answers in order, then 204.
    pub(crate) fn new(answers: &[Answer]) -> Self {
        Self::listening("http", answers, Some)
    }

    /// The same over HTTPS, as `localhost` or 127.0.0.1.
    pub(crate) fn certified(config: ServerConfig) -> Self {
        let config = Arc::new(config);
        Self::listening("https", &[], move |mut stream| {
            let mut connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            // A client that does not trust the certificate hangs up.
            connection.complete_io(&mut stream).ok()?;
            Some(StreamOwned::new(connection, stream))
        })
    }

    fn listening<S: Read + Write>(
        scheme: &str,
        answers: &[Answer],
        accepted: impl Fn(TcpStream) -> Option<S> + Send + Clone + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("{scheme}://127.0.0.1:{}/hook", listener.local_addr().unwrap().port());
        let answers = Arc::new(Mutex::new(answers.iter().rev().copied().collect::<Vec<_>>()));
        let (sender, seen) = channel();
        let next = Arc::clone(&answers);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (sender, next, accepted) = (sender.clone(), Arc::clone(&next), accepted.clone());
                std::thread::spawn(move || accepted(stream).map(|stream| serve(stream, &sender, &next)));
            }
        });
        Self { url, answers, seen }
    }

    pub(crate) fn next(&self) -> Seen {
        self.seen.recv_timeout(Duration::from_mins(3)).expect("a request")
    }

    /// The same URL with a host name.
    pub(crate) fn url_by_name(&self) -> String {
        self.url.replace("127.0.0.1", "localhost")
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.seen.try_recv().is_err()
    }

    /// Whether all answers were given.
    pub(crate) fn is_through(&self) -> bool {
        self.answers.lock().unwrap().is_empty()
    }
}

fn serve(stream: impl Read + Write, seen: &Sender<Seen>, answers: &Mutex<Vec<Answer>>) {
    let mut reader = BufReader::new(stream);
    let mut headers = HashMap::new();
    let mut line = String::new();
    let _ = reader.read_line(&mut line);
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    line.clear();
    while reader.read_line(&mut line).unwrap_or(0) > 0 && !line.trim().is_empty() {
        if let Some((name, value)) = line.split_once(':') {
            headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
        }
        line.clear();
    }
    if headers.is_empty() {
        return;
    }
    // A followed redirect may have no body.
    let length = headers.get("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let answer = answers.lock().unwrap().pop().unwrap_or(Answer::Status(204));
    let text = String::from_utf8(body).unwrap();
    let body = serde_json::from_str(&text).unwrap_or_default();
    // A client that follows the redirect comes back here, and the test sees it.
    let location = format!("http://{}/elsewhere", headers["host"]);
    let _ = seen.send(Seen { path, headers, text, body });
    match answer {
        Answer::Status(status) => {
            let head = format!("HTTP/1.1 {status} X\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n");
            let _ = reader.get_mut().write_all(head.as_bytes());
        }
        Answer::Busy(until) => {
            let head = format!("HTTP/1.1 503 X\r\nretry-after: {until}\r\ncontent-length: 0\r\n\r\n");
            let _ = reader.get_mut().write_all(head.as_bytes());
        }
        Answer::Hang => {
            let _ = reader.read(&mut [0]);
        }
    }
}
