//! Pictures of 16 by 16, drawn in the colour of the text.

use maud::{Markup, html};

/// A picture. It stands beside a word, so it has no name of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Icon {
    Check,
    Clock,
    Cross,
    Dash,
    Pause,
    Play,
    Warning,
    Logo,
}

impl Icon {
    fn path(self) -> &'static str {
        match self {
            Self::Check => "M2.5 8.5l3.5 3.5 7.5-8",
            Self::Clock => "M8 1.75a6.25 6.25 0 1 0 .01 0zM8 4.5V8l2.5 1.8",
            Self::Cross => "M3.5 3.5l9 9M12.5 3.5l-9 9",
            Self::Dash => "M8 1.75a6.25 6.25 0 1 0 .01 0zM3.8 3.8l8.4 8.4",
            Self::Pause => "M5 3v10M11 3v10",
            Self::Play => "M4.5 2.8v10.4L13 8z",
            Self::Warning => "M8 2L1.5 13.5h13zM8 6.2v3.4M8 11.4v.4",
            Self::Logo => "M2 4h12M2 8h8M2 12h5M12 10.5v4M10 12.5h4",
        }
    }
}

pub(crate) fn icon(icon: Icon) -> Markup {
    html! {
        svg.icon viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" focusable="false" {
            path d=(icon.path()) {}
        }
    }
}
