//! A client of server-sent events like a browser: it reconnects with the last id until the stream has ended.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
};

/// The fields of an event that the tests use.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) job: String,
    pub(crate) seq: u64,
}

/// A watcher.
#[derive(Debug)]
pub(crate) struct Watcher {
    address: String,
    path: String,
    pub(crate) events: Vec<Event>,
    pub(crate) last: Option<String>,
    /// How often a stream was opened.
    pub(crate) streams: usize,
    /// How many watchers have received the head of a stream.
    listening: Arc<AtomicUsize>,
    /// The comments of the streams.
    pub(crate) comments: Vec<String>,
}

/// How a stream ended.
#[derive(Debug, PartialEq, Eq)]
enum Ended {
    /// More events follow.
    CutOff,
    /// The service ended it, or the watcher has enough.
    Over,
}

impl Watcher {
    pub(crate) fn new(url: &str, path: &str, listening: Arc<AtomicUsize>) -> Self {
        Self {
            address: url.trim_start_matches("http://").to_owned(),
            path: path.to_owned(),
            events: Vec::new(),
            last: None,
            streams: 0,
            listening,
            comments: Vec::new(),
        }
    }

    /// Watches until the event `end`, or until `enough` is true.
    pub(crate) async fn watch(&mut self, mut enough: impl FnMut(&Self) -> bool) {
        loop {
            let begun = self.streams;
            let ended = self.stream(&mut enough).await;
            self.listening.fetch_sub(self.streams - begun, Ordering::Relaxed);
            if matches!(ended, Ok(Ended::Over)) {
                return;
            }
            // A restarting service refuses connections; there is no other signal that it is up.
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn stream(&mut self, enough: &mut impl FnMut(&Self) -> bool) -> io::Result<Ended> {
        let mut connection = TcpStream::connect(&self.address).await?;
        let last = self.last.as_ref().map(|id| format!("last-event-id: {id}\r\n")).unwrap_or_default();
        // HTTP/1.0: the body is not chunked and ends with the connection.
        let request = format!(
            "GET {} HTTP/1.0\r\naccept: text/event-stream\r\nhost: {}\r\n{last}\r\n",
            self.path, self.address
        );
        connection.write_all(request.as_bytes()).await?;
        let mut lines = BufReader::new(connection).lines();
        let status = lines.next_line().await?.unwrap_or_default();
        if status.contains(" 204 ") {
            return Ok(Ended::Over);
        }
        if !status.contains(" 200 ") {
            return Ok(Ended::CutOff);
        }
        self.streams += 1;
        self.listening.fetch_add(1, Ordering::Relaxed);
        while lines.next_line().await?.is_some_and(|header| !header.is_empty()) {}
        let (mut id, mut name, mut data) = (None, String::new(), None);
        while let Some(line) = lines.next_line().await? {
            match line.split_once(": ") {
                Some(("", comment)) => self.comments.push(comment.to_owned()),
                Some(("id", value)) => id = Some(value.to_owned()),
                Some(("event", value)) => value.clone_into(&mut name),
                Some(("data", value)) => data = Some(value.to_owned()),
                _ if line.is_empty() => {
                    self.last = id.take().or(self.last.take());
                    if let Some(data) = data.take() {
                        self.take(&name, &data);
                    }
                    if name == "end" || enough(self) {
                        return Ok(Ended::Over);
                    }
                    name.clear();
                }
                _ => {}
            }
        }
        Ok(Ended::CutOff)
    }

    fn take(&mut self, name: &str, data: &str) {
        let data: Value = serde_json::from_str(data).unwrap();
        self.events.push(Event {
            id: self.last.clone().unwrap(),
            name: name.to_owned(),
            job: data["job_id"].as_str().unwrap_or_default().to_owned(),
            seq: data["seq"].as_u64().unwrap_or_default(),
        });
    }
}
