//! Many clients at once, made so that they cost little: the load shares the machine's few cores with the service. One
//! thread, connections that are kept, requests written as bytes, and of each answer no more understood than where it
//! ends.

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

/// Makes the bytes of the request with this number; numbers count from 0 through all clients.
pub(crate) type Make = Arc<dyn Fn(u64) -> Vec<u8> + Send + Sync>;

/// When a client sends its next request.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Pace {
    /// When the one before is answered.
    Closed,
    /// At fixed times, so many a second in all, whatever became of those before. A request's time counts from when it
    /// should have been sent: one that waits for a slow answer is late, and that is seen.
    Open(f64),
}

#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// From the first request to the last answer.
    pub(crate) elapsed: Duration,
    /// Milliseconds of each request that was answered.
    pub(crate) millis: Vec<f64>,
    pub(crate) statuses: BTreeMap<u16, u64>,
    /// The bytes of all answers, heads included.
    pub(crate) bytes: u64,
    /// What this program itself has used for it.
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
            bail!("{number} answers of {status}");
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

/// So many clients, each with its connection, ask for this long.
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
        // Each client takes every so manyeth request, so no counter is shared.
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

/// A request for [`Make`], with the token of these calls.
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

/// A connection that is kept, and what was read of its next answer.
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

    /// The status of the answer, and how long it was.
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
                bail!("the service has closed a connection");
            }
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Answer {
    status: u16,
    /// Of head and body.
    length: usize,
}

impl Answer {
    /// None until the whole head is there.
    fn of(read: &[u8]) -> anyhow::Result<Option<Self>> {
        let Some(end) = read.windows(4).position(|bytes| bytes == b"\r\n\r\n") else { return Ok(None) };
        let head = std::str::from_utf8(&read[..end])?;
        let mut lines = head.split("\r\n");
        let status: u16 =
            lines.next().and_then(|line| line.split(' ').nth(1)).context("no status line")?.parse()?;
        let length = lines.find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>())
        });
        let body = match length {
            _ if status == 204 || status == 304 => 0,
            Some(length) => length?,
            None => bail!("an answer of {status} does not say how long it is"),
        };
        Ok(Some(Self { status, length: end + 4 + body }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_an_answer_ends_is_known_from_its_head() {
        let text = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
        let answer = Answer { status: 200, length: text.len() };
        assert_eq!(Answer::of(text).unwrap(), Some(answer));
        assert_eq!(Answer::of(&text[..20]).unwrap(), None);
        let unchanged = b"HTTP/1.1 304 Not Modified\r\netag: \"1\"\r\n\r\n";
        assert_eq!(Answer::of(unchanged).unwrap(), Some(Answer { status: 304, length: unchanged.len() }));
        assert!(Answer::of(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").is_err());
    }

    #[test]
    fn an_open_loop_sends_at_its_times_however_many_clients_there_are() {
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
