//! What the fuzzer needs of the framing. Other builds do not contain it.

use crate::session::framing::{Ending, Excess, FrameError, FrameReader};

/// Reads a stream that arrives in pieces of `piece` bytes. Its boundary is 32 zeros. Returns `None` if the
/// stream is not a complete answer.
///
/// # Panics
///
/// If the reader keeps more in memory than the limit allows.
pub fn read_frame(stream: &[u8], piece: usize, limit: usize) -> Option<(Vec<u8>, String)> {
    for excess in [Excess::Cut, Excess::Refused] {
        let mut reader = FrameReader::new(&"0".repeat(32), limit, excess);
        let pushed: Result<(), FrameError> = stream.chunks(piece).try_for_each(|piece| reader.push(piece));
        match (excess, pushed) {
            (Excess::Cut, _) => assert!(reader.into_body().len() <= limit),
            (Excess::Refused, Ok(())) => {
                let (body, ending): (Vec<u8>, Ending) = reader.finish().ok()?;
                return Some((body, format!("{ending:?}")));
            }
            (Excess::Refused, Err(_)) => return None,
        }
    }
    None
}
