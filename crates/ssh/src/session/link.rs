//! One authenticated session, and how to wait for it without blocking for ever.

use std::io::Read;
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use ssh2::{BlockDirections, Channel, ErrorCode, Session};

use crate::HostPort;
use crate::session::readiness::Waker;

/// `LIBSSH2_ERROR_EAGAIN`: repeat the operation when the socket is ready.
const AGAIN: ErrorCode = ErrorCode::Session(-37);
/// `LIBSSH2_ERROR_CHANNEL_FAILURE`: the server refused to open a channel.
pub(crate) const CHANNEL_REFUSED: ErrorCode = ErrorCode::Session(-21);

/// An operation is retried after this long even if the socket is quiet: after a second partial send,
/// libssh2 does not report that it waits for room in the socket.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);
/// The pause between the first two requests for a channel, if the server refuses the first one.
const SHORTEST_PAUSE: Duration = Duration::from_millis(5);
/// Once the pause has grown to this, the refusal is final.
const LONGEST_PAUSE: Duration = Duration::from_millis(200);
/// How long the server may take to confirm that a channel is closed.
const CLOSE_BOUND: Duration = Duration::from_secs(1);
/// How long the disconnect message may take.
const GOODBYE: Duration = Duration::from_millis(500);

/// Why an operation failed.
#[derive(Debug)]
pub(crate) enum Stopped {
    /// The time was up.
    TimedOut,
    /// libssh2 reported an error.
    Failed(ssh2::Error),
}

/// A session that is connected and logged in, in non-blocking mode.
pub(crate) struct Link {
    pub(crate) session: Session,
    /// The session's own socket, to poll it and to shut it down.
    pub(crate) socket: TcpStream,
    pub(crate) host: HostPort,
    pub(crate) opened: Instant,
}

/// Discards the rest of both streams.
fn read_to_end(channel: &mut Channel) -> Result<(), ssh2::Error> {
    let mut rest = [0; 4096];
    for stream in [0, ssh2::EXTENDED_DATA_STDERR] {
        while matches!(channel.stream(stream).read(&mut rest), Ok(1..)) {}
    }
    if channel.eof() { Ok(()) } else { Err(ssh2::Error::from_errno(AGAIN)) }
}

impl Link {
    /// What the session waits for, as far as libssh2 reports it.
    pub(crate) fn interest(&self) -> PollFlags {
        match self.session.block_directions() {
            BlockDirections::None | BlockDirections::Inbound => PollFlags::IN,
            BlockDirections::Outbound => PollFlags::OUT,
            BlockDirections::Both => PollFlags::IN | PollFlags::OUT,
        }
    }

    /// Repeats an operation each time the socket is ready, until it ends or the time is up.
    pub(crate) fn drive<T>(
        &self,
        waker: &Waker,
        until: Instant,
        mut operation: impl FnMut() -> Result<T, ssh2::Error>,
    ) -> Result<T, Stopped> {
        loop {
            match operation() {
                Err(error) if error.code() == AGAIN => {}
                Err(error) => return Err(Stopped::Failed(error)),
                Ok(value) => return Ok(value),
            }
            let now = Instant::now();
            let next = until.min(now + LONGEST_SLEEP);
            if now >= until || waker.sleep(Some((&self.socket, self.interest())), Some(next)).is_err() {
                return Err(Stopped::TimedOut);
            }
        }
    }

    /// Opens a channel to run one program in.
    ///
    /// A refusal may mean that the server still counts the last channel: sshd confirms the end of a channel
    /// before it stops counting it (`MaxSessions`). So a refused request is repeated a few times.
    pub(crate) fn open_channel(&self, waker: &Waker, until: Instant) -> Result<Channel, Stopped> {
        let mut pause = SHORTEST_PAUSE;
        loop {
            match self.drive(waker, until, || self.session.channel_session()) {
                Err(Stopped::Failed(error)) if error.code() == CHANNEL_REFUSED && pause < LONGEST_PAUSE => {}
                result => return result,
            }
            let moment = Instant::now() + pause;
            while Instant::now() < moment && waker.sleep(None, Some(moment)).is_ok() {}
            pause *= 2;
        }
    }

    /// Closes a channel on both sides. If that fails, the link must not be used again.
    ///
    /// libssh2 takes the first message of any kind for the confirmation. A server that allows few channels
    /// would then refuse the next one. So this waits for the real confirmation: it follows the end of the
    /// stream, which shows once nothing is left unread.
    pub(crate) fn close_channel(&self, channel: &mut Channel, waker: &Waker) -> bool {
        let until = Instant::now() + CLOSE_BOUND;
        self.drive(waker, until, || channel.close()).is_ok()
            && self.drive(waker, until, || read_to_end(channel)).is_ok()
            && self.drive(waker, until, || channel.wait_close()).is_ok()
    }

    /// Whether the server still answers. Also reads and handles what has arrived in the meantime.
    ///
    /// It requests a channel of a type that does not exist, which every server must refuse. libssh2's own
    /// keepalive is no probe: it does not read, and the replies that it requests are never removed from the
    /// session's queue.
    pub(crate) fn answers(&self, waker: &Waker, until: Instant) -> bool {
        let probe = || self.session.channel_open("keepalive@tao-slurm", 0x8000, 0x8000, None);
        match self.drive(waker, until, probe) {
            Ok(_) => true,
            Err(Stopped::Failed(error)) => error.code() == CHANNEL_REFUSED,
            Err(Stopped::TimedOut) => false,
        }
    }

    /// Ends a working session.
    pub(crate) fn disconnect(self) {
        self.session.set_blocking(true);
        self.session.set_timeout(u32::try_from(GOODBYE.as_millis()).unwrap_or(u32::MAX));
        // The connection is about to be closed whether the message gets through or not.
        let _ = self.session.disconnect(None, "closing", None);
    }
}

impl Drop for Link {
    /// Closing a channel or a session waits for the server, unless the socket is shut down. After a timeout
    /// the server may be gone, and the thread would lose the same time again.
    fn drop(&mut self) {
        // It fails if the server has closed the connection already.
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}
