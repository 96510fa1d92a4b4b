//! Sends a program's input and takes its output at the same time, until the end marks or the deadline.

use std::io::{self, ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use ssh2::Channel;

use crate::Doubt;
use crate::pool::thread::Surroundings;
use crate::session::framing::{Boundary, Ending, Excess, FrameError, FrameReader};
use crate::session::link::Link;
use crate::session::readiness::Interest;

/// How long the end of the standard error may lag behind that of the output.
const STDERR_LAG: Duration = Duration::from_millis(200);
/// How much of the standard error is kept.
const STDERR_LIMIT: usize = 1 << 20;
/// How much is read at a time.
const CHUNK: usize = 64 * 1024;

/// Both streams as far as they came.
pub(crate) struct Received {
    pub(crate) stdout: Result<(Vec<u8>, Ending), FrameError>,
    pub(crate) stderr: Vec<u8>,
}

/// Why an exchange was broken off.
pub(crate) enum Stop {
    /// By time, or by a lost link.
    Doubtful(Doubt, String),
    /// By too much output.
    TooLarge,
}

/// An exchange on a channel in which the program has been started.
pub(crate) struct Exchange<'a> {
    link: &'a Link,
    channel: Channel,
    stdout: FrameReader,
    stderr: FrameReader,
    buffer: Vec<u8>,
    input_ended: bool,
    /// Part of a message waits for room in the socket. libssh2 does not always say so itself.
    wants_to_write: bool,
}

impl<'a> Exchange<'a> {
    pub(crate) fn new(link: &'a Link, channel: Channel, boundary: Boundary, stdout_limit: usize) -> Self {
        Self {
            link,
            channel,
            stdout: FrameReader::new(boundary, stdout_limit, Excess::Refused),
            stderr: FrameReader::new(boundary, STDERR_LIMIT, Excess::Cut),
            buffer: vec![0; CHUNK],
            input_ended: false,
            wants_to_write: false,
        }
    }

    /// Goes on until both end marks came, or until the stream ended: what that means, the frame says.
    pub(crate) fn run(
        mut self,
        mut input: [&[u8]; 2],
        until: Instant,
        around: &Surroundings<'_>,
    ) -> Result<(Received, Channel), Stop> {
        let (mut until, mut doubt) = (until, Doubt::Deadline);
        let mut stderr_until = None;
        loop {
            let progress = self.turn(&mut input)?;
            let now = Instant::now();
            if self.stdout.is_complete() && stderr_until.is_none() {
                stderr_until = Some(now + STDERR_LAG);
            }
            let stderr_is_over =
                self.stderr.is_complete() || stderr_until.is_some_and(|moment| now >= moment);
            if (self.stdout.is_complete() && stderr_is_over) || self.channel.eof() {
                return Ok(self.received());
            }
            if now >= until {
                return Err(Stop::Doubtful(doubt, String::new()));
            }
            // Reading one stream may have taken in bytes of the other: then the socket is silent although
            // there is something to read.
            if !progress && self.channel.read_window().available == 0 {
                let next =
                    [Some(until), stderr_until, Some(now + around.keepalive)].into_iter().flatten().min();
                self.sleep(next, around)?;
            }
            if let Some(last) = around.closing.get().filter(|last| **last < until) {
                (until, doubt) = (*last, Doubt::Closing);
            }
        }
    }

    fn received(self) -> (Received, Channel) {
        (Received { stdout: self.stdout.finish(), stderr: self.stderr.into_body() }, self.channel)
    }

    /// Reads and writes what can be read and written now; whether that was anything.
    fn turn(&mut self, input: &mut [&[u8]; 2]) -> Result<bool, Stop> {
        let mut progress = false;
        for (stream, reader) in [(0, &mut self.stdout), (ssh2::EXTENDED_DATA_STDERR, &mut self.stderr)] {
            if let Some(count @ 1..) = possible(self.channel.stream(stream).read(&mut self.buffer))? {
                reader.push(&self.buffer[..count])?;
                progress = true;
            }
        }
        Ok(self.send(input)? || progress)
    }

    fn send(&mut self, input: &mut [&[u8]; 2]) -> Result<bool, Stop> {
        self.wants_to_write = false;
        // A program that has ended reads no more, and some servers hang up on data for a closed channel.
        if self.input_ended || self.stdout.is_complete() || self.channel.eof() {
            return Ok(false);
        }
        let Some(rest) = input.iter_mut().find(|rest| !rest.is_empty()) else {
            let ended = possible(self.channel.send_eof().map_err(io::Error::from))?;
            self.input_ended = ended.is_some();
            self.wants_to_write = ended.is_none();
            return Ok(self.input_ended);
        };
        let sent = possible(self.channel.write(rest))?;
        if let Some(count) = sent {
            *rest = &rest[count..];
        } else {
            // With a window of zero it is the program that does not read, and a readable socket that helps.
            self.wants_to_write = self.channel.write_window().remaining > 0;
        }
        Ok(sent.is_some_and(|count| count > 0))
    }

    fn sleep(&self, until: Option<Instant>, around: &Surroundings<'_>) -> Result<(), Stop> {
        let interest = if self.wants_to_write { Interest::Both } else { self.link.interest() };
        let awake = around
            .wake_ups
            .sleep(Some((&self.link.socket, interest)), until)
            .map_err(|error| lost(&error))?;
        if !awake.socket && !awake.woken && !self.wants_to_write {
            // It sends only when it is time to, and keeps address translators on the way from forgetting us.
            self.link.session.keepalive_send().map_err(|error| lost(&error.into()))?;
        }
        Ok(())
    }
}

/// The result of a call that would not block.
fn possible<T>(result: io::Result<T>) -> Result<Option<T>, Stop> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(lost(&error)),
    }
}

fn lost(error: &io::Error) -> Stop {
    Stop::Doubtful(Doubt::LinkLost, error.to_string())
}

impl From<FrameError> for Stop {
    fn from(error: FrameError) -> Self {
        match error {
            FrameError::TooLarge => Self::TooLarge,
            FrameError::NotBegun | FrameError::NotEnded | FrameError::Garbled => {
                Self::Doubtful(Doubt::LinkLost, "the end mark is damaged".to_owned())
            }
        }
    }
}
