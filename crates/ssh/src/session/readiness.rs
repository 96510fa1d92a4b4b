//! Sleeps until something happens: bytes on a socket, a wake-up from another thread, or a timeout.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// Wakes one sleeping thread.
#[derive(Debug)]
pub(crate) struct Waker(UnixStream);

/// The other end of a [`Waker`], owned by the thread that sleeps.
#[derive(Debug)]
pub(crate) struct WakeUps(UnixStream);

/// What ended a sleep; neither if the time was up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Awake {
    pub(crate) socket: bool,
    pub(crate) woken: bool,
}

/// A waker and the sleeping thread's end of it.
pub(crate) fn wake_pair() -> io::Result<(Waker, WakeUps)> {
    let (here, there) = UnixStream::pair()?;
    here.set_nonblocking(true)?;
    there.set_nonblocking(true)?;
    Ok((Waker(here), WakeUps(there)))
}

impl Waker {
    pub(crate) fn wake(&self) {
        // A full pipe has enough pending wake-ups. With a closed one the thread has ended.
        let _ = (&self.0).write(&[1]);
    }
}

impl WakeUps {
    /// Sleeps until `until` at the latest; without it, until something happens. Uses up pending wake-ups.
    pub(crate) fn sleep(
        &self,
        socket: Option<(&TcpStream, PollFlags)>,
        until: Option<Instant>,
    ) -> io::Result<Awake> {
        loop {
            let timeout = until.map(|until| timespec(until.saturating_duration_since(Instant::now())));
            let mut waits = vec![PollFd::new(&self.0, PollFlags::IN)];
            if let Some((socket, interest)) = socket {
                waits.push(PollFd::new(socket, interest));
            }
            match poll(&mut waits, timeout.as_ref()) {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            let is_ready = |index: usize| waits.get(index).is_some_and(|wait| !wait.revents().is_empty());
            let awake = Awake { woken: is_ready(0), socket: is_ready(1) };
            if awake.woken {
                self.drain();
            }
            return Ok(awake);
        }
    }

    fn drain(&self) {
        let mut bytes = [0; 64];
        while matches!((&self.0).read(&mut bytes), Ok(1..)) {}
    }
}

fn timespec(duration: Duration) -> Timespec {
    let seconds = i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
    Timespec { tv_sec: seconds, tv_nsec: duration.subsec_nanos().into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wake_up_sent_before_the_sleep_ends_it_at_once_and_only_once() {
        let (waker, wake_ups) = wake_pair().expect("a pair");
        waker.wake();
        waker.wake();
        let begun = Instant::now();
        let awake = wake_ups.sleep(None, Some(begun + Duration::from_secs(5))).expect("a sleep");
        assert!(awake.woken && begun.elapsed() < Duration::from_secs(1));
        let awake = wake_ups.sleep(None, Some(Instant::now() + Duration::from_millis(20))).expect("a sleep");
        assert_eq!(awake, Awake { socket: false, woken: false });
    }

    #[test]
    fn more_wake_ups_than_the_pipe_holds_do_not_block() {
        let (waker, _wake_ups) = wake_pair().expect("a pair");
        for _ in 0..100_000 {
            waker.wake();
        }
    }
}
