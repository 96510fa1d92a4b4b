//! The end of a log as it grows: a stream of lines, already as HTML.

use std::{convert::Infallible, time::Duration};

use axum::{
    http::{HeaderName, HeaderValue},
    response::{
        IntoResponse, Response, Sse,
        sse::{Event, KeepAlive},
    },
};
use base64::{Engine, prelude::BASE64_STANDARD};
use futures_util::stream;
use maud::html;
use serde::Deserialize;
use serde_json::json;
use tokio::time::{Instant, timeout_at};

use super::{choice::Choice, part::WINDOW, window::row};
use crate::{
    client::{Failure, JOB_LOGS},
    frame::{IdPath, ServerEvent, ServerEvents, Visit},
    logtext::Lines,
    model::Text,
};

/// What arrives within this time comes to the page at once.
const TOGETHER: Duration = Duration::from_millis(250);
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// What is kept of a line without an end.
const LONGEST_LINE: usize = 64 * 1024;

pub(crate) async fn follow(visit: Visit, IdPath(id): IdPath) -> Result<Response, Failure> {
    let choice = Choice::of(&visit.query);
    let offset = visit.query.one("offset").and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    // With a place, one file is meant: of a component the log of its first process.
    let query = choice.query().with("follow", "true").with("offset", offset);
    let body = visit.api.stream(&JOB_LOGS, &[&id], &query, None).await?;
    let follower = body.map(|body| Follower { events: ServerEvents::of(body), text: Tail::new(offset) });
    let parts = stream::unfold(follower, |follower| async {
        let mut follower = follower?;
        let (part, is_over) = follower.next().await?;
        Some((Ok::<_, Infallible>(part), (!is_over).then_some(follower)))
    });
    let unbuffered = (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    let stream = Sse::new(parts).keep_alive(KeepAlive::new().interval(KEEP_ALIVE).text("keep-alive"));
    Ok(([unbuffered], stream).into_response())
}

struct Follower {
    events: ServerEvents,
    text: Tail,
}

/// The fields of the API's events.
#[derive(Debug, Deserialize)]
struct Data {
    offset: Option<u64>,
    text: Option<String>,
    bytes: Option<String>,
    detail: Option<String>,
    attempt: Option<u64>,
}

impl Follower {
    /// The next part for the page, and whether it is the last. None if the API's stream stopped: the page connects again.
    async fn next(&mut self) -> Option<(Event, bool)> {
        let mut event = self.events.next().await?;
        let due = Instant::now() + TOGETHER;
        loop {
            if let Some((note, is_over)) = self.take(&event) {
                return Some((self.text.event(note.as_deref(), is_over), is_over));
            }
            match timeout_at(due, self.events.next()).await {
                Ok(Some(next)) if !self.text.is_full() => event = next,
                Ok(Some(last)) => {
                    let (note, is_over) = self.take(&last).unwrap_or_default();
                    return Some((self.text.event(note.as_deref(), is_over), is_over));
                }
                Ok(None) | Err(_) => return Some((self.text.event(None, false), false)),
            }
        }
    }

    /// Takes bytes in; returns what else an event says.
    fn take(&mut self, event: &ServerEvent) -> Option<(Option<String>, bool)> {
        let data: Data = serde_json::from_str(&event.data).ok()?;
        match event.name.as_str() {
            "log" => {
                let bytes = match (&data.text, &data.bytes) {
                    (Some(text), _) => text.clone().into_bytes(),
                    (None, Some(bytes)) => BASE64_STANDARD.decode(bytes).unwrap_or_default(),
                    (None, None) => Vec::new(),
                };
                self.text.push(&bytes, data.offset);
                None
            }
            "reset" => {
                self.text.restart();
                Some((
                    Some("The log was truncated or replaced. It follows from its beginning.".to_owned()),
                    false,
                ))
            }
            "attempt" => {
                let note = format!("Attempt {} began.", data.attempt.unwrap_or_default());
                self.text.separate(&note);
                Some((Some(note), false))
            }
            "end" => Some((Some(data.detail.unwrap_or_else(|| "The log has ended.".to_owned())), true)),
            _ => Some((data.detail, false)),
        }
    }
}

/// The text that the page does not have yet.
struct Tail {
    lines: Lines,
    /// Bytes from `offset` on: whole lines, and a line that may be written further.
    bytes: Vec<u8>,
    offset: u64,
    /// Bytes that came faster than a page can take them.
    skipped: u64,
    /// Whether the page begins anew.
    is_new: bool,
    /// What is to stand after the lines.
    separator: Option<Text>,
}

impl Tail {
    fn new(offset: u64) -> Self {
        Self {
            lines: Lines::default(),
            bytes: Vec::new(),
            offset,
            skipped: 0,
            is_new: false,
            separator: None,
        }
    }

    fn is_full(&self) -> bool {
        self.bytes.len() as u64 > WINDOW
    }

    fn restart(&mut self) {
        let is_new = true;
        *self = Self { is_new, ..Self::new(0) };
    }

    /// Ends the log of an attempt: what comes after is another file.
    fn separate(&mut self, note: &str) {
        if self.bytes.last().is_some_and(|last| *last != b'\n') {
            self.bytes.push(b'\n');
        }
        self.separator = Some(Text::from(note));
    }

    fn push(&mut self, bytes: &[u8], offset: Option<u64>) {
        if self.bytes.is_empty() {
            self.offset = offset.unwrap_or(self.offset);
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Takes out the whole lines, as the data of an event.
    fn event(&mut self, note: Option<&str>, is_over: bool) -> Event {
        let data = self.data(note, is_over);
        Event::default().event(if is_over { "end" } else { "lines" }).data(data.to_string())
    }

    fn data(&mut self, note: Option<&str>, is_over: bool) -> serde_json::Value {
        let most = usize::try_from(WINDOW).unwrap_or(usize::MAX);
        if self.bytes.len() > most {
            let after = self.bytes.len() - most;
            let cut = self.bytes[after..]
                .iter()
                .position(|byte| *byte == b'\n')
                .map_or(after, |end| after + end + 1);
            self.drop_first(cut);
            self.skipped += cut as u64;
        }
        let whole = self.bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let lines = self.lines.read(&self.bytes[..whole], self.offset);
        self.drop_first(whole);
        let mut html: String = lines.iter().map(|line| row(line).into_string()).collect();
        if let Some(note) = self.separator.take() {
            html.push_str(&html! { span.line.between { "— " (note) " —\n" } }.into_string());
        }
        let partial = self.lines.preview(&self.bytes, self.offset);
        if self.bytes.len() > LONGEST_LINE {
            // Only what the line was last counts, and its beginning.
            self.shorten();
        }
        let partial = if self.bytes.is_empty() { String::new() } else { row(&partial).into_string() };
        let (skipped, is_new) = (std::mem::take(&mut self.skipped), std::mem::take(&mut self.is_new));
        json!({"html": html, "partial": partial, "skipped": skipped, "anew": is_new, "note": note, "over": is_over, "next": self.offset})
    }

    fn drop_first(&mut self, count: usize) {
        self.bytes.drain(..count);
        self.offset += count as u64;
    }

    fn shorten(&mut self) {
        let cut = match self.bytes.iter().rposition(|byte| *byte == b'\r') {
            Some(last) if last > 0 => last,
            _ => self.bytes.len() - LONGEST_LINE / 2,
        };
        self.drop_first(cut);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(tail: &mut Tail) -> (String, String, u64) {
        let data = tail.data(None, false);
        let text = |name: &str| {
            let html = data[name].as_str().unwrap();
            let mut plain = String::new();
            let mut is_tag = false;
            for letter in html.chars() {
                match letter {
                    '<' => is_tag = true,
                    '>' => is_tag = false,
                    letter if !is_tag => plain.push(letter),
                    _ => {}
                }
            }
            plain
        };
        (text("html"), text("partial"), data["skipped"].as_u64().unwrap())
    }

    #[test]
    fn whole_lines_are_sent_once_and_the_last_one_until_it_ends() {
        let mut tail = Tail::new(0);
        tail.push(b"one\ntw", Some(0));
        assert_eq!(read(&mut tail), ("one\n".to_owned(), "tw\n".to_owned(), 0));
        tail.push(b"o\n", Some(6));
        assert_eq!(read(&mut tail), ("two\n".to_owned(), String::new(), 0));
        tail.push(b" 1%\r 50%", Some(8));
        assert_eq!(read(&mut tail).1, "↻1  50%\n");
        assert_eq!(tail.offset, 8);
    }

    #[test]
    fn the_log_of_another_attempt_begins_on_a_line_of_its_own() {
        let mut tail = Tail::new(0);
        tail.push(b"unfinished", Some(0));
        tail.separate("Attempt 2 began.");
        assert_eq!(read(&mut tail).0, "unfinished\n— Attempt 2 began. —\n");
        tail.push(b"next\n", Some(0));
        assert_eq!((read(&mut tail).0, tail.offset), ("next\n".to_owned(), 5));
    }

    #[test]
    fn a_flood_is_cut_to_a_window_and_says_how_much_is_missing() {
        let mut tail = Tail::new(0);
        let flood = b"0123456\n".repeat(100_000);
        tail.push(&flood, Some(0));
        let (html, partial, skipped) = read(&mut tail);
        assert_eq!((html.len() as u64 + skipped, partial.as_str()), (800_000, ""));
        assert!(html.len() as u64 <= WINDOW && html.starts_with("0123456\n"), "{}", html.len());
    }

    #[test]
    fn a_line_without_an_end_does_not_grow_in_memory() {
        let mut tail = Tail::new(0);
        for _ in 0..100 {
            tail.push(&b"x".repeat(50_000), None);
            tail.data(None, false);
            assert!(tail.bytes.len() <= LONGEST_LINE, "{}", tail.bytes.len());
        }
    }
}
