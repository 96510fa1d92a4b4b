//! Runs one program in a channel of its own: sends its input and reads its output at the same time, until
//! the end marks or the deadline.
//!
//! Before the exec request, nothing has happened on the login host. After it, nothing is certain: if the
//! exchange stops before the end mark of the frame, the program may have run. `framing` explains why the
//! exit status cannot decide it.

use std::io::{self, ErrorKind, Read, Write};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use ssh2::{Channel, ErrorCode};

use crate::session::framing::{
    Ending, Excess, FrameError, FrameReader, random_boundary, remote_seconds, script,
};
use crate::session::link::{CHANNEL_REFUSED, Link, Stopped};
use crate::session::readiness::Waker;
use crate::session::shell_line::{ShellLine, shell_line};
use crate::{Command, Doubt, Output, SshError};

/// `LIBSSH2_ERROR_CHANNEL_REQUEST_DENIED`: the server refused to start the program.
const EXEC_DENIED: ErrorCode = ErrorCode::Session(-22);
/// How much longer than the remote `timeout` we wait, so that its report arrives.
const GRACE: Duration = Duration::from_secs(3);
/// How long the server may take to open a channel on a working connection.
const OPEN_BOUND: Duration = Duration::from_secs(10);
/// How long the end of stderr may lag behind the end of stdout.
const STDERR_LAG: Duration = Duration::from_millis(200);
/// The most bytes of stderr that are kept.
const STDERR_LIMIT: usize = 1 << 20;
/// The most bytes that one read takes.
const CHUNK: usize = 64 * 1024;

/// What a command depends on besides the connection.
pub(crate) struct ExecContext<'a> {
    pub(crate) waker: &'a Waker,
    /// Set once the pool closes: when running commands are given up.
    pub(crate) closing: &'a OnceLock<Instant>,
    pub(crate) keepalive: Duration,
}

/// The answer, and the channel to close before the link is used again.
pub(crate) struct Executed {
    pub(crate) result: Result<Output, SshError>,
    /// `None`: the link is in an unknown state and must be dropped.
    pub(crate) channel: Option<Channel>,
}

impl Executed {
    pub(crate) fn failed(error: SshError, channel: Option<Channel>) -> Self {
        Self { result: Err(error), channel }
    }

    fn not_sent(reason: String, channel: Option<Channel>) -> Self {
        Self::failed(SshError::NotSent { reason }, channel)
    }
}

/// Runs the command with `deadline` in place of its own. Calls `claim` once, right before the exec request;
/// if it returns false, nothing is sent.
pub(crate) fn execute(
    link: &Link,
    command: &Command,
    deadline: Duration,
    context: &ExecContext<'_>,
    claim: impl FnOnce() -> bool,
) -> Executed {
    let begun = Instant::now();
    let seconds = remote_seconds(deadline);
    let boundary = random_boundary();
    let Some(script) = script(&boundary, &command.program, seconds) else {
        return Executed::not_sent("the program contains a NUL byte".to_owned(), None);
    };
    let shell = shell_line(&boundary, &script);
    let mut channel = match open(link, context) {
        Ok(channel) => channel,
        Err(reason) => return Executed::not_sent(reason, None),
    };
    if !claim() {
        return Executed::not_sent("its caller no longer waits for it".to_owned(), Some(channel));
    }
    let until = Instant::now() + Duration::from_secs(seconds) + GRACE;
    if let Err(error) = request(link, &mut channel, &shell, context, until) {
        return Executed::failed(error, None);
    }
    let mut exchange = Exchange {
        link,
        channel,
        stdout: FrameReader::new(&boundary, command.stdout_limit, Excess::Refused),
        stderr: FrameReader::new(&boundary, STDERR_LIMIT, Excess::Cut),
        stdout_limit: command.stdout_limit,
        buffer: vec![0; CHUNK],
        input_ended: false,
        wants_to_write: false,
    };
    match exchange.run([&shell.stdin_prefix, &command.stdin], until, context) {
        Ok(()) => exchange.finish(begun),
        Err(error) => Executed::failed(error, None),
    }
}

fn open(link: &Link, context: &ExecContext<'_>) -> Result<Channel, String> {
    link.open_channel(context.waker, Instant::now() + OPEN_BOUND).map_err(|stopped| {
        let reason = match stopped {
            Stopped::TimedOut => "no answer".to_owned(),
            Stopped::Failed(error) if error.code() == CHANNEL_REFUSED => {
                format!("{}; check MaxSessions in its sshd_config", error.message())
            }
            Stopped::Failed(error) => error.message().to_owned(),
        };
        format!("{} opened no channel: {reason}", link.host)
    })
}

fn request(
    link: &Link,
    channel: &mut Channel,
    shell: &ShellLine,
    context: &ExecContext<'_>,
    until: Instant,
) -> Result<(), SshError> {
    link.drive(context.waker, until, || channel.exec(&shell.line)).map_err(|stopped| match stopped {
        Stopped::Failed(error) if error.code() == EXEC_DENIED => SshError::NotSent {
            reason: format!("{} does not run programs for this account: {}", link.host, error.message()),
        },
        Stopped::Failed(error) => unknown(link, Doubt::LinkLost, error.message()),
        Stopped::TimedOut => unknown(link, Doubt::Deadline, ""),
    })
}

