use chrono::DateTime;
use proptest::prelude::*;
use remote::RunNote;

use super::*;

mod skipped;

const T0: Timestamp = DateTime::UNIX_EPOCH;

/// A status file on the cluster, looked at as the poll's program does it.
#[derive(Debug, Clone)]
struct Disk {
    path: &'static str,
    inode: u64,
    bytes: Vec<u8>,
    note: Option<RunNote>,
    written_at: i64,
}

impl Disk {
    fn new(path: &'static str) -> Self {
        Self { path, inode: 1, bytes: Vec::new(), note: None, written_at: 1 }
    }

    fn say(&mut self, line: &str) {
        self.bytes.extend_from_slice(line.as_bytes());
        self.bytes.push(b'\n');
    }

    /// A run begins, and notes what it finds.
    fn begin_run(&mut self, at: i64) {
        let restart = self.note.map_or(0, |note| note.restart + 1);
        self.note = Some(RunNote { at, restart, fresh_from: self.bytes.len() as u64 });
    }

    fn look(&self, files: &StatusFiles, most: usize) -> Option<StatusChunk> {
        let known = files.cursors().into_iter().find(|cursor| cursor.path.as_str() == self.path);
        let size = self.bytes.len() as u64;
        let same = known.as_ref().is_some_and(|cursor| cursor.inode == self.inode);
        let offset = known.as_ref().map_or(0, |cursor| cursor.offset);
        let same_time = known.as_ref().is_some_and(|cursor| cursor.written_at == self.written_at);
        if (same && offset == size && same_time) || (known.is_none() && size == 0) {
            return None;
        }
        let resumed = same && size >= offset;
        let start = if resumed { usize::try_from(offset).unwrap() } else { 0 };
        let end = self.bytes.len().min(start + most);
        Some(StatusChunk {
            key: String::new(),
            path: self.path.parse().unwrap(),
            inode: self.inode,
            size,
            written_at: self.written_at,
            note: self.note,
            start_offset: start as u64,
            skipped: 0,
            before: self.bytes[start.saturating_sub(STATUS_OVERLAP)..start].to_vec(),
            bytes: self.bytes[start..end].to_vec(),
            complete: end == self.bytes.len(),
            restarted: known.is_some() && !resumed,
        })
    }
}

/// What reads it, over all its polls.
#[derive(Default)]
struct Reader {
    files: StatusFiles,
    progress: Progress,
    seen: Vec<StatusEvent>,
}

impl Reader {
    fn poll(&mut self, disk: &Disk, most: usize) {
        self.poll_all(&[disk], most, false);
    }

    fn poll_all(&mut self, disks: &[&Disk], most: usize, over: bool) {
        let reading = Reading { results: "/r", started_at: None, requeues: 0, over, now: T0 };
        let chunks: Vec<_> = disks.iter().filter_map(|disk| disk.look(&self.files, most)).collect();
        for chunk in chunks {
            self.files.take(&chunk, &mut self.progress, reading);
        }
        // As it comes back from the database.
        self.seen.extend(self.files.events().to_vec());
        self.files = serde_json::from_value(serde_json::to_value(&self.files).unwrap()).unwrap();
    }

    fn begin_run(&mut self) {
        self.files.begin_run(&self.progress, 0);
        self.progress.begin_run();
    }

    fn texts(&self) -> Vec<String> {
        self.seen.iter().map(|event| event.data["message"].as_str().unwrap_or("?").to_owned()).collect()
    }
}

fn line(message: &str) -> String {
    json!({"status": "RUNNING", "message": message}).to_string()
}

fn word(word: &str) -> String {
    json!({"status": word, "message": format!("it says {word}")}).to_string()
}

