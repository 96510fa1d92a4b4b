//! Times and durations, in words.

use chrono::TimeDelta;
use maud::{Markup, html};

use crate::model::Moment;

/// A duration in its two largest units.
pub(crate) fn duration(time: TimeDelta) -> String {
    let seconds = time.num_seconds().max(0);
    let (days, hours, minutes, rest) =
        (seconds / 86400, seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{rest} s"),
        (0, 0, minutes) => format!("{minutes} min {rest} s"),
        (0, hours, minutes) => format!("{hours} h {minutes} min"),
        (days, hours, _) => format!("{days} d {hours} h"),
    }
}

/// How long ago it was. A script keeps it current.
pub(crate) fn ago(now: Moment, at: Moment) -> Markup {
    html! { time datetime=(iso(at)) title=(clock(at)) data-ago="" { (short(now - at)) " ago" } }
}

/// How long it lasts since then. A script keeps it current.
pub(crate) fn since(now: Moment, at: Moment) -> Markup {
    html! { time datetime=(iso(at)) title={ "since " (clock(at)) } data-since="" { (duration(now - at)) } }
}

/// How long until then.
pub(crate) fn until(now: Moment, at: Moment) -> Markup {
    html! { time datetime=(iso(at)) title=(clock(at)) { @if at > now { "in " (short(at - now)) } @else { "now" } } }
}

/// The time between two moments.
pub(crate) fn between(from: Moment, to: Moment) -> Markup {
    html! { span title={ (clock(from)) " to " (clock(to)) } { (duration(to - from)) } }
}

/// A moment, exactly. A script adds the visitor's own time.
pub(crate) fn clock(at: Moment) -> String {
    at.format("%Y-%m-%d %H:%M:%S UTC").to_string()
}

fn iso(at: Moment) -> String {
    at.format("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A duration in one unit.
fn short(time: TimeDelta) -> String {
    let seconds = time.num_seconds().max(0);
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86400),
    }
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test_case(-5 => "0 s"; "clocks that differ")]
    #[test_case(59 => "59 s")]
    #[test_case(60 => "1 min 0 s")]
    #[test_case(3 * 3600 + 12 * 60 + 5 => "3 h 12 min")]
    #[test_case(50 * 3600 => "2 d 2 h")]
    fn a_duration_has_two_units(seconds: i64) -> String {
        duration(TimeDelta::seconds(seconds))
    }

    #[test]
    fn the_longest_durations_do_not_panic() {
        assert!(duration(TimeDelta::MAX).contains(" d "));
        let html = ago(Moment::MAX_UTC, Moment::MIN_UTC).into_string();
        assert!(html.contains(" d ago"), "{html}");
    }
}
