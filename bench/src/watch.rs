//! A watcher: reads server-sent events and records when each arrives.

use std::{
    io::{BufRead, BufReader},
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use anyhow::{bail, ensure};
use serde_json::Value;

use crate::http::Http;

#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) at: Instant,
    /// `transition`, `status`, `end`, …
    pub(crate) name: String,
    pub(crate) data: Value,
}

impl Event {
    /// A string of the event's document, such as `/job_id` or `/data/status`.
    pub(crate) fn text(&self, pointer: &str) -> Option<&str> {
        self.data.pointer(pointer)?.as_str()
    }
}

/// A stream of events. Its own thread reads it until the stream ends or this is dropped.
#[derive(Debug)]
pub(crate) struct Watch {
    events: Receiver<Event>,
}

impl Watch {
    /// Opens a stream such as `/events?kind=transition`; it is active when this returns.
    pub(crate) fn open(http: &Http, path: &str) -> anyhow::Result<Self> {
        let config = ureq::Agent::config_builder().http_status_as_error(false).build();
        let agent = ureq::Agent::new_with_config(config);
        let request = agent.get(format!("http://{}{path}", http.host)).header("accept", "text/event-stream");
        let answer = request.header("authorization", format!("Bearer {}", http.token)).call()?;
        ensure!(answer.status() == 200, "GET {path}: {}", answer.status());
        let mut lines = BufReader::new(answer.into_body().into_reader()).lines();
        // The first event confirms that the stream is active.
        for line in lines.by_ref() {
            if line?.is_empty() {
                break;
            }
        }
        let (sender, events) = mpsc::channel();
        thread::spawn(move || {
            let mut name = String::new();
            for line in lines.map_while(Result::ok) {
                if let Some(text) = line.strip_prefix("event:") {
                    text.trim().clone_into(&mut name);
                } else if let Some(text) = line.strip_prefix("data:") {
                    let data = serde_json::from_str(text.trim()).unwrap_or(Value::Null);
                    let event = Event { at: Instant::now(), name: name.clone(), data };
                    if sender.send(event).is_err() {
                        return;
                    }
                }
            }
        });
        Ok(Self { events })
    }

    /// The next event, or `None` after the timeout.
    pub(crate) fn next(&self, within: Duration) -> anyhow::Result<Option<Event>> {
        match self.events.recv_timeout(within) {
            Ok(event) => Ok(Some(event)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => bail!("the event stream has ended"),
        }
    }

    /// The first event that satisfies the condition; drops the events before it.
    pub(crate) fn until(
        &self,
        what: &str,
        within: Duration,
        holds: impl Fn(&Event) -> bool,
    ) -> anyhow::Result<Event> {
        let end = Instant::now() + within;
        while let Some(event) = self.next(end.saturating_duration_since(Instant::now()))? {
            if holds(&event) {
                return Ok(event);
            }
        }
        bail!("no event within {} s: {what}", within.as_secs())
    }
}
