//! Lines that were written again and again, such as bars of progress.

/// The text in which each line is as a terminal shows it last: what follows a carriage return is written over the line from its
/// beginning. A part with escape sequences or bytes that are no UTF-8 replaces the whole line.
pub fn last_rewrites(text: &[u8]) -> Vec<u8> {
    if !text.contains(&b'\r') {
        return text.to_vec();
    }
    let mut shown = Vec::with_capacity(text.len() / 2);
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let body = line.strip_suffix(b"\n").unwrap_or(line);
        put_last(&mut shown, body);
        shown.extend_from_slice(&line[body.len()..]);
    }
    shown
}

fn put_last(shown: &mut Vec<u8>, line: &[u8]) {
    if !line.contains(&b'\r') {
        shown.extend_from_slice(line);
        return;
    }
    let (mut screen, mut replaced): (Vec<char>, Option<&[u8]>) = (Vec::new(), None);
    for part in line.split(|byte| *byte == b'\r').filter(|part| !part.is_empty()) {
        match str::from_utf8(part).ok().filter(|text| !text.contains('\u{1b}')) {
            Some(text) => {
                if replaced.take().is_some() {
                    screen.clear();
                }
                overwrite(&mut screen, text);
            }
            None => replaced = Some(part),
        }
    }
    match replaced {
        Some(part) => shown.extend_from_slice(part),
        None => shown.extend_from_slice(screen.iter().collect::<String>().as_bytes()),
    }
}

fn overwrite(screen: &mut Vec<char>, text: &str) {
    for (place, letter) in text.chars().enumerate() {
        match screen.get_mut(place) {
            Some(old) => *old = letter,
            None => screen.push(letter),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use test_case::test_case;

    use super::*;

    #[test_case("plain\ntext" => "plain\ntext"; "nothing to do")]
    #[test_case("\r  0%|    |\r 50%|##  |\r100%|####|\nnext" => "100%|####|\nnext"; "a bar")]
    #[test_case("a\r\nb\r\n" => "a\nb\n"; "lines of another system")]
    #[test_case("Training: 49%\rTrain" => "Training: 49%"; "a shorter part leaves the rest")]
    #[test_case("é 1\rñ" => "ñ 1"; "characters, not bytes")]
    #[test_case("old text\r\u{1b}[Knew" => "\u{1b}[Knew"; "a part with escape sequences replaces the line")]
    #[test_case("\u{1b}[Kold text\rnew" => "new"; "and is replaced")]
    #[test_case("\r\r\r" => ""; "nothing was written")]
    fn a_line_is_as_it_was_last(text: &str) -> String {
        String::from_utf8(last_rewrites(text.as_bytes())).unwrap()
    }

    #[test]
    fn bytes_that_are_no_text_stay_as_they_are() {
        assert_eq!(last_rewrites(b"old text\r\xff\xfe\n"), b"\xff\xfe\n");
    }

    proptest! {
        #[test]
        fn lines_stay_and_nothing_is_rewritten_any_more(text in proptest::collection::vec(prop_oneof![Just(b'\r'), Just(b'\n'), any::<u8>()], 0..200)) {
            let shown = last_rewrites(&text);
            let lines = |text: &[u8]| text.split(|byte| *byte == b'\n').count();
            prop_assert_eq!(lines(&shown), lines(&text));
            prop_assert!(!shown.contains(&b'\r') && shown.len() <= text.len());
        }
    }
}
