//! A connection whose client has to take its answers at a least pace. A client that takes a few bytes now and then would otherwise
//! hold a connection, and the memory of its answer, for hours.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Instant, Sleep, sleep},
};

/// How long a client may take for one byte: 16 KiB per second, less than any network that people work over.
const TIME_OF_BYTE: Duration = Duration::from_nanos(1_000_000_000 / (16 * 1024));

/// Fails once its client is too slow. The pace counts from the moment at which the kernel takes no more until all is taken that
/// was to be sent: the whole of an answer with a size, but only the part of a stream that is in memory.
#[derive(Debug)]
pub(super) struct PacedStream {
    stream: TcpStream,
    patience: Duration,
    /// When the client is too slow; none while nothing waits for it.
    due: Option<Pin<Box<Sleep>>>,
}

impl PacedStream {
    /// `patience` is how long the client may take nothing, and how far it may fall behind the least pace.
    pub(super) fn new(stream: TcpStream, patience: Duration) -> Self {
        Self { stream, patience, due: None }
    }

    fn wrote(&mut self, cx: &mut Context<'_>, wrote: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match (&wrote, &mut self.due) {
            (Poll::Ready(Ok(bytes)), Some(due)) => {
                let later = later(due.deadline(), *bytes, Instant::now() + self.patience);
                due.as_mut().reset(later);
                wrote
            }
            (Poll::Ready(_), _) => wrote,
            (Poll::Pending, due) => {
                let due = due.get_or_insert_with(|| Box::pin(sleep(self.patience)));
                ready!(due.as_mut().poll(cx));
                // The kernel, too, forgets what it has of the answer.
                self.stream.set_zero_linger()?;
                Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client reads too slowly")))
            }
        }
    }
}

/// When the client is too slow, after it has taken so many bytes. Fast reading is no license to stop for long later.
fn later(due: Instant, bytes: usize, latest: Instant) -> Instant {
    let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
    (due + TIME_OF_BYTE * bytes).min(latest)
}

impl AsyncRead for PacedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for PacedStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.wrote(cx, wrote)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.stream).poll_write_vectored(cx, parts);
        self.wrote(cx, wrote)
    }

    /// Otherwise hyper would copy every body.
    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// hyper flushes when the stream has taken everything.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.due = None;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_buy_time_at_the_least_pace_and_never_more_than_the_patience() {
        let (now, second) = (Instant::now(), Duration::from_secs(1));
        let bought = |bytes| later(now, bytes, now + 30 * second) - now;
        assert_eq!(bought(0), Duration::ZERO);
        assert_eq!(bought(16 * 1024).as_millis(), 999);
        assert_eq!(bought(160 * 1024).as_millis(), 9999);
        assert_eq!(bought(1024 * 1024), 30 * second);
        assert_eq!(bought(usize::MAX), 30 * second);
    }
}
