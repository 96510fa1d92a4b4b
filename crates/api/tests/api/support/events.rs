//! Server-sent events as a client reads them.

use std::{collections::VecDeque, time::Duration};

use axum::body::Body;
use http_body_util::BodyExt;
use serde_json::Value;
use tokio::time::timeout;

/// One event.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    pub(crate) name: String,
    pub(crate) id: String,
    pub(crate) data: Value,
}

/// A stream under way.
pub(crate) struct Events {
    body: Body,
    text: String,
    ready: VecDeque<Told>,
}

impl Events {
    pub(crate) fn new(body: Body) -> Self {
        Self { body, text: String::new(), ready: VecDeque::new() }
    }

    /// The next event; none when the stream has ended.
    pub(crate) async fn next(&mut self) -> Option<Told> {
        loop {
            if let Some(told) = self.ready.pop_front() {
                return Some(told);
            }
            let frame =
                timeout(Duration::from_secs(20), self.body.frame()).await.expect("an event in time")?;
            self.text.push_str(str::from_utf8(&frame.unwrap().into_data().unwrap()).unwrap());
            while let Some(end) = self.text.find("\n\n") {
                self.ready.extend(read(&self.text[..end]));
                self.text.drain(..end + 2);
            }
        }
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

    /// Everything up to the end of the stream.
    pub(crate) async fn rest(mut self) -> Vec<Told> {
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
    Some(Told {
        name: field("event").unwrap_or_default().to_owned(),
        id: field("id").unwrap_or_default().to_owned(),
        data,
    })
}