#[test]
fn each_line_is_one_event_however_it_arrives() {
    let (mut disk, mut reader) = (Disk::new("/r/train/status.json"), Reader::default());
    for number in 0..200 {
        disk.say(&line(&number.to_string()));
        disk.bytes.extend_from_slice(b"{\"half");
        reader.poll(&disk, 97);
        disk.bytes.truncate(disk.bytes.len() - 6);
    }
    for _ in 0..200 {
        reader.poll(&disk, 97);
    }
    assert_eq!(reader.texts(), (0..200).map(|number| number.to_string()).collect::<Vec<_>>());
    assert!(reader.seen.iter().all(|event| event.file == "train/status.json" && !event.earlier_run));
}

#[test]
fn a_file_that_was_cut_and_has_grown_beyond_where_we_were_is_read_anew() {
    let (mut disk, mut reader) = (Disk::new("/r/status.json"), Reader::default());
    disk.say(&line("old"));
    reader.poll(&disk, 10_000);
    disk.bytes.clear();
    disk.written_at += 1;
    for text in ["new 1", "new 2", "new 3"] {
        disk.say(&line(text));
    }
    reader.poll(&disk, 10_000);
    assert_eq!(reader.texts(), ["old"], "nothing is taken from the middle of another file");
    reader.poll(&disk, 10_000);
    assert_eq!(reader.texts(), ["old", "new 1", "new 2", "new 3"]);
}

#[test]
fn bytes_that_could_not_be_read_do_not_look_like_another_file() {
    let (mut disk, mut reader) = (Disk::new("/r/status.json"), Reader::default());
    disk.say(&line("1"));
    reader.poll(&disk, 10_000);
    disk.say(&line("2"));
    let chunk =
        StatusChunk { before: Vec::new(), bytes: Vec::new(), ..disk.look(&reader.files, 99).unwrap() };
    let reading = Reading { results: "/r", started_at: None, requeues: 0, over: false, now: T0 };
    reader.files.take(&chunk, &mut reader.progress, reading);
    reader.poll(&disk, 10_000);
    assert_eq!(reader.texts(), ["1", "2"]);
}

#[test]
fn lines_of_an_earlier_run_are_events_and_say_nothing() {
    let (mut disk, mut reader) = (Disk::new("/r/status.json"), Reader::default());
    disk.begin_run(1);
    disk.say(&line("first"));
    reader.poll(&disk, 10_000);
    disk.say(&word("FAILURE"));
    // Requeued before anybody looked; its next run has not written its note yet.
    reader.begin_run();
    reader.poll(&disk, 10_000);
    assert_eq!(
        (reader.seen.len(), reader.progress.final_status()),
        (1, None),
        "it is not known yet whose the line is"
    );
    disk.begin_run(2);
    disk.say(&word("STARTED"));
    reader.poll(&disk, 10_000);
    assert_eq!(reader.progress.final_status(), Some(StatusWord::Started));
    assert_eq!(reader.seen.iter().map(|event| event.earlier_run).collect::<Vec<_>>(), [false, true, false]);
    assert_eq!(reader.files.failure(), None);
}

#[test]
fn a_run_that_begins_the_file_anew_speaks_for_itself_whatever_was_there() {
    let (mut disk, mut reader) = (Disk::new("/r/status.json"), Reader::default());
    disk.begin_run(1);
    disk.say(&word("FAILURE"));
    reader.poll(&disk, 10_000);
    reader.begin_run();
    disk.begin_run(2);
    disk.bytes.clear();
    disk.say("{}");
    reader.poll(&disk, 10_000);
    disk.say(&word("STARTED"));
    disk.say(&word("SUCCESS"));
    reader.poll(&disk, 10_000);
    assert_eq!(reader.progress.final_status(), Some(StatusWord::Success));
}

#[test]
fn what_no_run_has_claimed_by_the_end_is_of_an_earlier_one_if_a_note_says_so() {
    let (mut disk, mut reader) = (Disk::new("/r/status.json"), Reader::default());
    disk.begin_run(1);
    disk.say(&line("first"));
    reader.poll(&disk, 10_000);
    disk.say(&word("FAILURE"));
    reader.begin_run();
    reader.poll_all(&[&disk], 10_000, true);
    assert_eq!((reader.seen.len(), reader.progress.final_status()), (2, None));
}

