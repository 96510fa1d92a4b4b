use proptest::prelude::*;

use super::*;

const BOUNDARY: &str = "00000000000000000000000000c0ffee";
const LIMIT: usize = 1 << 20;

fn framed(before: &[u8], body: &[u8], ending: &str, after: &[u8]) -> Vec<u8> {
    let marks = [begin_mark(BOUNDARY), end_mark(BOUNDARY)];
    [before, &marks[0], body, &marks[1], ending.as_bytes(), b"\n", after].concat()
}

fn read(pieces: &[&[u8]], limit: usize, excess: Excess) -> Result<(Vec<u8>, Ending), FrameError> {
    let mut reader = FrameReader::new(BOUNDARY, limit, excess);
    for piece in pieces {
        reader.push(piece)?;
    }
    reader.finish()
}

fn read_whole(stream: &[u8]) -> Result<(Vec<u8>, Ending), FrameError> {
    read(&[stream], LIMIT, Excess::Refused)
}

#[test]
fn noise_on_both_sides_is_dropped() {
    let stream = framed(b"Welcome!\n\nLast login: never", b"42\n", "0", b"logout\n");
    assert_eq!(read_whole(&stream), Ok((b"42\n".to_vec(), Ending::Exited(0))));
}

#[test]
fn a_body_without_a_final_newline_and_with_nul_bytes_is_exact() {
    for body in [&b"no newline"[..], b"", b"\n", b"\n\n", b"a\0b\0\n\xff\xfe", b"\nEND-", b"BEGIN-"] {
        let stream = framed(b"", body, "7", b"");
        assert_eq!(read_whole(&stream), Ok((body.to_vec(), Ending::Exited(7))), "{body:?}");
    }
}

#[test]
fn marks_with_another_boundary_are_content() {
    let other = "00000000000000000000000000c0ffef";
    let body = [begin_mark(other), end_mark(other), b"0\n".to_vec()].concat();
    let stream = framed(&body, &body, "3", &body);
    assert_eq!(read_whole(&stream), Ok((body, Ending::Exited(3))));
}

#[test]
fn every_ending_is_parsed() {
    for (text, ending) in [
        ("0", Ok(Ending::Exited(0))),
        ("124", Ok(Ending::Exited(124))),
        ("255", Ok(Ending::Exited(255))),
        ("timeout", Ok(Ending::TimedOut)),
        ("missing", Ok(Ending::NoTimeoutCommand)),
        ("", Err(FrameError::Garbled)),
        ("256", Err(FrameError::Garbled)),
        ("-1", Err(FrameError::Garbled)),
        ("zero", Err(FrameError::Garbled)),
        ("00000000000000000000", Err(FrameError::Garbled)),
    ] {
        let read = read_whole(&framed(b"", b"x", text, b""));
        assert_eq!(read.map(|(_, ending)| ending), ending, "{text:?}");
    }
}

#[test]
fn a_body_of_exactly_the_limit_is_accepted_and_one_byte_more_is_not() {
    let stream = framed(b"noise does not count", &[b'x'; 100], "0", b"");
    assert!(read(&[&stream], 100, Excess::Refused).is_ok());
    assert_eq!(read(&[&stream], 99, Excess::Refused), Err(FrameError::TooLarge));
    let bytes: Vec<&[u8]> = stream.chunks(1).collect();
    assert!(read(&bytes, 100, Excess::Refused).is_ok());
    assert_eq!(read(&bytes, 99, Excess::Refused), Err(FrameError::TooLarge));
}

#[test]
fn an_endless_body_is_refused_before_it_ends() {
    let mut reader = FrameReader::new(BOUNDARY, 1000, Excess::Refused);
    reader.push(&begin_mark(BOUNDARY)).expect("the begin mark");
    assert_eq!(reader.push(&[b'x'; 2000]), Err(FrameError::TooLarge));
}

