//! One authenticated session, and waiting on it without blocking for ever.

use std::io::Read;
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use ssh2::{BlockDirections, Channel, ErrorCode, Session};

use crate::HostPort;
use crate::session::readiness::{Interest, WakeUps};

/// `LIBSSH2_ERROR_EAGAIN`: the operation goes on when the socket is ready.
const AGAIN: ErrorCode = ErrorCode::Session(-37);
/// `LIBSSH2_ERROR_CHANNEL_FAILURE`: the server refused to open a channel.
pub(crate) const CHANNEL_REFUSED: ErrorCode = ErrorCode::Session(-21);

/// After this the operation is tried again although the socket is silent: after a second partial send
/// libssh2 forgets to say that it waits for room.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);
/// Between the first two requests for a channel, when the first one is refused.
const SHORTEST_PAUSE: Duration = Duration::from_millis(5);
/// When the pause has grown to this, the refusal is meant.
const LONGEST_PAUSE: Duration = Duration::from_millis(200);
/// How long the server may take to confirm that a channel is closed.
const CLOSE_BOUND: Duration = Duration::from_secs(1);
/// How long a goodbye may take.
const GOODBYE: Duration = Duration::from_millis(500);

/// Why an operation did not succeed.
#[derive(Debug)]
pub(crate) enum Stopped {
    /// The moment came first.
    TimedOut,
    /// The library gave up.
    Failed(ssh2::Error),
}

/// A session that is connected and logged in, in non-blocking mode.
pub(crate) struct Link {
    pub(crate) session: Session,
    /// The same socket as the session's own, to poll and to shut.
    pub(crate) socket: TcpStream,
    pub(crate) host: HostPort,
    pub(crate) opened: Instant,
}

pub(crate) fn is_again(error: &ssh2::Error) -> bool {
    error.code() == AGAIN
}

/// Throws away what is left of both streams.
fn read_to_end(channel: &mut Channel) -> Result<(), ssh2::Error> {
    let mut rest = [0; 4096];
    for stream in [0, ssh2::EXTENDED_DATA_STDERR] {
        while matches!(channel.stream(stream).read(&mut rest), Ok(1..)) {}
    }
    if channel.eof() { Ok(()) } else { Err(ssh2::Error::from_errno(AGAIN)) }
}

impl Link {
    /// What the session waits for, as far as it knows.
    pub(crate) fn interest(&self) -> Interest {
        match self.session.block_directions() {
            BlockDirections::None | BlockDirections::Inbound => Interest::Read,
            BlockDirections::Outbound => Interest::Write,
            BlockDirections::Both => Interest::Both,
        }
    }

    /// Repeats an operation each time the socket is ready, until it ends or the moment comes.
    pub(crate) fn drive<T>(
        &self,
        wake_ups: &WakeUps,
        until: Instant,
        mut operation: impl FnMut() -> Result<T, ssh2::Error>,
    ) -> Result<T, Stopped> {
        loop {
            match operation() {
                Err(error) if is_again(&error) => {}
                Err(error) => return Err(Stopped::Failed(error)),
                Ok(value) => return Ok(value),
            }
            let now = Instant::now();
            let next = until.min(now + LONGEST_SLEEP);
            if now >= until || wake_ups.sleep(Some((&self.socket, self.interest())), Some(next)).is_err() {
                return Err(Stopped::TimedOut);
            }
        }
    }

    /// A channel to run one program in.
    ///
    /// A refusal may mean that the server has not yet put the last channel away: sshd confirms the end of
    /// one before it counts it out (`MaxSessions`). So a refused request is made a few times more.
    pub(crate) fn open_channel(&self, wake_ups: &WakeUps, until: Instant) -> Result<Channel, Stopped> {
        let mut pause = SHORTEST_PAUSE;
        loop {
            match self.drive(wake_ups, until, || self.session.channel_session()) {
                Err(Stopped::Failed(error)) if error.code() == CHANNEL_REFUSED && pause < LONGEST_PAUSE => {}
                result => return result,
            }
            let moment = Instant::now() + pause;
            while Instant::now() < moment && wake_ups.sleep(None, Some(moment)).is_ok() {}
            pause *= 2;
        }
    }

    /// Closes a channel on both sides. A link where that does not work is not used again.
    ///
    /// libssh2 takes the first message of any kind for the confirmation. A server that allows few channels
    /// would refuse the next one, so the real one is waited for: it follows the end of the stream, and that
    /// shows when nothing is left unread.
    pub(crate) fn close_channel(&self, channel: &mut Channel, wake_ups: &WakeUps) -> bool {
        let until = Instant::now() + CLOSE_BOUND;
        self.drive(wake_ups, until, || channel.close()).is_ok()
            && self.drive(wake_ups, until, || read_to_end(channel)).is_ok()
            && self.drive(wake_ups, until, || channel.wait_close()).is_ok()
    }

    /// Whether the other side still answers. Takes in whatever has arrived in the meantime.
    ///
    /// It asks for a channel of a kind that does not exist, which every server has to refuse. libssh2's
    /// own keepalive tells nothing here: it does not read, and the replies it asks for are never removed
    /// from the session's queue.
    pub(crate) fn answers(&self, wake_ups: &WakeUps, until: Instant) -> bool {
        let probe = || self.session.channel_open("keepalive@tao-slurm", 0x8000, 0x8000, None);
        match self.drive(wake_ups, until, probe) {
            Ok(_) => true,
            Err(Stopped::Failed(error)) => error.code() == CHANNEL_REFUSED,
            Err(Stopped::TimedOut) => false,
        }
    }

    /// Ends a session that works.
    pub(crate) fn say_goodbye(self) {
        self.session.set_blocking(true);
        self.session.set_timeout(u32::try_from(GOODBYE.as_millis()).unwrap_or(u32::MAX));
        // The connection is about to be closed whether the message gets through or not.
        let _ = self.session.disconnect(None, "closing", None);
    }
}

impl Drop for Link {
    /// Closing a channel or a session waits for the other side. With the socket shut it does not: after a
    /// timeout nobody may be there to answer, and the thread would lose as much time again.
    fn drop(&mut self) {
        // A socket that the other side has closed already is as good.
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}
