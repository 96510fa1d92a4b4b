//! Splits a log's bytes into events: UTF-8 as text, everything else as bytes.

/// The most bytes of one event, so that it fits into any client's buffer.
const MOST: usize = 64 * 1024;

/// A part of the bytes that does not split a character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    Text(&'a str),
    Bytes(&'a [u8]),
}

impl Piece<'_> {
    pub(super) fn len(self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Bytes(bytes) => bytes.len(),
        }
    }
}

/// The pieces in order. Unless these bytes are the `last`, an incomplete character at the end (at most three bytes) waits for
/// the next read.
pub(super) fn pieces(bytes: &[u8], last: bool) -> Vec<Piece<'_>> {
    let mut rest = if last { bytes } else { &bytes[..bytes.len() - begun(bytes)] };
    let mut pieces = Vec::with_capacity(rest.len() / MOST + 1);
    while !rest.is_empty() {
        let most = &rest[..rest.len().min(MOST)];
        let cut = if most.len() == rest.len() { most.len() } else { most.len() - begun(most) };
        let (piece, after) = rest.split_at(cut);
        pieces.push(str::from_utf8(piece).map_or(Piece::Bytes(piece), Piece::Text));
        rest = after;
    }
    pieces
}

/// The number of bytes at the end that begin an incomplete character: 0 to 3.
fn begun(bytes: &[u8]) -> usize {
    let longest = bytes.len().min(3);
    (1..=longest)
        .find(|back| {
            let end = &bytes[bytes.len() - back..];
            // No `error_len`: the text ends where the character should go on.
            str::from_utf8(end).is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
        })
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn put_together(pieces: &[Piece<'_>]) -> Vec<u8> {
        let bytes = |piece: &Piece<'_>| match piece {
            Piece::Text(text) => text.as_bytes().to_vec(),
            Piece::Bytes(bytes) => bytes.to_vec(),
        };
        pieces.iter().flat_map(bytes).collect()
    }

    #[test]
    fn a_character_that_is_cut_waits_for_its_end() {
        let text = "a✓".as_bytes();
        assert_eq!(pieces(&text[..3], false), [Piece::Text("a")]);
        assert_eq!(pieces(&text[..3], true), [Piece::Bytes(&text[..3])]);
        assert_eq!(pieces(text, false), [Piece::Text("a✓")]);
        assert_eq!(pieces(&text[1..2], false), []);
    }

    #[test]
    fn what_can_never_become_a_character_does_not_wait() {
        for bytes in [&b"a\xff"[..], b"\x80", b"\xc0", b"a\xed\xa0", b"\xf5\x80"] {
            assert_eq!(pieces(bytes, false), [Piece::Bytes(bytes)], "{bytes:?}");
        }
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let text = "日".repeat(MOST);
        let cut = pieces(text.as_bytes(), false);
        assert!(
            cut.len() > 2 && cut.iter().all(|piece| matches!(piece, Piece::Text(_)) && piece.len() <= MOST)
        );
        assert_eq!(put_together(&cut), text.as_bytes());
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_little_is_left(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            prop_assert_eq!(put_together(&pieces(&bytes, true)), bytes.clone());
            let now = put_together(&pieces(&bytes, false));
            prop_assert!(bytes.starts_with(&now) && bytes.len() - now.len() <= 3);
        }

        /// However the reads fall, a text comes as text.
        #[test]
        fn text_stays_text_wherever_it_is_cut(text in "\\PC{0,60}", cuts in proptest::collection::vec(1_usize..9, 1..80)) {
            let bytes = text.as_bytes();
            let (mut done, mut end, mut seen) = (0, 0, String::new());
            for cut in cuts.iter().chain(std::iter::repeat_n(&bytes.len(), 1)) {
                end = (end + cut).min(bytes.len());
                for piece in pieces(&bytes[done..end], end == bytes.len()) {
                    let Piece::Text(piece) = piece else { panic!("{piece:?}") };
                    seen.push_str(piece);
                    done += piece.len();
                }
            }
            prop_assert_eq!(seen, text);
        }
    }
}
