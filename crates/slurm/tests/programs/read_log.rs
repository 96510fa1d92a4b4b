use slurm::{LogAnswer, LogChunk, LogFrom, ReadLog};

use crate::site::Site;

fn read(site: &Site, names: &[&str], from: LogFrom, max_bytes: u64) -> LogAnswer {
    site.run(&ReadLog { paths: names.iter().map(|name| site.path(name)).collect(), from, max_bytes })
}

fn chunk(site: &Site, names: &[&str], from: LogFrom, max_bytes: u64) -> (u64, u64, String) {
    match read(site, names, from, max_bytes) {
        LogAnswer::Chunk(LogChunk { size, start, bytes, .. }) => {
            (size, start, String::from_utf8(bytes).unwrap())
        }
        LogAnswer::Missing => panic!("missing"),
    }
}

#[test]
fn the_first_path_that_exists_is_read() {
    let site = Site::new();
    site.write("b/main.out", "hello\n");
    let LogAnswer::Chunk(log) = read(&site, &["a/main.out", "b/main.out", "c"], LogFrom::TailLines(10), 100)
    else {
        panic!("missing")
    };
    assert_eq!(log.path, site.path("b/main.out"));
    assert_eq!(read(&site, &["a", "c"], LogFrom::TailLines(10), 100), LogAnswer::Missing);
    assert_eq!(read(&site, &[], LogFrom::TailLines(10), 100), LogAnswer::Missing);
}

#[test]
fn the_last_lines_know_where_they_begin() {
    let site = Site::new();
    site.write("log", "one\ntwo\nthree\nfour");
    assert_eq!(chunk(&site, &["log"], LogFrom::TailLines(2), 100), (18, 8, "three\nfour".to_owned()));
    assert_eq!(chunk(&site, &["log"], LogFrom::TailLines(2), 6), (18, 12, "e\nfour".to_owned()), "capped");
    assert_eq!(chunk(&site, &["log"], LogFrom::TailLines(0), 100), (18, 18, String::new()));
}

#[test]
fn an_offset_is_read_up_to_its_limit_and_past_the_end_is_nothing() {
    let site = Site::new();
    site.write("log", "0123456789");
    let from = |offset, limit| LogFrom::Offset { offset, limit };
    assert_eq!(chunk(&site, &["log"], from(3, 4), 100), (10, 3, "3456".to_owned()));
    assert_eq!(chunk(&site, &["log"], from(3, 400), 5), (10, 3, "34567".to_owned()));
    assert_eq!(chunk(&site, &["log"], from(10, 4), 100), (10, 10, String::new()));
    assert_eq!(chunk(&site, &["log"], from(u64::MAX, u64::MAX), u64::MAX), (10, 10, String::new()));
}

#[test]
fn an_empty_log_is_not_missing() {
    let site = Site::new();
    site.write("log", "");
    assert_eq!(chunk(&site, &["log"], LogFrom::TailLines(5), 100), (0, 0, String::new()));
}

#[test]
fn the_tail_of_two_gigabytes_costs_no_more_than_its_own_bytes() {
    let site = Site::new();
    site.write("log", "");
    let file = std::fs::OpenOptions::new().write(true).open(site.file("log")).unwrap();
    file.set_len(2 << 30).unwrap();
    site.append("log", b"\nlast\n");
    let begun = std::time::Instant::now();
    let (whole, start, text) = chunk(&site, &["log"], LogFrom::TailLines(1), 65_536);
    assert_eq!((whole, start, text.as_str()), ((2 << 30) + 6, (2 << 30) + 1, "last\n"));
    assert!(begun.elapsed().as_secs() < 5);
}

#[test]
fn bytes_that_are_no_text_arrive_as_they_are() {
    let site = Site::new();
    let bytes: Vec<u8> = (0..=255).collect();
    site.write("a b'\"$(x)/log", &bytes);
    let LogAnswer::Chunk(log) =
        read(&site, &["a b'\"$(x)/log"], LogFrom::Offset { offset: 0, limit: 300 }, 300)
    else {
        panic!("missing")
    };
    assert_eq!(log.bytes, bytes);
}
