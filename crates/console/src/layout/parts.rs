//! Small parts of pages.

use maud::{Markup, Render, html};
use serde_json::Value;

use super::icon::{Icon, icon};
use crate::{
    client::{Failure, Query},
    model::{Text, visible},
};

/// The most of a JSON document that a page shows.
const SHOWN: usize = 512 * 1024;

/// The part of a page that is renewed as a whole.
pub(crate) fn live(content: &Markup) -> Markup {
    html! { div #live { (content) } }
}

/// A success.
pub(crate) fn notice(text: &str) -> Markup {
    html! { p.notice { (icon(Icon::Check)) (text) } }
}

/// A failure, with each fault of a request.
pub(crate) fn problem(failure: &Failure) -> Markup {
    html! {
        section.problem role="alert" {
            h1 { (icon(Icon::Warning)) (failure.title) }
            p { (failure.detail) }
            @if !failure.errors.is_empty() {
                ul {
                    @for fault in &failure.errors {
                        li {
                            @if let Some(place) = fault.pointer.as_ref().or(fault.parameter.as_ref()).filter(|place| !place.is_empty()) {
                                code { (place) } " "
                            }
                            (fault.detail)
                        }
                    }
                }
            }
            @if let Some(id) = &failure.request_id { p.hint { "Request " code { (id) } } }
        }
    }
}

/// Names with their values; those without a value are left out.
pub(crate) fn facts<const N: usize>(facts: [(&str, Option<Markup>); N]) -> Markup {
    html! {
        dl.facts {
            @for (name, value) in facts {
                @if let Some(value) = value { div { dt { (name) } dd { (value) } } }
            }
        }
    }
}

/// A part of a subject with an address of its own.
pub(crate) struct Tab<'a> {
    pub(crate) name: &'a str,
    pub(crate) path: String,
    pub(crate) count: Option<u64>,
}

pub(crate) fn tabs(label: &str, tabs: &[Tab<'_>], current: &str) -> Markup {
    html! {
        nav.tabs aria-label=(label) {
            @for tab in tabs {
                a href=(tab.path) aria-current=[(tab.name == current).then_some("page")] {
                    (tab.name)
                    @if let Some(count) = tab.count { span.number { (count) } }
                }
            }
        }
    }
}

/// A button that sends a form, and asks first if there is a question.
pub(crate) fn button_form(path: &str, name: &str, question: Option<&str>, hidden: &[(&str, &str)]) -> Markup {
    html! {
        form method="post" action=(path) hx-post=(path) hx-target="#notice" hx-confirm=[question] hx-disabled-elt="find button" {
            @for (name, value) in hidden { input type="hidden" name=(name) value=(value); }
            button { (name) }
        }
    }
}

/// A text to copy, with a button.
pub(crate) fn copyable(id: &str, label: &str, text: &Text) -> Markup {
    html! {
        div.copyable {
            pre #(id) tabindex="0" aria-label=(label) { (text.file()) }
            button.quiet type="button" data-copy=(id) aria-label={ "Copy: " (label) } { "Copy" }
        }
    }
}

/// A JSON document, indented.
pub(crate) fn json(value: &Value) -> Markup {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    html! { pre.json tabindex="0" { (visible(&text, SHOWN)) } }
}

/// The way to further pages of a list. Lists have no way back but the browser's.
pub(crate) fn pager(path: &str, query: &Query, next: Option<&str>) -> Markup {
    let is_first = query.one("page_token").is_none();
    html! {
        @if !is_first || next.is_some() {
            nav.pager aria-label="Pages of the list" {
                @if !is_first { a href=(query.clone().without("page_token").after(path)) { "First page" } }
                @if let Some(token) = next {
                    a href=(query.clone().without("page_token").with("page_token", token).after(path)) { "Next page" }
                }
            }
        }
    }
}

/// A number of bytes.
pub(crate) fn bytes(number: u64) -> String {
    let number = u128::from(number);
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    match units.into_iter().find(|(_, shift)| number >> shift > 0) {
        Some((unit, shift)) => {
            let tenths = (number * 10) >> shift;
            format!("{}.{} {unit}", tenths / 10, tenths % 10)
        }
        None => format!("{number} B"),
    }
}

/// A number of a job, which may be anything.
pub(crate) fn number(value: &Value) -> Markup {
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() => html! { (rounded(float)) },
            _ => html! { (number) },
        },
        Value::String(text) => Text::from(text.as_str()).render(),
        Value::Null => html! { span.hint { "none" } },
        other => html! { code { (Text::new(other.to_string())) } },
    }
}

fn rounded(number: f64) -> String {
    let shortest = number.to_string();
    if shortest.len() <= 7 {
        return shortest;
    }
    if (1e-3..1e6).contains(&number.abs()) {
        let text = format!("{number:.4}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        format!("{number:.3e}")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use test_case::test_case;

    use super::*;

    #[test_case(0 => "0 B")]
    #[test_case(1023 => "1023 B")]
    #[test_case(1536 => "1.5 KiB")]
    #[test_case(u64::MAX >> 4 => "1073741823.9 GiB")]
    fn bytes_have_a_unit(number: u64) -> String {
        bytes(number)
    }

    #[test]
    fn numbers_of_jobs_are_short_and_their_texts_are_texts() {
        assert_eq!(number(&json!(0.123_456)).into_string(), "0.1235");
        assert_eq!(number(&json!(1.234_567e-9)).into_string(), "1.235e-9");
        assert_eq!(number(&json!(0.0001)).into_string(), "0.0001");
        assert_eq!(number(&json!(12)).into_string(), "12");
        assert_eq!(number(&json!("<b>")).into_string(), "<bdi>&lt;b&gt;</bdi>");
    }
}