#[test]
fn a_new_attempt_reads_on_where_the_last_one_ended() {
    let (mut disk, mut first) = (Disk::new("/r/status.json"), Reader::default());
    disk.say(&word("FAILURE"));
    first.poll(&disk, 10_000);
    let mut second = Reader { files: first.files.inherited(), ..Reader::default() };
    second.progress.begin_run();
    disk.begin_run(5);
    disk.say(&word("STARTED"));
    second.poll(&disk, 10_000);
    assert_eq!(second.texts(), ["it says STARTED"]);
    assert_eq!(second.files.failure(), None);
}

#[test]
fn what_a_new_attempt_finds_is_its_own_though_the_clock_of_its_node_is_minutes_slow() {
    let (mut disk, mut first) = (Disk::new("/r/status.json"), Reader::default());
    disk.say(&line("first"));
    first.poll(&disk, 10_000);
    let files = first.files.inherited();
    disk.begin_run((T0 - TimeDelta::minutes(4)).timestamp_micros());
    disk.say(&word("SUCCESS"));
    let chunk = disk.look(&files, 10_000).unwrap();
    let reading = |requeues| Reading { results: "/r", started_at: Some(T0), requeues, over: false, now: T0 };
    assert!(!files.is_held_back(&chunk, 1, reading(0)));
    assert!(files.is_held_back(&chunk, 1, reading(1)), "the note is of the run before");
}

#[test]
fn as_long_as_only_the_note_of_the_run_before_is_seen_its_words_wait() {
    let (mut disk, files) = (Disk::new("/r/status.json"), StatusFiles::default());
    disk.begin_run((T0 - TimeDelta::seconds(16)).timestamp_micros());
    disk.say(&word("SUCCESS"));
    let chunk = disk.look(&files, 10_000).unwrap();
    let reading = |started_at, over| Reading { results: "/r", started_at, requeues: 1, over, now: T0 };
    assert!(files.is_held_back(&chunk, 1, reading(Some(T0), false)));
    assert!(files.is_held_back(&chunk, 1, reading(None, false)), "it waits in the queue again");
    let long_ago = Some(T0 - TimeDelta::minutes(1));
    assert!(
        !files.is_held_back(&chunk, 1, reading(long_ago, false)),
        "a note of the present run, by its time"
    );
    let mut progress = Progress::default();
    progress.begin_run();
    files.clone().take(&chunk, &mut progress, reading(Some(T0), true));
    assert_eq!(
        progress.final_status(),
        Some(StatusWord::Success),
        "no other note has come: it was miscounted"
    );
}

#[test]
fn of_several_files_each_is_read_and_a_failure_is_remembered_until_its_file_says_more() {
    let (mut one, mut other) = (Disk::new("/r/0/status.json"), Disk::new("/r/1/status.json"));
    let mut reader = Reader::default();
    one.say(&word("FAILURE"));
    other.say(&word("SUCCESS"));
    reader.poll_all(&[&one, &other], 10_000, false);
    assert_eq!(reader.progress.final_status(), Some(StatusWord::Success), "the newest word");
    one.say(&json!({"status": "FAILURE", "message": "train action failed"}).to_string());
    reader.poll_all(&[&one, &other], 10_000, false);
    assert_eq!(reader.files.failure(), Some("it says FAILURE"), "the first one has the reason");
    one.say(&word("RUNNING"));
    reader.poll_all(&[&one, &other], 10_000, false);
    assert_eq!(reader.files.failure(), None);
}

