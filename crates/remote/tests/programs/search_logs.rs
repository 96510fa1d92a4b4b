use remote::{LogAnswer, LogFinds, LogPattern, LogQuestion, ReadLogs, RemoteCommand, SearchedLog};

use crate::site::Site;

/// A literal, in the case given.
fn text(text: &str) -> LogPattern {
    LogPattern { text: text.parse().unwrap(), is_expression: false, ignores_case: false }
}

fn expression(pattern: &str) -> LogPattern {
    LogPattern { is_expression: true, ..text(pattern) }
}

fn search(site: &Site, names: &[&str], pattern: LogPattern, from: u64, most: u32) -> ReadLogs {
    let logs = names.iter().map(|name| vec![site.path("nowhere"), site.path(name)]).collect();
    let subject = remote::Subject::Cluster;
    ReadLogs { questions: vec![LogQuestion::Search { subject, logs, pattern, from, most }] }
}

#[track_caller]
fn logs(site: &Site, command: &ReadLogs) -> Vec<SearchedLog> {
    match site.run(command).remove(0) {
        LogAnswer::Searched(logs) => logs,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn found(site: &Site, pattern: LogPattern, from: u64, most: u32) -> LogFinds {
    match logs(site, &search(site, &["log"], pattern, from, most)).remove(0) {
        SearchedLog::Read(finds) => finds,
        other => panic!("{other:?}"),
    }
}

/// Each hit: its offset, its text, checked against the file.
#[track_caller]
fn hits(site: &Site, finds: &LogFinds) -> Vec<(u64, String)> {
    let whole = std::fs::read(site.file("log")).unwrap();
    let place = |number: u64| usize::try_from(number).unwrap();
    let hit = |hit: &remote::LogHit| {
        let window = &whole[place(hit.start)..];
        assert!(window.starts_with(&hit.window) && hit.start <= hit.offset);
        let begin = place(hit.offset - hit.start);
        let end = (begin + place(hit.length)).min(hit.window.len());
        (hit.offset, String::from_utf8_lossy(&hit.window[begin..end]).into_owned())
    };
    finds.hits.iter().map(hit).collect()
}

fn owned(hits: &[(u64, &str)]) -> Vec<(u64, String)> {
    hits.iter().map(|(at, text)| (*at, (*text).to_owned())).collect()
}

#[test]
fn a_text_is_found_where_it_stands_and_an_expression_only_on_request() {
    let site = Site::new();
    site.write("log", "one a.c\ntwo abc\nthree A.C\n");
    let all = |pattern| hits(&site, &found(&site, pattern, 0, 50));
    assert_eq!(all(text("a.c")), owned(&[(4, "a.c")]));
    assert_eq!(all(expression("a.c")), owned(&[(4, "a.c"), (12, "abc")]));
    assert_eq!(all(LogPattern { ignores_case: true, ..text("a.c") }), owned(&[(4, "a.c"), (22, "A.C")]));
    assert_eq!(all(expression("^t(wo|hree) ")), owned(&[(8, "two "), (16, "three ")]));
    assert_eq!(all(text("nothing")), []);
    assert_eq!((found(&site, text("nothing"), 0, 50).to, found(&site, text("a"), 0, 50).size), (26, 26));
}

#[test]
fn a_pattern_is_never_taken_for_an_option_or_for_shell() {
    let site = Site::new();
    for hostile in [
        "-e x",
        "--help",
        "$(touch bad)",
        "`touch bad`",
        "'; touch bad; '",
        "\\",
        "*",
        "a\tb",
        " x ",
        "[",
        "%s",
    ] {
        site.write("log", format!("first\n<{hostile}>\n"));
        assert_eq!(hits(&site, &found(&site, text(hostile), 0, 5)), owned(&[(7, hostile)]), "{hostile:?}");
    }
    assert!(!site.exists("bad"));
}

#[test]
fn an_invalid_expression_says_what_is_wrong() {
    let site = Site::new();
    site.write("log", "text\n");
    for (pattern, reason) in [("(", "Unmatched"), ("[a", "Unmatched ["), ("a{2,1}", "Invalid")] {
        let answer = site.run(&search(&site, &["log"], expression(pattern), 0, 5)).remove(0);
        let LogAnswer::InvalidPattern(said) = answer else { panic!("{pattern}: {answer:?}") };
        assert!(said.contains(reason), "{pattern}: {said}");
    }
}

#[test]
fn a_search_stops_at_its_limit_and_goes_on_from_there() {
    let site = Site::new();
    let line = |number: usize| format!("line {number} has a needle\n");
    site.write("log", (0..100).map(line).collect::<String>());
    let (mut from, mut seen) = (0, Vec::new());
    loop {
        let finds = found(&site, text("needle"), from, 7);
        assert!(finds.hits.len() <= 7);
        seen.extend(finds.hits.iter().map(|hit| hit.offset));
        assert!(finds.to > from);
        from = finds.to;
        if finds.to == finds.size {
            break;
        }
        assert_eq!(finds.hits.len(), 7);
    }
    let text = site.read("log");
    let expected: Vec<u64> = text.match_indices("needle").map(|(at, _)| at as u64).collect();
    assert_eq!(seen, expected);
}

#[test]
fn matches_of_one_line_are_one_hit_unless_they_are_far_apart() {
    let site = Site::new();
    let bar = |percent: usize| format!("\rTraining {percent:3}%|{}|", "#".repeat(84));
    site.write("log", "x x x\n".to_owned() + &(0..10).map(bar).collect::<String>());
    assert_eq!(hits(&site, &found(&site, text("x"), 0, 50)), owned(&[(0, "x")]));
    let places: Vec<u64> = found(&site, text("Training"), 0, 50).hits.iter().map(|hit| hit.offset).collect();
    assert_eq!(places, [7, 207, 407, 607, 807]);
}

#[test]
fn bytes_that_are_no_text_and_long_lines_do_not_stop_the_search() {
    let site = Site::new();
    let mut log = b"\xff\xfe\0needle 1\n".to_vec();
    log.extend(b"z".repeat(1 << 20));
    log.extend(b"needle 2");
    log.extend(b"z".repeat(1 << 20));
    site.write("log", &log);
    let expected = owned(&[(3, "needle 1"), (13 + (1 << 20) - 1, "needle 2")]);
    assert_eq!(hits(&site, &found(&site, expression("needle [0-9]"), 0, 50)), expected);
}

/// The parts of a search have 8 MiB at first.
#[test]
fn a_match_across_two_parts_is_found_once() {
    let site = Site::new();
    let mut log = b"filling 15 bytes".repeat((1 << 19) + 100);
    let border = 8 << 20;
    log[border - 3..border + 3].copy_from_slice(b"needle");
    log[border + 300..border + 306].copy_from_slice(b"needle");
    site.write("log", &log);
    let finds = found(&site, text("needle"), 0, 50);
    let places = [border - 3, border + 300].map(|at| at as u64);
    assert_eq!(finds.hits.iter().map(|hit| hit.offset).collect::<Vec<_>>(), places);
    // `^` is the beginning of a line, not of a part.
    assert_eq!(found(&site, expression("^filling"), 0, 50).hits.len(), 1);
    assert_eq!(found(&site, expression("^filling"), border as u64, 50).hits.len(), 0);
}

#[test]
fn several_logs_share_one_limit_and_each_tells_how_far_it_was_searched() {
    let site = Site::new();
    site.write("main.out", "needle\nneedle\nneedle\n");
    site.write("main.err", "needle\n");
    let command = search(&site, &["main.out", "missing", "main.err"], text("needle"), 0, 2);
    let logs = logs(&site, &command);
    let SearchedLog::Read(out) = &logs[0] else { panic!("{logs:?}") };
    assert_eq!((out.hits.len(), out.to, out.size, &out.path), (2, 8, 21, &site.path("main.out")));
    assert_eq!(logs[1], SearchedLog::Missing);
    let SearchedLog::Read(err) = &logs[2] else { panic!("{logs:?}") };
    assert_eq!((err.hits.len(), err.to, err.size), (0, 0, 7));
}

#[test]
fn a_search_beside_other_questions_answers_only_its_own() {
    let site = Site::new();
    site.write("log", "one\ntwo\n");
    let part = LogQuestion::Part {
        subject: remote::Subject::Cluster,
        paths: vec![site.path("log")],
        from: remote::LogFrom::TailLines(1),
        max_bytes: 100,
    };
    let search = search(&site, &["log"], text("o"), 0, 1).questions.remove(0);
    let answers = site.run(&ReadLogs { questions: vec![part.clone(), search, part] });
    assert!(matches!(&answers[0], LogAnswer::Chunk(chunk) if chunk.bytes == b"two\n"));
    assert_eq!(answers[0], answers[2]);
    assert!(matches!(&answers[1], LogAnswer::Searched(logs) if logs.len() == 1));
}

#[test]
fn an_answer_without_one_of_its_logs_is_refused() {
    let site = Site::new();
    site.write("log", "one\n");
    let command = search(&site, &["log", "log"], text("one"), 0, 9);
    let raw = site.raw(&command);
    let lines: Vec<&str> = str::from_utf8(&raw.stdout).unwrap().lines().collect();
    assert_eq!(lines.len(), 5, "{lines:?}");
    let without = [&lines[..3], &["END 3"][..], &[""]].concat().join("\n");
    let raw = remote::RawOutput { stdout: without.into_bytes(), ..raw };
    assert!(command.parse(&raw).is_err());
}

#[test]
fn a_file_system_that_hangs_costs_some_seconds_and_says_that_nothing_was_searched() {
    let site = Site::new();
    site.write("log", "needle\n");
    site.program("dd", "exec sleep 600");
    let finds = found(&site, text("needle"), 0, 5);
    assert_eq!((finds.hits.len(), finds.to, finds.size), (0, 0, 7));
}
