//! Bytes of many owners that came in one piece.

/// Whose bytes come one after the other, and who was told how many are whose.
#[derive(Debug, Default)]
pub(super) struct Parts {
    bytes: Vec<u8>,
    taken: usize,
}

impl Parts {
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, taken: 0 }
    }

    /// The next `length` bytes, or what is wrong with an answer that has fewer.
    pub(super) fn take(&mut self, length: usize) -> Result<&[u8], &'static str> {
        let rest = self.bytes.get(self.taken..).unwrap_or_default();
        let part = rest.get(..length).ok_or("all of the bytes that were announced")?;
        self.taken += length;
        Ok(part)
    }

    /// What is wrong with an answer that has more bytes than were taken: then nobody knows whose they all are.
    pub(super) fn finish(self) -> Result<(), &'static str> {
        if self.taken == self.bytes.len() { Ok(()) } else { Err("an owner for all of its bytes") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_taken_in_turn_and_have_to_come_out_even() {
        let mut parts = Parts::new(b"abc".to_vec());
        assert_eq!(parts.take(1), Ok(&b"a"[..]));
        assert_eq!(parts.take(0), Ok(&b""[..]));
        assert!(parts.take(3).is_err() && parts.take(usize::MAX).is_err());
        assert_eq!(parts.take(2), Ok(&b"bc"[..]));
        assert_eq!(parts.finish(), Ok(()));
        assert!(Parts::new(b"abc".to_vec()).finish().is_err());
    }
}
