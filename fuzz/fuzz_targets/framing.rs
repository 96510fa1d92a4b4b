//! The frame around every answer: noise before and after it, marks in pieces, and bounded memory.
#![no_main]

use libfuzzer_sys::fuzz_target;

const LIMIT: usize = 300;

fuzz_target!(|input: &[u8]| {
    let Some((size, stream)) = input.split_first() else { return };
    // The size of the pieces must not change the answer.
    let whole = ssh::fuzzing::read_frame(stream, stream.len().max(1), LIMIT);
    let pieces = ssh::fuzzing::read_frame(stream, usize::from(*size).max(1), LIMIT);
    if let (Some(whole), Some(pieces)) = (&whole, &pieces) {
        assert_eq!(whole, pieces);
    }
    if let Some((body, _)) = whole {
        assert!(body.len() <= LIMIT);
    }
});