fn unknown(link: &Link, doubt: Doubt, detail: &str) -> SshError {
    SshError::OutcomeUnknown { host: link.host.clone(), doubt, detail: detail.to_owned() }
}

/// An exchange on a channel in which the program has been started.
struct Exchange<'a> {
    link: &'a Link,
    channel: Channel,
    stdout: FrameReader,
    stderr: FrameReader,
    stdout_limit: usize,
    buffer: Vec<u8>,
    input_ended: bool,
    /// Part of a message waits for room in the socket. libssh2 does not always report that itself.
    wants_to_write: bool,
}

impl Exchange<'_> {
    /// Continues until both end marks have arrived, or until the stream ends; `finish` says what that means.
    fn run(
        &mut self,
        mut input: [&[u8]; 2],
        mut until: Instant,
        context: &ExecContext<'_>,
    ) -> Result<(), SshError> {
        let mut doubt = Doubt::Deadline;
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
                return Ok(());
            }
            if now >= until {
                return Err(unknown(self.link, doubt, ""));
            }
            // Reading one stream may have buffered bytes of the other: then the socket stays quiet although
            // there is something to read.
            if !progress && self.channel.read_window().available == 0 {
                let next =
                    [Some(until), stderr_until, Some(now + context.keepalive)].into_iter().flatten().min();
                self.sleep(next, context)?;
            }
            if let Some(last) = context.closing.get().filter(|last| **last < until) {
                (until, doubt) = (*last, Doubt::Closing);
            }
        }
    }

    fn finish(self, begun: Instant) -> Executed {
        let link = self.link;
        let result = match self.stdout.finish() {
            Ok((stdout, Ending::Exited(exit_code))) => Ok(Output {
                stdout,
                stderr: self.stderr.into_body(),
                exit_code,
                host: link.host.clone(),
                elapsed: begun.elapsed(),
            }),
            Ok((_, Ending::TimedOut)) => Err(unknown(link, Doubt::Deadline, "the login host stopped it")),
            Ok((_, Ending::NoTimeoutCommand)) => Err(SshError::NotSent {
                reason: format!("{} has no `timeout` command (coreutils)", link.host),
            }),
            Err(error) => Err(frame_failure(link, self.stdout_limit, error)),
        };
        Executed { result, channel: Some(self.channel) }
    }

    /// Reads and writes what is possible without blocking; returns whether anything moved.
    fn turn(&mut self, input: &mut [&[u8]; 2]) -> Result<bool, SshError> {
        let mut progress = false;
        for (stream, reader) in [(0, &mut self.stdout), (ssh2::EXTENDED_DATA_STDERR, &mut self.stderr)] {
            let read = self.channel.stream(stream).read(&mut self.buffer);
            if let Some(count @ 1..) = if_ready(self.link, read)? {
                reader
                    .push(&self.buffer[..count])
                    .map_err(|error| frame_failure(self.link, self.stdout_limit, error))?;
                progress = true;
            }
        }
        Ok(self.write(input)? || progress)
    }

    fn write(&mut self, input: &mut [&[u8]; 2]) -> Result<bool, SshError> {
        self.wants_to_write = false;
        // A program that has ended reads no more, and some servers hang up on data for a closed channel.
        if self.input_ended || self.stdout.is_complete() || self.channel.eof() {
            return Ok(false);
        }
        let Some(rest) = input.iter_mut().find(|rest| !rest.is_empty()) else {
            let ended = if_ready(self.link, self.channel.send_eof().map_err(io::Error::from))?;
            self.input_ended = ended.is_some();
            self.wants_to_write = ended.is_none();
            return Ok(self.input_ended);
        };
        let written = if_ready(self.link, self.channel.write(rest))?;
        if let Some(count) = written {
            *rest = &rest[count..];
        } else {
            // With a window of zero the program does not read; then we wait for the socket to be readable.
            self.wants_to_write = self.channel.write_window().remaining > 0;
        }
        Ok(written.is_some_and(|count| count > 0))
    }

    fn sleep(&self, until: Option<Instant>, context: &ExecContext<'_>) -> Result<(), SshError> {
        let interest =
            if self.wants_to_write { PollFlags::IN | PollFlags::OUT } else { self.link.interest() };
        let awake = context
            .waker
            .sleep(Some((&self.link.socket, interest)), until)
            .map_err(|error| lost(self.link, &error))?;
        if !awake.socket && !awake.woken && !self.wants_to_write {
            // It sends only when the interval is over, and keeps NAT entries on the way alive.
            self.link.session.keepalive_send().map_err(|error| lost(self.link, &error.into()))?;
        }
        Ok(())
    }
}

/// The result of a call, or `None` if it would block.
fn if_ready<T>(link: &Link, result: io::Result<T>) -> Result<Option<T>, SshError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(lost(link, &error)),
    }
}

fn lost(link: &Link, error: &io::Error) -> SshError {
    unknown(link, Doubt::LinkLost, &error.to_string())
}

fn frame_failure(link: &Link, limit: usize, error: FrameError) -> SshError {
    match error {
        FrameError::TooLarge => SshError::OutputTooLarge { host: link.host.clone(), limit },
        FrameError::NotBegun => unknown(link, Doubt::LinkLost, "the stream ended before the program began"),
        FrameError::NotEnded => unknown(link, Doubt::LinkLost, "the stream ended before the program did"),
        FrameError::Garbled => unknown(link, Doubt::LinkLost, "the end mark is damaged"),
    }
}
