//! Server-sent events as a client reads them.

use std::{collections::VecDeque, time::Duration};

use axum::body::Body;
use http_body_util::BodyExt;
use serde_json::Value;
use tokio::time::timeout;

use crate::promised;

/// One event.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    pub(crate) name: String,
    pub(crate) id: String,
    pub(crate) data: Value,
}

/// Only a stream that hangs takes as long, however busy the machine is.
const LONG: Duration = Duration::from_mins(3);

/// A stream under way.
pub(crate) struct Events {
    body: Body,
    text: String,
    ready: VecDeque<Told>,
    /// Everything that came, as it came.
    pub(crate) raw: String,
    /// Where to go on, as a client remembers it: the last id that came, also one without an event.
    pub(crate) last_id: String,
}

impl Events {
    pub(crate) fn new(body: Body) -> Self {
        Self { body, text: String::new(), ready: VecDeque::new(), raw: String::new(), last_id: String::new() }
    }

    /// The next event; none when the stream has ended.
    pub(crate) async fn next(&mut self) -> Option<Told> {
        // Signs of life alone are no event.
        timeout(LONG, self.look()).await.expect("an event in time")
    }

    async fn look(&mut self) -> Option<Told> {
        loop {
            if let Some(told) = self.ready.pop_front() {
                return Some(told);
            }
            if !self.frame().await {
                return None;
            }
        }
    }

    /// What comes next, whatever it is; false at the end of the stream.
    pub(crate) async fn frame(&mut self) -> bool {
        let frame = timeout(LONG, self.body.frame()).await.expect("an event in time");
        let Some(frame) = frame else { return false };
        let bytes = frame.unwrap().into_data().unwrap();
        let text = str::from_utf8(&bytes).unwrap();
        self.raw.push_str(text);
        self.text.push_str(text);
        while let Some(end) = self.text.find("\n\n") {
            if let Some(id) = self.text[..end].lines().find_map(|line| line.strip_prefix("id: ")) {
                id.clone_into(&mut self.last_id);
            }
            self.ready.extend(read(&self.text[..end]));
            self.text.drain(..end + 2);
        }
        true
    }

    /// The next event that has the name; others are passed over.
    pub(crate) async fn named(&mut self, name: &str) -> Told {
        loop {
            let told = self.next().await.unwrap_or_else(|| panic!("the stream has ended without {name}"));
            if told.name == name {
                return told;
            }
        }
    }

    /// The same stream, once the place at which it begins is known.
    pub(crate) async fn begun(mut self) -> Self {
        while self.last_id.is_empty() {
            assert!(self.frame().await, "the stream has ended before it began");
        }
        self
    }

    /// Everything up to the end of the stream.
    pub(crate) async fn rest(&mut self) -> Vec<Told> {
        let mut all = Vec::new();
        while let Some(told) = self.next().await {
            all.push(told);
        }
        all
    }
}

/// None for a comment.
fn read(event: &str) -> Option<Told> {
    let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    let data = serde_json::from_str(field("data")?).unwrap();
    promised::is_one_event(&data);
    Some(Told {
        name: field("event").unwrap_or_default().to_owned(),
        id: field("id").unwrap_or_default().to_owned(),
        data,
    })
}