#[test]
fn a_cut_stream_keeps_its_first_part_and_its_ending() {
    let body = vec![b'x'; 500_000];
    let stream = framed(b"", &body, "9", b"");
    let pieces: Vec<&[u8]> = stream.chunks(777).collect();
    assert_eq!(read(&pieces, 1000, Excess::Cut), Ok((vec![b'x'; 1000], Ending::Exited(9))));
}

#[test]
fn the_script_never_contains_a_complete_mark() {
    let script = script(BOUNDARY, "echo hello", 5).expect("no NUL");
    assert!(!script.contains(&format!("BEGIN-{BOUNDARY}")) && !script.contains(&format!("END-{BOUNDARY}")));
}

#[test]
fn a_program_with_a_nul_byte_has_no_script() {
    assert_eq!(script(BOUNDARY, "a\0b", 5), None);
}

#[test]
fn the_remote_deadline_is_rounded_up_to_at_least_a_second() {
    for (millis, seconds) in [(0, 1), (1, 1), (1000, 1), (1001, 2), (60_000, 60)] {
        assert_eq!(remote_seconds(Duration::from_millis(millis)), seconds);
    }
    assert_eq!(remote_seconds(Duration::MAX), LONGEST_DEADLINE);
}

fn run(program: &str, seconds: u64) -> (Vec<u8>, Ending, Vec<u8>) {
    let script = script(BOUNDARY, program, seconds).expect("no NUL");
    let done = std::process::Command::new("bash")
        .args(["--noprofile", "--norc", "-c", &script])
        .stdin(std::process::Stdio::null())
        .output()
        .expect("bash runs");
    let (stdout, ending) = read_whole(&done.stdout).expect("a framed stdout");
    let (stderr, same) = read_whole(&done.stderr).expect("a framed stderr");
    assert_eq!(ending, same);
    (stdout, ending, stderr)
}

#[test]
fn bash_runs_the_script_as_the_reader_expects() {
    assert_eq!(
        run("printf out; printf err >&2; exit 5", 5),
        (b"out".into(), Ending::Exited(5), b"err".into())
    );
    assert_eq!(run("printf \"it's\\n$((1+1))\"", 5), (b"it's\n2".into(), Ending::Exited(0), b"".into()));
}

#[test]
fn a_program_that_exits_with_124_itself_has_not_timed_out() {
    assert_eq!(run("exit 124", 5).1, Ending::Exited(124));
    assert_eq!(run("kill -9 $$", 5).1, Ending::Exited(137));
}

#[test]
fn a_program_is_stopped_at_its_deadline_and_the_ending_says_so() {
    assert_eq!(run("printf begun; sleep 30", 1), (b"begun".into(), Ending::TimedOut, b"".into()));
}

proptest! {
    #[test]
    fn pieces_of_any_size_give_the_same_answer(
        before in proptest::collection::vec(any::<u8>(), 0..80),
        body in proptest::collection::vec(any::<u8>(), 0..300),
        after in proptest::collection::vec(any::<u8>(), 0..80),
        code in 0..=255_i32,
        size in 1..50_usize,
    ) {
        let stream = framed(&before, &body, &code.to_string(), &after);
        let pieces: Vec<&[u8]> = stream.chunks(size).collect();
        prop_assert_eq!(read(&pieces, LIMIT, Excess::Refused), Ok((body, Ending::Exited(code))));
    }

    #[test]
    fn a_stream_cut_before_its_end_is_never_an_answer(
        before in proptest::collection::vec(any::<u8>(), 0..40),
        body in proptest::collection::vec(any::<u8>(), 0..100),
        code in 0..=255_i32,
        at in any::<prop::sample::Index>(),
    ) {
        let stream = framed(&before, &body, &code.to_string(), b"");
        let cut = &stream[..at.index(stream.len())];
        let error = read_whole(cut).expect_err("a cut stream was accepted");
        prop_assert!(matches!(error, FrameError::NotBegun | FrameError::NotEnded));
    }
}
