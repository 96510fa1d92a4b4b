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

fn only(line: &str) -> StatusLine {
    let (mut lines, _) = read_lines(format!("{line}\n").as_bytes());
    assert_eq!(lines.len(), 1, "{line}");
    lines.remove(0)
}

#[test]
fn a_loss_that_is_not_a_number_is_null_and_does_not_hide_the_epoch() {
    let line = r#"{"status":"RUNNING","epoch":4,"message":"NaN \" NaN","eta":NaN,"kpi":{"loss":NaN,"acc":0.5,
        "lr":{"value":-Infinity},"no":null,"text":"nan"},"key_metric":NaN}"#;
    let line = only(&line.replace('\n', " "));
    assert_eq!(line.epoch, Some(4));
    assert_eq!((line.message.as_deref(), line.eta), (Some("NaN \" NaN"), None));
    assert_eq!(Value::Object(line.metrics), json!({"loss": null, "acc": 0.5, "lr": null, "text": null}));
    assert_eq!(line.key_metric, Some(Value::Null));
}

#[test]
fn a_number_is_one_however_it_is_written() {
    let line = only(
        r#"{"epoch":"2.0","max_epoch":3.0,"step":"150","max_step":450.0,"key_metric":"0.5",
            "kpi":{"val_acc":"0.94","mAP":{"value":0.9},"loss":1,"why":"no idea","table":{"car":1}},
            "graphical":{"loss":2,"lr":"1e-4"}}"#
            .replace('\n', " ")
            .as_str(),
    );
    assert_eq!((line.epoch, line.max_epoch), (Some(2), Some(3)));
    assert_eq!((line.cur_iter, line.max_iter, line.key_metric), (Some(150), Some(450), Some(json!(0.5))));
    let metrics = json!({"val_acc": 0.94, "mAP": 0.9, "loss": 1, "lr": 1e-4});
    assert_eq!(Value::Object(line.metrics), metrics, "kpi first");
    for (epoch, read) in [("2.67", Some(2)), ("-1", None), ("1e300", None), ("\"\"", None), ("[]", None)] {
        assert_eq!(only(&format!("{{\"epoch\":{epoch}}}")).epoch, read, "{epoch}");
    }
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
    let (_, event) = read_line(Text::Whole(line)).unwrap();
    assert!(!event.to_string().contains("\\u0000"), "{event}");
}

#[test]
fn a_line_shows_as_it_is_and_what_is_no_object_by_its_beginning() {
    let line = b"{\"status\": \"RUNNING\", \"graphical\": {\"loss\": [1, NaN]}}";
    let (_, event) = read_line(Text::Whole(line)).unwrap();
    assert_eq!(event, json!({"status": "RUNNING", "graphical": {"loss": [1, null]}}));
    let (line, event) = read_line(Text::Whole(b"Traceback \x1b[31m(most recent")).unwrap();
    assert_eq!((line, event), (None, json!({"unreadable": "Traceback \u{fffd}[31m(most recent"})));
    assert_eq!(read_line(Text::Whole(b" \t\r")), None);
}

#[test]
fn a_long_line_keeps_its_plain_fields() {
    let values = vec![0.5; 10_000];
    let text =
        json!({"status": "RUNNING", "epoch": 7, "message": "x".repeat(5000), "graphical": {"loss": values}});
    let (line, event) = read_line(Text::Whole(text.to_string().as_bytes())).unwrap();
    assert_eq!(line.unwrap().epoch, Some(7));
    assert_eq!((&event["epoch"], &event["graphical"]), (&json!(7), &Value::Null));
    assert_eq!(event["truncated_from_bytes"], text.to_string().len());
    assert!(event.to_string().len() < MAX_EVENT);
}

#[test]
fn a_line_without_end_is_passed_over_up_to_its_newline() {
    let endless = vec![b'x'; MAX_LINE + 1];
    let start = Text::Start(&endless[..MAX_LINE]);
    let first = cut(&endless, false);
    assert_eq!(first, Cut { lines: vec![(0, start)], taken: endless.len(), skipping: true });
    assert_eq!(cut(b"xx", true), Cut { lines: vec![], taken: 2, skipping: true });
    let last = cut(b"xx\n{}\n{", true);
    assert_eq!(last, Cut { lines: vec![(3, Text::Whole(b"{}"))], taken: 6, skipping: false });
    let whole = [endless.as_slice(), b"\n"].concat();
    assert_eq!(cut(&whole, false).lines, [(0, start)], "it is judged alike when it comes in one piece");
    assert_eq!(read_line(start), Some((None, json!({"unreadable": "a line that is too long"}))));
}

#[test]
fn of_a_line_that_is_too_long_the_fields_before_the_tables_are_read() {
    let table = vec![0.5; MAX_LINE];
    let line = format!(
        "{{\"epoch\":7.0,\"key_metric\":NaN,\"status\":\"RUNNING\",\"kpi\":{{\"loss\":0.5}},\"graphical\":{{\"pr\":{table:?}}},\"no\":1}}"
    );
    for end in ["", "\n", "\n{\"epoch\":8}\n"] {
        let bytes = format!("{line}{end}");
        let (at, text) = cut(bytes.as_bytes(), false).lines[0];
        let (line, event) = read_line(text).unwrap();
        let line = line.unwrap();
        assert_eq!((at, line.epoch, line.word), (0, Some(7), Some(StatusWord::Running)));
        assert_eq!((line.metrics.get("loss"), line.key_metric), (Some(&json!(0.5)), Some(Value::Null)));
        let shown =
            json!({"epoch": 7.0, "key_metric": null, "status": "RUNNING", "longer_than_bytes": MAX_LINE});
        assert_eq!(event, shown);
    }
    assert_eq!(cut(format!("{line}\n{{}}\n").as_bytes(), false).lines.len(), 2);
}

#[test]
fn a_hole_is_no_line_and_hides_none() {
    let after = |hole: usize, text: &str| [vec![0; hole], text.as_bytes().to_vec()].concat();
    for hole in [1, MAX_LINE + 1] {
        let bytes = after(hole, "{}\n");
        let expected = Cut { lines: vec![(hole, Text::Whole(b"{}"))], taken: hole + 3, skipping: false };
        assert_eq!(cut(&bytes, false), expected);
        assert_eq!(cut(&after(hole, "{"), false).taken, hole);
    }
    assert_eq!(cut(&after(9, ""), false).taken, 0, "the file system may not show these bytes yet");
    assert_eq!(cut(&after(MAX_LINE + 1, ""), false).taken, MAX_LINE + 1);
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
            let shown = read_line(*text).map(|(_, event)| event.to_string()).unwrap_or_default();
            proptest::prop_assert!(!shown.contains("\\u0000") && !shown.contains('\0'));
        }
    }

    #[test]
    fn any_text_survives_the_removal_of_nan(text: String) {
        without_nan(&text, |_| "null".to_owned());
        fields_of_start(&text);
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
