//! Reads the API's streams of server-sent events.

use axum::body::{Body, BodyDataStream};
use futures_util::StreamExt;

/// A longer event ends the stream.
const LARGEST: usize = 16 * 1024 * 1024;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerEvent {
    pub(crate) name: String,
    pub(crate) data: String,
    /// The id of the stream after it.
    pub(crate) id: String,
}

/// The events of a stream. Comments are left out.
pub(crate) struct ServerEvents {
    body: BodyDataStream,
    unread: Vec<u8>,
    id: String,
}

impl ServerEvents {
    pub(crate) fn of(body: Body) -> Self {
        Self { body: body.into_data_stream(), unread: Vec::new(), id: String::new() }
    }

    /// The next event; none at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<ServerEvent> {
        let mut searched = 0;
        loop {
            if let Some(end) = self.unread[searched..].windows(2).position(|pair| pair == b"\n\n") {
                let block: Vec<u8> = self.unread.drain(..searched + end + 2).collect();
                searched = 0;
                if let Some(event) = self.read(&String::from_utf8_lossy(&block)) {
                    return Some(event);
                }
                continue;
            }
            searched = self.unread.len().saturating_sub(1);
            if self.unread.len() > LARGEST {
                return None;
            }
            self.unread.extend_from_slice(&self.body.next().await?.ok()?);
        }
    }

    /// None for a block of comments.
    fn read(&mut self, block: &str) -> Option<ServerEvent> {
        let (mut name, mut data) = (String::new(), None::<String>);
        for line in block.lines() {
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "event" => value.clone_into(&mut name),
                "id" => value.clone_into(&mut self.id),
                "data" => match &mut data {
                    Some(data) => {
                        data.push('\n');
                        data.push_str(value);
                    }
                    None => data = Some(value.to_owned()),
                },
                _ => {}
            }
        }
        Some(ServerEvent { name, data: data?, id: self.id.clone() })
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;

    #[tokio::test]
    async fn events_are_read_however_the_stream_is_cut() {
        let text = ": hello\nretry: 1\n\nid: 1\n\nevent: log\ndata: a\ndata: b\nid: 2\n\n: keep-alive\n\ndata:c\n\ndata: lost";
        for size in 1..text.len() {
            let parts: Vec<_> =
                text.as_bytes().chunks(size).map(|part| Ok::<_, std::io::Error>(part.to_vec())).collect();
            let mut events = ServerEvents::of(Body::from_stream(stream::iter(parts)));
            let mut found = Vec::new();
            while let Some(event) = events.next().await {
                found.push((event.name, event.data, event.id));
            }
            let owned = |name: &str, data: &str, id: &str| (name.to_owned(), data.to_owned(), id.to_owned());
            assert_eq!(found, [owned("log", "a\nb", "2"), owned("", "c", "2")], "{size}");
        }
    }
}
