//! An OpenTelemetry collector that stores what it receives.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest, common::v1::any_value::Value, trace::v1::Span,
};
use prost::Message as _;

/// The fields of a span that the tests use.
#[derive(Debug)]
pub(super) struct ReceivedSpan {
    pub(super) name: String,
    pub(super) trace: String,
    pub(super) id: String,
    pub(super) parent: String,
    pub(super) begun: u64,
    pub(super) ended: u64,
    attributes: Vec<(String, String)>,
}

impl ReceivedSpan {
    pub(super) fn attribute(&self, name: &str) -> &str {
        self.attributes.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }
}

/// Heads and bodies of messages.
type Messages = Arc<Mutex<Vec<(String, Vec<u8>)>>>;

pub(super) struct Collector {
    pub(super) url: String,
    messages: Messages,
}

impl Collector {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let messages = Messages::default();
        let contains = Arc::clone(&messages);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let contains = Arc::clone(&contains);
                thread::spawn(move || listen(&stream.unwrap(), &contains));
            }
        });
        Self { url, messages }
    }

    /// Every span so far.
    pub(super) fn spans(&self) -> Vec<ReceivedSpan> {
        let messages = self.messages.lock().unwrap();
        let requests =
            messages.iter().map(|(_, body)| ExportTraceServiceRequest::decode(body.as_slice()).unwrap());
        let scopes = requests.flat_map(|request| request.resource_spans).flat_map(|of| of.scope_spans);
        scopes.flat_map(|scope| scope.spans).map(received).collect()
    }

    /// Whether any message contains the text.
    pub(super) fn contains(&self, text: &str) -> bool {
        let messages = self.messages.lock().unwrap();
        messages.iter().any(|(_, body)| body.windows(text.len()).any(|part| part == text.as_bytes()))
    }

    pub(super) fn heads(&self) -> Vec<String> {
        self.messages.lock().unwrap().iter().map(|(head, _)| head.clone()).collect()
    }
}

fn received(span: Span) -> ReceivedSpan {
    let hex = |bytes: &[u8]| -> String { bytes.iter().flat_map(|byte| digits(*byte)).collect() };
    let text = |value: Option<Value>| match value {
        Some(Value::StringValue(text)) => text,
        Some(Value::IntValue(number)) => number.to_string(),
        other => format!("{other:?}"),
    };
    ReceivedSpan {
        name: span.name,
        trace: hex(&span.trace_id),
        id: hex(&span.span_id),
        parent: hex(&span.parent_span_id),
        begun: span.start_time_unix_nano,
        ended: span.end_time_unix_nano,
        attributes: span
            .attributes
            .into_iter()
            .map(|pair| (pair.key, text(pair.value.and_then(|any| any.value))))
            .collect(),
    }
}

fn digits(byte: u8) -> [char; 2] {
    [byte >> 4, byte & 15].map(|half| char::from_digit(half.into(), 16).unwrap())
}

/// Reads messages from one connection until it is closed.
fn listen(stream: &TcpStream, messages: &Messages) {
    let mut reader = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).unwrap_or(0) == 0 {
                return;
            }
        }
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().unwrap())
        });
        let mut body = vec![0; length.unwrap()];
        reader.read_exact(&mut body).unwrap();
        assert!(head.starts_with("POST /v1/traces "), "{head}");
        messages.lock().unwrap().push((head, body));
        let mut writer = stream;
        writer
            .write_all(
                b"HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n",
            )
            .unwrap();
    }
}
