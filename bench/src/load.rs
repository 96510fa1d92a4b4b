//! The load generator: many clients at low cost, because it shares the machine's few cores with the service. It uses one thread,
//! persistent connections and prepared requests, and parses only the status and the length of each answer.

use std::{
    collections::BTreeMap,
    fmt::Write,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
    time::sleep_until,
};

use crate::{
    http::Http,
    process::Usage,
    stats::{count, millis, percentile},
};

/// Makes the bytes of the request with this number; all clients together count from 0.
pub(crate) type Make = Arc<dyn Fn(u64) -> Vec<u8> + Send + Sync>;

/// When a client sends its next request.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Pace {
    /// When the last one is answered.
    Closed,
    /// At fixed times, with this total rate per second. The time of a request counts from when it was due, so that a request
    /// that waits for a slow answer counts as late.
    Open(f64),
}

#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// From the first request to the last answer.
    pub(crate) elapsed: Duration,
    /// Milliseconds of each answered request.
    pub(crate) millis: Vec<f64>,
    pub(crate) statuses: BTreeMap<u16, u64>,
    /// The bytes of all answers with their headers.
    pub(crate) bytes: u64,
    /// The CPU time of this program for the load.
    pub(crate) own_cpu: Duration,
}

impl Outcome {
    pub(crate) fn per_second(&self) -> f64 {
        count(self.millis.len()) / self.elapsed.as_secs_f64()
    }

    pub(crate) fn percentile(&self, percent: f64) -> f64 {
        percentile(&self.millis, percent)
    }

    /// Fails unless every answer had one of these statuses.
    pub(crate) fn expect(self, statuses: &[u16]) -> anyhow::Result<Self> {
        if let Some((status, number)) = self.statuses.iter().find(|(status, _)| !statuses.contains(status)) {
            bail!("{number} responses with {status}");
        }
        Ok(self)
    }

    fn add(&mut self, other: Self) {
        self.millis.extend(other.millis);
        self.bytes += other.bytes;
        for (status, number) in other.statuses {
            *self.statuses.entry(status).or_default() += number;
        }
    }
}

/// Runs a number of clients, each with its own connection, for the given time.
pub(crate) fn run(
    http: &Http,
    clients: usize,
    pace: Pace,
    lasting: Duration,
    make: &Make,
) -> anyhow::Result<Outcome> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let before = Usage::own()?;
    let mut outcome = runtime.block_on(all(&http.host, clients, pace, lasting, make))?;
    outcome.own_cpu = Usage::own()?.since(before).cpu;
    Ok(outcome)
}

async fn all(
    host: &str,
    clients: usize,
    pace: Pace,
    lasting: Duration,
    make: &Make,
) -> anyhow::Result<Outcome> {
    let mut connections = Vec::new();
    for _ in 0..clients {
        connections.push(Connection::open(host).await?);
    }
    let began = Instant::now();
    let mut running = JoinSet::new();
    for (number, connection) in connections.into_iter().enumerate() {
        let client =
            Client { number: number as u64, clients: clients as u64, began, end: began + lasting, pace };
        running.spawn(client.ask(connection, Arc::clone(make)));
    }
    let mut outcome = Outcome::default();
    while let Some(done) = running.join_next().await {
        outcome.add(done??);
    }
    outcome.elapsed = began.elapsed();
    Ok(outcome)
}

#[derive(Debug, Clone, Copy)]
struct Client {
    number: u64,
    clients: u64,
    began: Instant,
    end: Instant,
    pace: Pace,
}

impl Client {
    async fn ask(self, mut connection: Connection, make: Make) -> anyhow::Result<Outcome> {
        let mut outcome = Outcome::default();
        // Client i takes requests i, i + clients, …, so the clients share no counter.
        let mut number = self.number;
        loop {
            let due = self.due(number);
            if due >= self.end {
                return Ok(outcome);
            }
            if matches!(self.pace, Pace::Open(_)) {
                sleep_until(due.into()).await;
            }
            let (status, bytes) = connection.ask(&make(number)).await?;
            outcome.millis.push(millis(due.elapsed()));
            *outcome.statuses.entry(status).or_default() += 1;
            outcome.bytes += bytes;
            number += self.clients;
        }
    }

    fn due(&self, number: u64) -> Instant {
        match self.pace {
            Pace::Closed => Instant::now(),
            Pace::Open(rate) => self.began + Duration::from_secs_f64(crate::stats::number(number) / rate),
        }
    }
}

/// A request for [`Make`], with the token of `http`.
pub(crate) fn request(
    http: &Http,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Vec<u8> {
    let mut text = format!(
        "{method} {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n",
        http.host, http.token
    );
    for (name, value) in headers {
        // Writing to a String does not fail.
        let _ = write!(text, "{name}: {value}\r\n");
    }
    if !body.is_empty() {
        let _ = write!(text, "content-type: application/json\r\ncontent-length: {}\r\n", body.len());
    }
    text.push_str("\r\n");
    text.push_str(body);
    text.into_bytes()
}

/// A persistent connection, and the bytes read of its next answer.
#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Connection {
    async fn open(host: &str) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(host).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, read: Vec::with_capacity(16 << 10) })
    }

    /// Returns the status and the length of the answer.
    async fn ask(&mut self, request: &[u8]) -> anyhow::Result<(u16, u64)> {
        self.stream.write_all(request).await?;
        loop {
            if let Some(answer) = Answer::of(&self.read)?
                && self.read.len() >= answer.length
            {
                self.read.drain(..answer.length);
                return Ok((answer.status, answer.length as u64));
            }
            if self.stream.read_buf(&mut self.read).await? == 0 {
                bail!("the service closed a connection");
            }
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Answer {
    status: u16,
    /// The length of header and body.
    length: usize,
}

impl Answer {
    /// `None` until the header is complete.
    fn of(read: &[u8]) -> anyhow::Result<Option<Self>> {
        let Some(end) = read.windows(4).position(|bytes| bytes == b"\r\n\r\n") else { return Ok(None) };
        let head = std::str::from_utf8(&read[..end])?;
        let mut lines = head.split("\r\n");
        let status: u16 = lines
            .next()
            .and_then(|line| line.split(' ').nth(1))
            .context("the answer has no status line")?
            .parse()?;
        let length = lines.find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>())
        });
        let body = match length {
            _ if status == 204 || status == 304 => 0,
            Some(length) => length?,
            None => bail!("an answer with status {status} has no content-length"),
        };
        Ok(Some(Self { status, length: end + 4 + body }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_an_answer_comes_from_its_header() {
        let text = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
        let answer = Answer { status: 200, length: text.len() };
        assert_eq!(Answer::of(text).unwrap(), Some(answer));
        assert_eq!(Answer::of(&text[..20]).unwrap(), None);
        let unchanged = b"HTTP/1.1 304 Not Modified\r\netag: \"1\"\r\n\r\n";
        assert_eq!(Answer::of(unchanged).unwrap(), Some(Answer { status: 304, length: unchanged.len() }));
        assert!(Answer::of(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").is_err());
    }

    #[test]
    fn an_open_loop_sends_at_fixed_times_for_any_number_of_clients() {
        let began = Instant::now();
        let client = Client {
            number: 3,
            clients: 4,
            began,
            end: began + Duration::from_secs(1),
            pace: Pace::Open(100.0),
        };
        assert_eq!(client.due(3) - began, Duration::from_millis(30));
        assert_eq!(client.due(7) - began, Duration::from_millis(70));
    }
}
