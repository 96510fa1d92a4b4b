//! Runs one program in a channel of its own.
//!
//! Up to the exec request nothing has happened over there. From then on nothing is certain: whatever ends
//! the exchange before the end mark of the frame, the program may have run. `framing` says why no exit
//! status tells otherwise.

use std::time::{Duration, Instant};

use ssh2::{Channel, ErrorCode};

use crate::pool::thread::Surroundings;
use crate::session::exchange::{Exchange, Received, Stop};
use crate::session::framing::{Boundary, Ending, FrameError, remote_seconds, script};
use crate::session::link::{CHANNEL_REFUSED, Link, Stopped};
use crate::session::shell_line::{ShellLine, shell_line};
use crate::{Command, Doubt, Output, SshError};

/// `LIBSSH2_ERROR_CHANNEL_REQUEST_DENIED`: the server refused to start the program.
const EXEC_DENIED: ErrorCode = ErrorCode::Session(-22);
/// How much longer than the remote side we wait, so that its own account of a timeout arrives.
const GRACE: Duration = Duration::from_secs(3);
/// How long the server may take to open a channel on a link that works.
const OPEN_BOUND: Duration = Duration::from_secs(10);

/// The answer, and the channel to close when the link can be used again.
pub(crate) struct Executed {
    pub(crate) result: Result<Output, SshError>,
    /// `None`: the link is in an unknown state and must be dropped.
    pub(crate) channel: Option<Channel>,
}

/// Why there is no answer, and whether the link survived.
struct Failed {
    error: SshError,
    channel: Option<Channel>,
}

/// Runs the command with `deadline` in place of its own. `claim` is asked once, right before the request
/// is sent; when it says no, nothing is sent.
pub(crate) fn execute(
    link: &Link,
    command: &Command,
    deadline: Duration,
    around: &Surroundings<'_>,
    claim: impl FnOnce() -> bool,
) -> Executed {
    let begun = Instant::now();
    match attempt(link, command, remote_seconds(deadline), around, claim) {
        Ok((received, channel)) => {
            Executed { result: answer(link, received, begun.elapsed()), channel: Some(channel) }
        }
        Err(failed) => Executed { result: Err(failed.error), channel: failed.channel },
    }
}

fn attempt(
    link: &Link,
    command: &Command,
    seconds: u64,
    around: &Surroundings<'_>,
    claim: impl FnOnce() -> bool,
) -> Result<(Received, Channel), Failed> {
    let boundary = Boundary::random();
    let script = script(boundary, &command.program, seconds);
    let script = script.ok_or_else(|| not_sent("the program contains a NUL byte".to_owned(), None))?;
    let shell = shell_line(boundary, &script);
    let mut channel = open(link, around)?;
    if !claim() {
        return Err(not_sent("nobody waits for the answer any more".to_owned(), Some(channel)));
    }
    let until = Instant::now() + Duration::from_secs(seconds) + GRACE;
    request(link, &mut channel, &shell, around, until)?;
    let exchange = Exchange::new(link, channel, boundary, command.stdout_limit);
    exchange.run([&shell.stdin_prefix, &command.stdin], until, around).map_err(|stop| {
        let error = match stop {
            Stop::Doubtful(doubt, detail) => unknown(link, doubt, &detail),
            Stop::TooLarge => {
                SshError::OutputTooLarge { host: link.host.clone(), limit: command.stdout_limit }
            }
        };
        Failed { error, channel: None }
    })
}

fn open(link: &Link, around: &Surroundings<'_>) -> Result<Channel, Failed> {
    link.open_channel(around.wake_ups, Instant::now() + OPEN_BOUND).map_err(|stopped| {
        let reason = match stopped {
            Stopped::TimedOut => "no answer".to_owned(),
            Stopped::Failed(error) if error.code() == CHANNEL_REFUSED => {
                format!("{}; does MaxSessions allow another?", error.message())
            }
            Stopped::Failed(error) => error.message().to_owned(),
        };
        not_sent(format!("{} opened no channel: {reason}", link.host), None)
    })
}

fn request(
    link: &Link,
    channel: &mut Channel,
    shell: &ShellLine,
    around: &Surroundings<'_>,
    until: Instant,
) -> Result<(), Failed> {
    link.drive(around.wake_ups, until, || channel.exec(&shell.line)).map_err(|stopped| match stopped {
        Stopped::Failed(error) if error.code() == EXEC_DENIED => {
            not_sent(format!("{} runs no programs for this account: {}", link.host, error.message()), None)
        }
        Stopped::Failed(error) => {
            Failed { error: unknown(link, Doubt::LinkLost, error.message()), channel: None }
        }
        Stopped::TimedOut => Failed { error: unknown(link, Doubt::Deadline, ""), channel: None },
    })
}

fn answer(link: &Link, received: Received, elapsed: Duration) -> Result<Output, SshError> {
    match received.stdout {
        Ok((stdout, Ending::Exited(exit_code))) => {
            Ok(Output { stdout, stderr: received.stderr, exit_code, host: link.host.clone(), elapsed })
        }
        Ok((_, Ending::TimedOut)) => Err(unknown(link, Doubt::Deadline, "the remote side ended it")),
        Ok((_, Ending::NoTimeoutCommand)) => {
            Err(SshError::NotSent { reason: format!("{} has no `timeout` command (coreutils)", link.host) })
        }
        Err(error) => Err(unknown(link, Doubt::LinkLost, explain(error))),
    }
}

fn explain(error: FrameError) -> &'static str {
    match error {
        FrameError::NotBegun => "the stream ended before the program began",
        FrameError::NotEnded => "the stream ended before the program did",
        FrameError::Garbled => "the end mark is damaged",
        FrameError::TooLarge => "too much output",
    }
}

fn not_sent(reason: String, channel: Option<Channel>) -> Failed {
    Failed { error: SshError::NotSent { reason }, channel }
}

fn unknown(link: &Link, doubt: Doubt, detail: &str) -> SshError {
    SshError::OutcomeUnknown { host: link.host.clone(), doubt, detail: detail.to_owned() }
}
