//! A reader of server-sent events.

use std::io::{self, BufRead, BufReader, Read};

/// Longer than any line of the service.
const LONGEST_LINE: u64 = 4 * 1024 * 1024;

/// One event of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ServerEvent {
    pub(crate) name: String,
    pub(crate) id: Option<String>,
    pub(crate) data: String,
}

/// Reads a stream of events.
pub(crate) struct EventReader<R> {
    stream: BufReader<R>,
    last_id: Option<String>,
}

impl<R: Read> EventReader<R> {
    pub(crate) fn new(stream: R) -> Self {
        Self { stream: BufReader::new(stream), last_id: None }
    }

    /// The last complete id, with or without an event: reading resumes after it.
    pub(crate) fn last_id(&self) -> Option<String> {
        self.last_id.clone()
    }

    /// The next event; none at the end of the stream. A truncated event is dropped.
    pub(crate) fn next(&mut self) -> io::Result<Option<ServerEvent>> {
        let mut event = ServerEvent::default();
        let mut has_data = false;
        while let Some(line) = self.line()? {
            if line.is_empty() {
                self.last_id = event.id.clone().or(self.last_id.take());
                if has_data {
                    return Ok(Some(event));
                }
                event = ServerEvent::default();
                continue;
            }
            let (field, value) = line.split_once(':').unwrap_or((&line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "event" => value.clone_into(&mut event.name),
                "id" => event.id = Some(value.to_owned()),
                "data" => {
                    if has_data {
                        event.data.push('\n');
                    }
                    event.data.push_str(value);
                    has_data = true;
                }
                // A comment, or a field that is not used here.
                _ => {}
            }
        }
        Ok(None)
    }

    /// The next line without its line end; none at the end of the stream.
    fn line(&mut self) -> io::Result<Option<String>> {
        let mut line = Vec::new();
        (&mut self.stream).take(LONGEST_LINE).read_until(b'\n', &mut line)?;
        if line.pop() != Some(b'\n') {
            return Ok(None);
        }
        Ok(Some(String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(&line)).into_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<ServerEvent> {
        let mut reader = EventReader::new(text.as_bytes());
        std::iter::from_fn(|| reader.next().unwrap()).collect()
    }

    fn event(name: &str, id: Option<&str>, data: &str) -> ServerEvent {
        ServerEvent { name: name.to_owned(), id: id.map(str::to_owned), data: data.to_owned() }
    }

    #[test]
    fn events_are_read_in_order_and_comments_are_skipped() {
        let text = ": following\nretry: 2000\n\nevent: log\nid: 1;main.out=3\ndata: {}\n\n: keep-alive\n\nevent: end\r\ndata:a\r\ndata: b\r\n\r\n";
        assert_eq!(all(text), [event("log", Some("1;main.out=3"), "{}"), event("end", None, "a\nb")]);
    }

    #[test]
    fn an_id_counts_without_an_event_but_only_once_complete() {
        let mut reader = EventReader::new(&b"id: 7\n\nid: 8\ndata: x\n\ndata: y\n\nid: 9\ndata: z\n"[..]);
        let mut seen = Vec::new();
        while reader.next().unwrap().is_some() {
            seen.push(reader.last_id().unwrap());
        }
        assert_eq!(seen, ["8", "8"]);
        assert_eq!(reader.last_id().as_deref(), Some("8"));
        let mut reader = EventReader::new(&b"id: 7\n\n"[..]);
        assert_eq!((reader.next().unwrap(), reader.last_id().as_deref()), (None, Some("7")));
    }

    #[test]
    fn a_truncated_event_is_dropped() {
        for text in ["", "event: log", "event: log\ndata: x", "event: log\ndata: x\n"] {
            assert_eq!(all(text), [], "{text:?}");
        }
    }
}
