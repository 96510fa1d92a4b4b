use proptest::prelude::*;
use test_case::test_case;

use super::*;

const QUEUE_22_05: &str = include_str!("../../tests/fixtures/22.05/squeue.txt");
const QUEUE_24_11: &str = include_str!("../../tests/fixtures/24.11/squeue.txt");
const SACCT_22_05: &str = include_str!("../../tests/fixtures/22.05/sacct.txt");
const SACCT_24_11: &str = include_str!("../../tests/fixtures/24.11/sacct.txt");

/// The fixtures hold the columns in which they were recorded:
/// `%i|%F|%K|%P|%j|%u|%T|%t|%r|%R|%M|%l|%D|%N|%S|%e|%E|%V`.
fn as_we_ask(recorded: &str) -> String {
    let f: Vec<&str> = recorded.split('|').collect();
    [f[1], f[6], f[4], f[17], f[14], f[15], f[3], f[13], f[8]].join("|")
}

/// `JobID,JobIDRaw,State,ExitCode,DerivedExitCode,Reason,Start,End,ElapsedRaw,NNodes,NodeList,Partition`.
fn as_we_ask_sacct(recorded: &str) -> String {
    let f: Vec<&str> = recorded.split('|').collect();
    [f[1], f[2], f[3], "wrap", f[6], f[7], f[10], f[5]].join("\u{1f}")
}

#[test_case(QUEUE_22_05; "22.05")]
#[test_case(QUEUE_24_11; "24.11")]
fn every_recorded_row_of_squeue_is_understood(recorded: &str) {
    assert!(recorded.lines().count() > 10);
    for line in recorded.lines() {
        let row = QueueRow::read(&as_we_ask(line)).unwrap_or_else(|| panic!("{line}"));
        assert!(!matches!(row.state, SlurmState::Unknown(_)), "{line}");
        assert!(row.submit.is_some(), "{line}");
        let f: Vec<&str> = line.split('|').collect();
        let never_ran = row.state.is_final() && f[13].is_empty();
        assert_eq!(row.start.is_none(), f[14] == "N/A" || never_ran, "{line}");
    }
}

#[test_case(SACCT_22_05; "22.05")]
#[test_case(SACCT_24_11; "24.11")]
fn every_recorded_row_of_sacct_is_understood(recorded: &str) {
    assert!(recorded.lines().count() > 10);
    for line in recorded.lines() {
        let row = AccountingRow::read(&as_we_ask_sacct(line)).unwrap_or_else(|| panic!("{line}"));
        assert!(!matches!(row.state, SlurmState::Unknown(_)), "{line}");
        assert!(row.exit_code.is_some(), "{line}");
    }
}

#[test]
fn a_reason_may_hold_the_delimiter_and_keeps_its_commas_and_colons() {
    let row = QueueRow::read(
        "43|PENDING|j|1700000000|N/A|N/A|polar||ReqNodeNotAvail, UnavailableNodes:node02|or so",
    )
    .unwrap();
    assert_eq!(row.reason, "ReqNodeNotAvail, UnavailableNodes:node02|or so");
    assert_eq!((row.submit, row.start, row.end), (Some(1_700_000_000), None, None));
    assert_eq!((row.partition.as_str(), row.nodes.as_str()), ("polar", ""));
}

#[test]
fn a_row_is_there_whatever_follows_its_name() {
    let row = QueueRow::read("7|RUNNING|j").unwrap();
    assert_eq!((row.name.as_str(), row.state, row.submit), ("j", SlurmState::Running, None));
    let row = QueueRow::read("7|RUNNING|j|soon|2|3|pol").unwrap();
    assert_eq!((row.submit, row.start, row.partition.as_str()), (None, Some(2), "pol"));
    let row = QueueRow::read("7||j|1|2|3|polar|n|r").unwrap();
    assert_eq!(row.state, SlurmState::Unknown(String::new()));
    let record = AccountingRow::read("7\u{1f}FAILED\u{1f}?\u{1f}j\u{1f}soon").unwrap();
    assert_eq!((record.name.as_str(), record.exit_code, record.start), ("j", None, None));
}

#[test_case(""; "empty")]
#[test_case("7|RUNNING"; "no name")]
#[test_case("x|RUNNING|j|1|2|3|polar|node01|None"; "no id")]
#[test_case("7_[1-3]|PENDING|j|1|2|3|polar|node01|None"; "an array")]
fn a_row_without_id_or_name_is_none(row: &str) {
    assert_eq!(QueueRow::read(row), None);
}

#[test_case("2026-11-20T23:07:52", Some(1_795_216_072); "a recorded time")]
#[test_case("1970-01-01T00:00:00", Some(0); "the beginning")]
#[test_case("2024-02-29T12:00:00", Some(1_709_208_000); "a leap day")]
#[test_case("2024-13-01T00:00:00", None; "a thirteenth month")]
#[test_case("2024-02-29", None; "no clock")]
fn a_time_in_words_is_utc(text: &str, expected: Option<i64>) {
    assert_eq!(time(text), expected);
}

#[test]
fn an_empty_exit_code_is_none_and_a_signal_is_kept() {
    let row =
        |code: &str| AccountingRow::read(&["7", "FAILED", code, "j", "5", "6", "n1", ""].join("\u{1f}"));
    assert_eq!(row("").unwrap().exit_code, None);
    assert_eq!(row("0:53").unwrap().exit_code, Some(ExitCode { code: 0, signal: 53 }));
    assert_eq!(row("?").unwrap().exit_code, None, "the record counts all the same");
}

proptest! {
    #[test]
    fn no_row_makes_the_readers_panic(row in any::<String>(), fields in proptest::collection::vec("\\PC{0,20}", 0..12)) {
        let _ = (QueueRow::read(&row), AccountingRow::read(&row));
        let _ = (QueueRow::read(&fields.join("|")), AccountingRow::read(&fields.join("\u{1f}")));
    }

    #[test]
    fn no_text_makes_the_time_panic(text in "[-0-9T:]{0,40}|\\PC*") {
        let _ = time(&text);
    }
}
