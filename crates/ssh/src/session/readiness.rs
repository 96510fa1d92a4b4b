//! Sleeps until something happens: bytes on a socket, a wake-up from another thread, or a timeout.

use std::io;
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;

/// Wakes one sleeping thread. The thread and those that wake it share the eventfd.
#[derive(Debug, Clone)]
pub(crate) struct Waker(Arc<OwnedFd>);

/// What ended a sleep; neither if the time was up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Awake {
    pub(crate) socket: bool,
    pub(crate) woken: bool,
}

impl Waker {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(Arc::new(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?)))
    }

    pub(crate) fn wake(&self) {
        // It fails only if the counter is at its limit; then enough wake-ups are pending.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

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
                // Reading resets the counter.
                let _ = rustix::io::read(&self.0, &mut [0; 8]);
            }
            return Ok(awake);
        }
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
        let waker = Waker::new().expect("a waker");
        waker.wake();
        waker.wake();
        let begun = Instant::now();
        let awake = waker.sleep(None, Some(begun + Duration::from_mins(2))).expect("a sleep");
        assert!(awake.woken && begun.elapsed() < Duration::from_mins(1));
        let awake = waker.sleep(None, Some(Instant::now() + Duration::from_millis(20))).expect("a sleep");
        assert_eq!(awake, Awake { socket: false, woken: false });
    }

    #[test]
    fn many_wake_ups_do_not_block() {
        let waker = Waker::new().expect("a waker");
        for _ in 0..100_000 {
            waker.wake();
        }
    }
}
