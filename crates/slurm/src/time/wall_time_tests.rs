use proptest::prelude::*;
use test_case::test_case;

use super::*;

#[test_case(3.8, 228; "the usual soft timeout, just below in binary")]
#[test_case(4.0, 240; "whole")]
#[test_case(0.1, 6; "a tenth of an hour")]
#[test_case(1.1, 66; "just above in binary")]
#[test_case(0.001, 1; "a part of a minute becomes one")]
#[test_case(1.01, 61; "rounds up")]
fn hours_become_minutes(hours: f64, minutes: u32) {
    assert_eq!(WallTime::from_hours(hours).unwrap().minutes(), minutes);
}

#[test]
fn hours_that_are_no_limit_are_refused() {
    for hours in [0.0, -1.0, 1e-12, f64::NAN, f64::INFINITY, 1e30] {
        assert!(WallTime::from_hours(hours).is_err(), "{hours}");
    }
}

#[test]
fn every_tenth_of_an_hour_is_exactly_six_minutes() {
    for tenths in 1..=2_400_u32 {
        assert_eq!(WallTime::from_hours(f64::from(tenths) / 10.0).unwrap().minutes(), tenths * 6);
    }
}

#[test_case("30", 30; "minutes")]
#[test_case("30:00", 30; "minutes and seconds")]
#[test_case("30:01", 31; "seconds round up")]
#[test_case("4:00:00", 240; "as squeue prints it")]
#[test_case("1-0", 1440; "days and hours")]
#[test_case("1-02:03", 1563; "days hours minutes")]
#[test_case("365-00:00:00", 525_600; "a year")]
fn the_forms_of_sbatch_are_read(text: &str, minutes: u32) {
    assert_eq!(text.parse::<WallTime>().unwrap().minutes(), minutes);
}

#[test_case(""; "empty")]
#[test_case("0"; "zero would mean no limit")]
#[test_case("00:00:00"; "zero on the clock")]
#[test_case("1:2:3:4"; "four fields")]
#[test_case("1-"; "nothing after the days")]
#[test_case("-1"; "negative")]
#[test_case("1-2-3"; "two dashes")]
#[test_case("4h"; "a unit")]
#[test_case("UNLIMITED"; "not a limit")]
#[test_case("99999999999999999999"; "too long")]
#[test_case("9999999999-9999999999:9999999999:9999999999"; "too large")]
fn other_texts_are_refused(text: &str) {
    assert!(text.parse::<WallTime>().is_err());
}

#[test_case(228, "03:48:00"; "hours")]
#[test_case(1440, "1-00:00:00"; "a day")]
#[test_case(1, "00:01:00"; "a minute")]
fn a_limit_is_written_for_sbatch(minutes: u32, text: &str) {
    assert_eq!(WallTime::from_minutes(minutes).unwrap().to_string(), text);
}

#[test]
fn no_limit_has_two_spellings() {
    assert_eq!("UNLIMITED".parse(), Ok(TimeLimit::Unlimited));
    assert_eq!("infinite".parse(), Ok(TimeLimit::Unlimited));
    assert_eq!("1:00:00".parse(), Ok(TimeLimit::Limited(WallTime::from_minutes(60).unwrap())));
    assert!("n/a".parse::<TimeLimit>().is_err());
}

proptest! {
    #[test]
    fn every_limit_round_trips(minutes in 1..=MAX_MINUTES) {
        let time = WallTime::from_minutes(minutes).unwrap();
        prop_assert_eq!(time.to_string().parse::<WallTime>().unwrap(), time);
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "[-0-9:]{0,30}|\\PC*") {
        let _ = text.parse::<TimeLimit>();
    }
}
