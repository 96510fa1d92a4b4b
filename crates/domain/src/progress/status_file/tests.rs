use super::*;

#[test]
fn an_unfinished_line_is_left_for_later() {
    let (lines, taken) = read_lines(b"{\"status\":\"RUNNING\",\"epoch\":1}\n{\"status\":\"SUCC");
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0].word, Some(StatusWord::Running));
    assert_eq!(taken, 31);
}

#[test]
fn garbage_between_lines_costs_only_itself() {
    let text = b"\xff\xfe\nnot json\n[1]\n{\"status\":\"FAILURE\"}\n";
    let (lines, taken) = read_lines(text);
    assert_eq!(lines.iter().map(|l| l.word).collect::<Vec<_>>(), [Some(StatusWord::Failure)]);
    assert_eq!(taken, text.len());
}

#[test]
fn a_loss_that_is_not_a_number_does_not_hide_the_epoch() {
    let line =
        b"{\"status\":\"RUNNING\",\"epoch\":4,\"message\":\"NaN \\\" NaN\",\"kpi\":{\"loss\":NaN,\"acc\":0.5}}\n";
    let (lines, _) = read_lines(line);
    assert_eq!(lines[0].epoch, Some(4));
    assert_eq!(lines[0].message.as_deref(), Some("NaN \" NaN"));
    assert_eq!(lines[0].metrics.keys().collect::<Vec<_>>(), ["acc"]);
}

#[test]
fn a_word_we_do_not_know_says_nothing_about_the_job() {
    let (lines, _) = read_lines(b"{\"status\":\"SKIPPED\"}\n");
    assert_eq!(lines[0].word, None);
}

#[test]
fn control_characters_reach_neither_the_database_nor_a_terminal() {
    let line =
        b"{\"status\":\"RUNNING\",\"message\":\"a\\u0000b\\u001b[31m\",\"kpi\":{\"k\\u0000\":1,\"ok\":2}}\n";
    let (lines, _) = read_lines(line);
    assert_eq!(lines[0].message.as_deref(), Some("a\u{fffd}b\u{fffd}[31m"));
    assert_eq!(lines[0].metrics.keys().collect::<Vec<_>>(), ["ok"]);
    let (_, event) = read_line(line).unwrap();
    assert!(!event.to_string().contains("\\u0000"), "{event}");
}

#[test]
fn a_line_shows_as_it_is_and_what_is_no_object_by_its_beginning() {
    let (_, event) = read_line(b"{\"status\": \"RUNNING\", \"graphical\": {\"loss\": [1, NaN]}}").unwrap();
    assert_eq!(event, json!({"status": "RUNNING", "graphical": {"loss": [1, null]}}));
    let (line, event) = read_line(b"Traceback \x1b[31m(most recent").unwrap();
    assert_eq!((line, event), (None, json!({"unreadable": "Traceback \u{fffd}[31m(most recent"})));
    assert_eq!(read_line(b" \t\r"), None);
}

#[test]
fn a_long_line_keeps_its_plain_fields() {
    let values = vec![0.5; 10_000];
    let text =
        json!({"status": "RUNNING", "epoch": 7, "message": "x".repeat(5000), "graphical": {"loss": values}});
    let (line, event) = read_line(text.to_string().as_bytes()).unwrap();
    assert_eq!(line.unwrap().epoch, Some(7));
    assert_eq!((&event["epoch"], &event["graphical"]), (&json!(7), &Value::Null));
    assert_eq!(event["truncated_from_bytes"], text.to_string().len());
    assert!(event.to_string().len() < MAX_EVENT);
}

#[test]
fn a_line_without_end_is_passed_over_up_to_its_newline() {
    let endless = vec![b'x'; MAX_LINE + 1];
    let first = cut(&endless, false);
    assert_eq!(first, Cut { lines: vec![], taken: endless.len(), skipping: true });
    assert_eq!(cut(b"xx", true), Cut { lines: vec![], taken: 2, skipping: true });
    let last = cut(b"xx\n{}\n{", true);
    assert_eq!(last, Cut { lines: vec![(0, None), (3, Some(&b"{}"[..]))], taken: 6, skipping: false });
    let whole = [endless.as_slice(), b"\n"].concat();
    assert_eq!(cut(&whole, false).lines, [(0, None)], "it is judged alike when it comes in one piece");
}

#[test]
fn the_jobs_own_clock_is_read() {
    assert_eq!(clock("1/2/1970", "0:0:5"), Some(86_405));
    for (date, time) in [
        ("13/1/2026", "1:2:3"),
        ("1/1/2026", "25:0:0"),
        ("1/1", "1:2:3"),
        ("", ""),
        ("1/1/99999999999", "1:1:1"),
    ] {
        assert_eq!(clock(date, time), None, "{date} {time}");
    }
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_read_without_panic(bytes: Vec<u8>, skipping: bool) {
        let cut = cut(&bytes, skipping);
        proptest::prop_assert!(cut.taken <= bytes.len());
        for (_, text) in &cut.lines {
            if let Some(text) = text {
                let shown = read_line(text).map(|(_, event)| event.to_string()).unwrap_or_default();
                proptest::prop_assert!(!shown.contains("\\u0000") && !shown.contains('\0'));
            }
        }
    }

    #[test]
    fn any_text_survives_the_removal_of_nan(text: String) {
        without_nan(&text);
    }

    #[test]
    fn no_line_is_cut_twice_or_lost_wherever_the_bytes_are_parted(lines: Vec<String>, at: proptest::sample::Index) {
        let text: String = lines.iter().map(|line| line.replace('\n', " ") + "\n").collect();
        let at = at.index(text.len() + 1);
        let bytes = text.as_bytes();
        let first = cut(&bytes[..at], false);
        let second = cut(&bytes[first.taken..], first.skipping);
        proptest::prop_assert_eq!(first.lines.len() + second.lines.len(), lines.len());
    }
}
