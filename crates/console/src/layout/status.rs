//! States: a word, a picture and a colour, which all say the same.

use maud::{Markup, html};

use super::icon::{Icon, icon};
use crate::model::{TaskCounts, Text};

/// What a state means to its owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Waits,
    Runs,
    Good,
    Bad,
    Off,
    Paused,
    Unknown,
}

impl Kind {
    pub(crate) fn class(self) -> &'static str {
        match self {
            Self::Waits => "waits",
            Self::Runs => "runs",
            Self::Good => "good",
            Self::Bad => "bad",
            Self::Off => "off",
            Self::Paused => "paused",
            Self::Unknown => "unknown",
        }
    }

    fn icon(self) -> Icon {
        match self {
            Self::Waits => Icon::Clock,
            Self::Runs => Icon::Play,
            Self::Good => Icon::Check,
            Self::Bad => Icon::Cross,
            Self::Off => Icon::Dash,
            Self::Paused => Icon::Pause,
            Self::Unknown => Icon::Warning,
        }
    }
}

/// The kind of a status of a job, a task, a delivery, a cluster or a check.
pub(crate) fn kind(status: &str) -> Kind {
    match status.to_ascii_lowercase().as_str() {
        "pending" | "resuming" | "waiting" | "untried" => Kind::Waits,
        "started" | "running" => Kind::Runs,
        "active" | "done" | "ok" | "up" | "pass" | "delivered" | "closed" => Kind::Good,
        "error" | "failing" | "down" | "fail" | "dead" | "auth_required" | "auth_refused"
        | "host_key_refused" | "unavailable" | "open" | "retried" => Kind::Bad,
        "canceling" | "canceled" | "skipped" | "expired" | "revoked" => Kind::Off,
        "pausing" | "paused" => Kind::Paused,
        _ => Kind::Unknown,
    }
}

pub(crate) fn badge(status: &Text) -> Markup {
    let kind = kind(status.raw());
    html! { span class={ "badge " (kind.class()) } { (icon(kind.icon())) (status) } }
}

/// A bar with its percentage, and what it is of.
pub(crate) fn meter(percent: u8, label: &str) -> Markup {
    let percent = percent.min(100);
    html! {
        span.meter {
            progress max="100" value=(percent) aria-label=(label) {}
            span { (percent) " %" }
        }
    }
}

/// The tasks of an array by their states; states without a task are left out.
pub(crate) fn counts(counts: &TaskCounts) -> Markup {
    let states = [
        ("done", counts.done),
        ("error", counts.error),
        ("running", counts.running),
        ("pending", counts.pending),
        ("canceled", counts.canceled),
    ];
    html! {
        span.counts {
            span.hint { (counts.total) " tasks" }
            @for (state, number) in states.into_iter().filter(|(_, number)| *number > 0) {
                span class={ "count " (kind(state).class()) } { (icon(kind(state).icon())) (number) " " (state) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test_case("Running" => Kind::Runs)]
    #[test_case("done" => Kind::Good)]
    #[test_case("Canceling" => Kind::Off)]
    #[test_case("Error" => Kind::Bad)]
    #[test_case("of a later version" => Kind::Unknown)]
    fn a_status_has_a_kind(status: &str) -> Kind {
        kind(status)
    }

    #[test]
    fn a_state_is_told_by_its_word_too() {
        let badge = badge(&Text::from("Error")).into_string();
        assert!(
            badge.contains("badge bad") && badge.contains("<svg") && badge.contains(">Error<"),
            "{badge}"
        );
    }
}