#[test]
fn a_job_that_talks_without_end_keeps_a_bounded_number_of_events_and_its_progress() {
    let (mut disk, mut reader) = (Disk::new("/r/status.json"), Reader::default());
    reader.progress.events = MAX_EVENTS - 2;
    for epoch in 0..5 {
        disk.say(&json!({"epoch": epoch, "max_epoch": 10}).to_string());
    }
    reader.poll(&disk, 10_000);
    let kinds: Vec<&str> = reader.seen.iter().map(|event| event.kind.into()).collect();
    assert_eq!(kinds, ["status", "status", "events_truncated"]);
    assert_eq!(reader.progress.epoch, Some(4));
    disk.say("{}");
    reader.poll(&disk, 10_000);
    assert_eq!(reader.seen.len(), 3, "it is said once");
}

#[test]
fn there_are_never_more_files_than_a_row_holds() {
    let mut reader = Reader::default();
    let reading = Reading { results: "/r", started_at: None, requeues: 0, over: false, now: T0 };
    for number in 0..100 {
        let mut disk = Disk::new("/r/status.json");
        disk.say(&line("x"));
        let path = format!("/r/{number}/status.json").parse().unwrap();
        let chunk = StatusChunk { path, ..disk.look(&StatusFiles::default(), 1000).unwrap() };
        reader.files.take(&chunk, &mut reader.progress, reading);
    }
    assert_eq!(reader.files.cursors().len(), STATUS_FILES);
}

#[test]
fn a_last_line_without_its_newline_is_taken_once() {
    let (mut disk, mut reader) = (Disk::new("/r/status.json"), Reader::default());
    disk.say(&line("whole"));
    disk.bytes.extend_from_slice(word("SUCCESS").as_bytes());
    let reading = Reading { results: "/r", started_at: None, requeues: 0, over: true, now: T0 };
    let chunk = disk.look(&reader.files, 10_000).unwrap();
    reader.files.take(&chunk, &mut reader.progress, reading);
    reader.files.take_rest(&chunk, &mut reader.progress, reading);
    reader.files.take_rest(&chunk, &mut reader.progress, reading);
    assert_eq!(reader.files.events().len(), 2);
    assert_eq!(reader.progress.final_status(), Some(StatusWord::Success));
    assert!(disk.look(&reader.files, 10_000).is_none());
}

/// What happens to a file between two looks.
#[derive(Debug, Clone)]
enum Act {
    Say,
    Half,
    Cut,
    Replace,
    Poll(usize),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => Just(Act::Say),
        1 => Just(Act::Half),
        1 => Just(Act::Cut),
        1 => Just(Act::Replace),
        4 => (1_usize..400).prop_map(Act::Poll),
    ]
}

proptest! {
    #[test]
    fn no_line_is_seen_twice_or_lost_while_it_stands_in_the_file(acts in proptest::collection::vec(act(), 1..60)) {
        let (mut disk, mut reader, mut number) = (Disk::new("/r/status.json"), Reader::default(), 0);
        let (mut half, mut standing) = (0, Vec::new());
        for act in acts {
            disk.written_at += i64::from(!matches!(act, Act::Poll(_)));
            // A half line is finished before anything else is written.
            match act {
                Act::Say => {
                    disk.bytes.truncate(disk.bytes.len() - half);
                    half = 0;
                    number += 1;
                    disk.say(&line(&number.to_string()));
                    standing.push(number.to_string());
                }
                Act::Half if half == 0 => {
                    disk.bytes.extend_from_slice(b"{\"status\"");
                    half = 9;
                }
                Act::Half => {}
                Act::Cut | Act::Replace => {
                    disk.bytes.clear();
                    standing.clear();
                    half = 0;
                    disk.inode += u64::from(matches!(act, Act::Replace));
                }
                Act::Poll(most) => reader.poll(&disk, most),
            }
        }
        for _ in 0..200 {
            reader.poll(&disk, 400);
        }
        let texts = reader.texts();
        let mut distinct = texts.clone();
        distinct.dedup();
        prop_assert_eq!(&distinct, &texts, "none twice");
        prop_assert!(texts.ends_with(&standing), "all that stand there, in order: {:?} {:?}", texts, standing);
    }
}
