use std::{fs::OpenOptions, os::unix::fs::PermissionsExt, time::Instant};

use proptest::prelude::*;
use remote::{LogAnswer, LogChunk, LogFrom, LogQuestion, ReadLogs, RemoteCommand};

use crate::site::Site;

fn part(site: &Site, names: &[&str], from: LogFrom, max_bytes: u64) -> LogQuestion {
    LogQuestion::Part {
        subject: remote::Subject::Cluster,
        paths: names.iter().map(|name| site.path(name)).collect(),
        from,
        max_bytes,
    }
}

fn ask(site: &Site, question: LogQuestion) -> LogAnswer {
    let mut answers = site.run(&ReadLogs { questions: vec![question] });
    assert_eq!(answers.len(), 1);
    answers.remove(0)
}

#[track_caller]
fn chunk(site: &Site, name: &str, from: LogFrom, max_bytes: u64) -> LogChunk {
    match ask(site, part(site, &[name], from, max_bytes)) {
        LogAnswer::Chunk(chunk) => chunk,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn shown(site: &Site, from: LogFrom, max_bytes: u64) -> (u64, u64, String) {
    let LogChunk { size, start, bytes, .. } = chunk(site, "log", from, max_bytes);
    (size, start, String::from_utf8(bytes).unwrap())
}

#[test]
fn the_first_path_that_exists_is_read() {
    let site = Site::new();
    site.write("b/main.out", "hello\n");
    let answer = ask(&site, part(&site, &["a/main.out", "b/main.out", "c"], LogFrom::TailLines(10), 100));
    let LogAnswer::Chunk(log) = answer else { panic!("{answer:?}") };
    assert_eq!(log.path, site.path("b/main.out"));
    for names in [&["a", "c"][..], &[], &["b"]] {
        assert_eq!(ask(&site, part(&site, names, LogFrom::TailLines(10), 100)), LogAnswer::Missing);
    }
}

#[test]
fn the_last_lines_know_where_they_begin() {
    let site = Site::new();
    site.write("log", "one\ntwo\nthree\nfour");
    assert_eq!(shown(&site, LogFrom::TailLines(2), 100), (18, 8, "three\nfour".to_owned()));
    assert_eq!(shown(&site, LogFrom::TailLines(2), 6), (18, 12, "e\nfour".to_owned()), "capped");
    assert_eq!(shown(&site, LogFrom::TailLines(0), 100), (18, 18, String::new()));
    assert_eq!(shown(&site, LogFrom::TailLines(9), 100), (18, 0, "one\ntwo\nthree\nfour".to_owned()));
}

#[test]
fn an_offset_is_read_up_to_its_limit_and_past_the_end_is_nothing() {
    let site = Site::new();
    site.write("log", "0123456789");
    assert_eq!(shown(&site, LogFrom::Offset(3), 4), (10, 3, "3456".to_owned()));
    assert_eq!(shown(&site, LogFrom::Offset(3), 400), (10, 3, "3456789".to_owned()));
    assert_eq!(shown(&site, LogFrom::Offset(10), 4), (10, 10, String::new()));
    assert_eq!(shown(&site, LogFrom::Offset(u64::MAX), u64::MAX), (10, 10, String::new()));
}

#[test]
fn an_empty_log_is_not_missing() {
    let site = Site::new();
    site.write("log", "");
    assert_eq!(shown(&site, LogFrom::TailLines(5), 100), (0, 0, String::new()));
}

#[test]
fn many_questions_are_one_command_and_each_gets_its_own_answer() {
    let site = Site::new();
    site.write("a", "alpha\n");
    site.write("policy/10.out", "x");
    site.write("policy/2.err", "y");
    site.write("policy/2.err.old", "z");
    site.write("policy/$(x).out", "z");
    let files = |name, most| LogQuestion::Files {
        subject: remote::Subject::Cluster,
        directory: site.path(name),
        most,
    };
    let questions = vec![
        part(&site, &["a"], LogFrom::Offset(2), 100),
        files("policy", 10),
        part(&site, &["b"], LogFrom::TailLines(1), 100),
        files("rollout", 10),
        files("policy", 1),
        part(&site, &["a"], LogFrom::TailLines(1), 100),
    ];
    let answers = site.run(&ReadLogs { questions });
    let bytes = |answer: &LogAnswer| match answer {
        LogAnswer::Chunk(chunk) => chunk.bytes.clone(),
        other => panic!("{other:?}"),
    };
    let names = |names: &[&str]| LogAnswer::Files(names.iter().map(|name| (*name).to_owned()).collect());
    assert_eq!((bytes(&answers[0]), bytes(&answers[5])), (b"pha\n".to_vec(), b"alpha\n".to_vec()));
    assert_eq!(answers[1], names(&["10.out", "2.err"]));
    assert_eq!(answers[2], LogAnswer::Missing);
    assert_eq!((&answers[3], &answers[4]), (&names(&[]), &names(&["10.out"])));
}

#[test]
fn a_question_that_did_not_arrive_whole_is_no_answer() {
    let site = Site::new();
    site.write("a", "alpha\n");
    let command = ReadLogs {
        questions: vec![
            part(&site, &["a"], LogFrom::TailLines(1), 9),
            part(&site, &["a"], LogFrom::TailLines(1), 9),
        ],
    };
    let whole = command.render().stdin.len();
    for length in [0, 1, 10, whole / 2, whole - 1] {
        assert!(command.parse(&site.raw_cut(&command, length)).is_err(), "{length} of {whole}");
    }
}

#[test]
fn a_replaced_file_is_another_file_and_a_link_to_it_is_not() {
    let site = Site::new();
    site.write("log", "one\n");
    site.link("log", "link");
    let first = chunk(&site, "log", LogFrom::Offset(0), 100).inode;
    site.append("log", b"two\n");
    assert_eq!(chunk(&site, "link", LogFrom::Offset(0), 100).inode, first);
    site.write("other", "new\n");
    std::fs::rename(site.file("other"), site.file("log")).unwrap();
    assert_ne!(chunk(&site, "log", LogFrom::Offset(0), 100).inode, first);
}

#[test]
fn a_log_that_may_not_be_read_says_so() {
    let site = Site::new();
    site.write("log", "one\n");
    std::fs::set_permissions(site.file("log"), std::fs::Permissions::from_mode(0o000)).unwrap();
    let answer = ask(&site, part(&site, &["log"], LogFrom::TailLines(1), 100));
    if std::fs::File::open(site.file("log")).is_err() {
        assert_eq!(answer, LogAnswer::Unreadable);
    } else {
        assert!(matches!(answer, LogAnswer::Chunk(_)), "root reads everything: {answer:?}");
    }
}

#[test]
fn a_terabyte_costs_no_more_than_the_bytes_asked_for() {
    let site = Site::new();
    site.write("log", "");
    let file = OpenOptions::new().write(true).open(site.file("log")).unwrap();
    file.set_len(1 << 40).unwrap();
    site.append("log", b"\nlast\n");
    let length = (1 << 40) + 6;
    let begun = Instant::now();
    assert_eq!(shown(&site, LogFrom::TailLines(1), 8 << 20), (length, length - 5, "last\n".to_owned()));
    // More lines than there are: the search for them ends at the cap, not at the beginning of the file.
    let many = chunk(&site, "log", LogFrom::TailLines(10_000), 1 << 20);
    assert_eq!((many.start, many.bytes.len()), (length - (1 << 20), 1 << 20));
    assert_eq!(shown(&site, LogFrom::Offset(length - 5), 100), (length, length - 5, "last\n".to_owned()));
    assert_eq!(chunk(&site, "log", LogFrom::Offset(1 << 30), 1 << 20).bytes, vec![0; 1 << 20]);
    assert!(begun.elapsed().as_secs() < 300, "{:?}", begun.elapsed());
}

#[test]
fn bytes_that_are_no_text_arrive_as_they_are() {
    let site = Site::new();
    let bytes: Vec<u8> = (0..=255).collect();
    site.write("a b'\"$(x)/log", &bytes);
    assert_eq!(chunk(&site, "a b'\"$(x)/log", LogFrom::Offset(0), 300).bytes, bytes);
}

/// What `tail -n` and a cap make of a text.
fn expected(text: &[u8], lines: usize, most: usize) -> &[u8] {
    let ends = text.iter().rposition(|byte| *byte == b'\n').filter(|at| at + 1 == text.len());
    let body = &text[..text.len() - usize::from(ends.is_some())];
    let breaks: Vec<usize> =
        body.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1).collect();
    let start = match lines {
        0 => text.len(),
        lines if breaks.len() >= lines => breaks[breaks.len() - lines],
        _ => 0,
    };
    &text[start.max(text.len().saturating_sub(most))..]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Lines of up to a few hundred bytes, so that many cases need more than one block.
    #[test]
    fn the_last_lines_are_those_of_the_whole_file(
        text in proptest::collection::vec("[a-z]{0,300}\n?", 0..900),
        lines in 0_u32..1200,
        most in 1_u64..200_000,
    ) {
        let text = text.concat().into_bytes();
        let site = Site::new();
        site.write("log", &text);
        let got = chunk(&site, "log", LogFrom::TailLines(lines), most);
        let wanted = expected(&text, lines as usize, usize::try_from(most).unwrap());
        prop_assert_eq!(got.size, text.len() as u64);
        prop_assert!(got.bytes == wanted, "{} bytes for {}", got.bytes.len(), wanted.len());
        prop_assert_eq!(got.start, (text.len() - wanted.len()) as u64);
    }

    #[test]
    fn parts_put_end_to_end_are_the_file(text in proptest::collection::vec(any::<u8>(), 0..3000), limit in 200_u64..4000) {
        let site = Site::new();
        site.write("log", &text);
        let mut read = Vec::new();
        loop {
            let next = chunk(&site, "log", LogFrom::Offset(read.len() as u64), limit);
            prop_assert_eq!(next.start, read.len() as u64);
            if next.bytes.is_empty() { break; }
            read.extend(next.bytes);
        }
        prop_assert_eq!(read, text);
    }
}
