//! Server-sent events, read one by one.

use std::io::{self, BufRead, BufReader, Read};

/// More than the service puts into one line.
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

    /// Where to go on: the last id that came, also one without an event.
    pub(crate) fn last_id(&self) -> Option<String> {
        self.last_id.clone()
    }

    /// The next event; none at the end of the stream. An event that was cut off is none.
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
                // A comment, or a field that does not concern us.
                _ => {}
            }
        }
        Ok(None)
    }

    /// The next line without its end; none at the end of the stream.
    fn line(&mut self) -> io::Result<Option<String>> {
        let mut line = Vec::new();
        (&mut self.stream).take(LONGEST_LINE).read_until(b'\n', &mut line)?;
        if line.pop() != Some(b'\n') {
            return Ok(None);
        }
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        Ok(Some(String::from_utf8_lossy(&line).into_owned()))
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
    fn events_are_read_one_by_one_and_comments_passed_over() {
        let text = ": following\nretry: 2000\n\nevent: log\nid: 1;main.out=3\ndata: {}\n\n: keep-alive\n\nevent: end\r\ndata:a\r\ndata: b\r\n\r\n";
        assert_eq!(all(text), [event("log", Some("1;main.out=3"), "{}"), event("end", None, "a\nb")]);
    }

    #[test]
    fn an_id_is_remembered_without_an_event_and_not_before_its_own_is_whole() {
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
    fn an_event_that_was_cut_off_is_none() {
        for text in ["", "event: log", "event: log\ndata: x", "event: log\ndata: x\n"] {
            assert_eq!(all(text), [], "{text:?}");
        }
    }
}
