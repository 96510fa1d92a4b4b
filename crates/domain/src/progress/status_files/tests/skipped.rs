//! Status files with more unread bytes than are read.

use super::*;

#[test]
fn of_very_many_unread_bytes_only_the_end_is_read_and_the_rest_is_one_event() {
    for (before_the_end, event_count) in [("\0\0", 3), ("of a line\n", 3)] {
        let (mut disk, mut reader) = (Disk::new("/r/status.json"), Reader::default());
        disk.say(&line("first"));
        reader.poll(&disk, 10_000);
        let offset = disk.bytes.len() as u64;
        let bytes = format!("{before_the_end}{}\n", word("SUCCESS")).into_bytes();
        let size = 1 << 40;
        let start_offset = size - bytes.len() as u64;
        let chunk = StatusChunk {
            size,
            start_offset,
            skipped: start_offset - offset,
            before: vec![0; STATUS_OVERLAP],
            bytes,
            ..disk.look(&StatusFiles::default(), 99).unwrap()
        };
        let reading = Reading { results: "/r", started_at: None, requeues: 0, over: false, now: T0 };
        let unread = StatusChunk { bytes: Vec::new(), ..chunk.clone() };
        let elsewhere = StatusChunk { skipped: chunk.skipped - 1, ..chunk.clone() };
        for ignored in [unread, elsewhere] {
            reader.files.take(&ignored, &mut reader.progress, reading);
            assert_eq!(reader.files.cursors()[0].offset, offset);
        }
        reader.files.take(&chunk, &mut reader.progress, reading);
        assert_eq!(reader.files.cursors()[0].offset, size);
        let mut events = std::mem::take(&mut reader.seen);
        events.extend(reader.files.events().to_vec());
        assert_eq!(events.len(), event_count, "{events:?}");
        assert_eq!(events[1].data, json!({"skipped_bytes": start_offset - offset}));
        assert_eq!(reader.progress.final_status(), Some(StatusWord::Success));
    }
}
