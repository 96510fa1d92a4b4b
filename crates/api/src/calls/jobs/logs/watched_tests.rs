use proptest::prelude::*;
use remote::{LogAnswer, LogChunk};

use super::*;

fn whole() -> Part {
    Part::Bytes { offset: 0, limit: u64::MAX }
}

fn job() -> JobId {
    "0f8fad5b-d9cb-469f-a165-70867728950e".parse().unwrap()
}

fn watched(query: &str, start: Part) -> Watched {
    let place = AttemptPlace {
        no: domain::AttemptNo::FIRST,
        token: "tao-job-x".parse().unwrap(),
        job_dir: "/lustre/tao".parse().unwrap(),
        slurm_id: slurm::SlurmJobId::new(7),
        index: None,
    };
    Watched::new(place, which(query), start)
}

fn which(query: &str) -> Which {
    Which::from_text(query)
}

/// A cluster with one file.
fn look(watched: &mut Watched, inode: u64, bytes: &[u8], last: bool) -> News {
    let questions = watched.questions(job(), 1 << 20, false).unwrap();
    let LogQuestion::Part { paths, from, max_bytes, .. } = &questions[0] else { panic!() };
    let start = match from {
        LogFrom::Offset(offset) => bytes.len().min(usize::try_from(*offset).unwrap()),
        LogFrom::TailLines(_) => bytes.len() / 2,
    };
    let end = bytes.len().min(start + usize::try_from(*max_bytes).unwrap());
    let chunk = LogChunk {
        path: paths[0].clone(),
        size: bytes.len() as u64,
        inode,
        start: start as u64,
        bytes: bytes[start..end].to_vec(),
    };
    watched.take(&[Arc::new(LogAnswer::Chunk(chunk))], last)
}

/// What the events say: text and bytes put together, a reset as itself.
fn said(news: &News) -> Vec<serde_json::Value> {
    news.events.iter().map(|(event, _)| serde_json::to_value(event).unwrap()).collect()
}

fn text_of(news: &News) -> String {
    said(news).iter().map(|event| event["text"].as_str().unwrap_or("<none>").to_owned()).collect()
}

#[test]
fn cached_jobs_are_not_read_again() {
    let mut out = watched("out", whole());
    assert_eq!(text_of(&look(&mut out, 1, b"one\n", false)), "one\n");
    assert_eq!(text_of(&look(&mut out, 1, b"one\ntwo", false)), "two");
    assert!(look(&mut out, 1, b"one\ntwo", false).events.is_empty());
    assert_eq!(out.cursor().to_string(), "1;main.out=7@1");
}

#[test]
fn a_tail_begins_where_the_cluster_says_and_a_late_log_at_its_beginning() {
    let mut early = watched("out", Part::Tail { lines: 1, limit: u64::MAX });
    assert_eq!(text_of(&look(&mut early, 1, b"abcd", false)), "cd");
    let mut late = watched("out", Part::Tail { lines: 1, limit: u64::MAX });
    assert!(late.take(&[Arc::new(LogAnswer::Missing)], false).events.is_empty());
    assert_eq!(text_of(&look(&mut late, 1, b"abcd", false)), "abcd");
}

#[test]
fn a_log_that_shrank_or_was_replaced_starts_again_with_a_reset() {
    let mut out = watched("out", whole());
    look(&mut out, 1, b"one two", false);
    assert!(look(&mut out, 1, b"one", false).doubtful);
    let shrunk = look(&mut out, 1, b"one", false);
    assert_eq!((said(&shrunk)[0]["reason"].as_str(), shrunk.more), (Some("truncated"), true));
    assert_eq!(text_of(&look(&mut out, 1, b"one", false)), "one");
    let replaced = look(&mut out, 2, b"another", false);
    assert_eq!(said(&replaced)[0]["reason"], "replaced");
    assert_eq!(text_of(&look(&mut out, 2, b"another", false)), "another");
}

#[test]
fn an_offset_past_the_end_of_a_new_file_is_doubted_too() {
    let mut out = watched("out", Part::Bytes { offset: 100, limit: u64::MAX });
    assert!(look(&mut out, 1, b"short", false).doubtful);
    assert_eq!(said(&look(&mut out, 1, b"short", false))[0]["reason"], "truncated");
    assert_eq!(text_of(&look(&mut out, 1, b"short", false)), "short");
}

#[test]
fn half_a_character_waits_and_is_passed_on_at_the_last() {
    let mut out = watched("out", whole());
    assert_eq!(text_of(&look(&mut out, 1, b"a\xe2\x9c", false)), "a");
    assert!(look(&mut out, 1, b"a\xe2\x9c", false).events.is_empty());
    assert_eq!(said(&look(&mut out, 1, b"a\xe2\x9c", true))[0]["bytes"], "4pw=");
}

#[test]
fn tasks_that_appear_later_are_followed_from_their_beginning() {
    let mut policy = watched("policy", Part::Tail { lines: 1, limit: u64::MAX });
    let files =
        |names: &[&str]| Arc::new(LogAnswer::Files(names.iter().map(|name| (*name).to_owned()).collect()));
    assert!(matches!(&*policy.questions(job(), 100, false).unwrap(), [LogQuestion::Files { .. }]));
    assert!(policy.take(&[files(&["1.out", "0.err", "junk.out"])], false).found);
    let asked = policy.questions(job(), 100, true).unwrap();
    assert_eq!(asked.len(), 3, "two logs and the search for more: {asked:?}");
    assert_eq!(policy.questions(job(), 100, false).unwrap().len(), 2);
}

#[test]
fn followers_at_different_positions_come_to_read_the_same_bytes() {
    let asked = |offset| {
        let mut out = watched("out", whole());
        out.resume(&[("main.out".parse().unwrap(), LogPosition::new(None, offset))]);
        let questions = out.questions(job(), 100, false).unwrap();
        let LogQuestion::Part { max_bytes, .. } = questions[0] else { panic!() };
        offset + max_bytes
    };
    assert_eq!((asked(1), asked(STRIDE - 4), asked(STRIDE)), (STRIDE, STRIDE, 2 * STRIDE));
}

#[test]
fn a_character_across_the_end_of_a_stride_blocks_nothing() {
    for before in 1..=3 {
        let begin = usize::try_from(STRIDE).unwrap() - before;
        let text = [vec![b'a'; begin], "😀 and on".as_bytes().to_vec()].concat();
        let mut out = watched("out", whole());
        let mut seen = String::new();
        for _ in 0..3 {
            seen.push_str(&text_of(&look(&mut out, 1, &text, false)));
        }
        assert!(seen.as_bytes() == text, "{before}: {} of {}", seen.len(), text.len());
    }
}

proptest! {
    /// Looks at a growing file at any moments, stopping and going on from the cursor at any of them.
    #[test]
    fn no_byte_is_lost_or_doubled(
        text in proptest::collection::vec(any::<u8>(), 0..400),
        looks in proptest::collection::vec((0_usize..80, any::<bool>()), 1..20),
    ) {
        let (mut seen, mut end) = (Vec::new(), 0);
        let mut out = watched("out", whole());
        let mut cursor: Option<String> = None;
        for (grown, interrupted) in looks.into_iter().chain([(400, false), (0, false)]) {
            end = text.len().min(end + grown);
            if interrupted && let Some(cursor) = cursor.take() {
                let cursor: Cursor = cursor.parse().unwrap();
                out = watched("out", Part::Tail { lines: 1, limit: u64::MAX });
                out.resume(&cursor.files);
            }
            let news = look(&mut out, 1, &text[..end], end == text.len());
            for (event, after) in &news.events {
                let event = serde_json::to_value(event).unwrap();
                prop_assert_eq!(event["offset"].as_u64().unwrap(), seen.len() as u64);
                match event["text"].as_str() {
                    Some(text) => seen.extend(text.bytes()),
                    None => seen.extend(base64::Engine::decode(
                        &base64::engine::general_purpose::STANDARD, event["bytes"].as_str().unwrap()).unwrap()),
                }
                prop_assert_eq!(event["next_offset"].as_u64().unwrap(), seen.len() as u64);
                cursor = Some(after.to_string());
            }
        }
        prop_assert_eq!(seen, text);
    }
}
