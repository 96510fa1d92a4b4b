//! Figures in rows.

use std::time::Duration;

use chrono::TimeDelta;
use maud::{Markup, html};

use super::choice::Choice;
use crate::{
    ROOT,
    layout::duration,
    model::{Bucket, Figures, Moment, Stats, Text},
};

/// A part of 1 as a percentage, rounded down: only jobs without a failure have 100 %.
pub(super) fn rate(rate: Option<f64>) -> Markup {
    html! {
        @if let Some(rate) = rate { (format!("{:.1} %", (rate * 1000.0).floor() / 10.0)) } @else { span.hint { "none ended" } }
    }
}

/// GPU hours, to a tenth.
pub(super) fn hours(hours: f64) -> String {
    format!("{hours:.1}")
}

/// A time in seconds.
pub(super) fn wait(seconds: Option<f64>) -> Markup {
    let time =
        seconds.and_then(|seconds| TimeDelta::from_std(Duration::try_from_secs_f64(seconds).ok()?).ok());
    html! { @if let Some(time) = time { (duration(time)) } @else { span.hint { "none started" } } }
}

/// The columns of figures.
fn heads() -> Markup {
    html! {
        th scope="col" { "Submitted" } th scope="col" { "Done" } th scope="col" { "Error" } th scope="col" { "Canceled" }
        th scope="col" { "Success rate" } th scope="col" { "Runs started" } th scope="col" { "Median wait" } th scope="col" { "Wait of 9 in 10" }
        th scope="col" { "GPU hours" }
    }
}

fn cells(figures: Figures) -> Markup {
    let Figures { submitted, ended, success_rate, queue_wait_seconds: waits, gpu_hours } = figures;
    html! {
        td.number { (submitted) } td.number { (ended.done) } td.number { (ended.error) } td.number { (ended.canceled) }
        td.number { (rate(success_rate)) } td.number { (waits.runs) } td.time { (wait(waits.p50)) } td.time { (wait(waits.p90)) }
        td.number { (hours(gpu_hours)) }
    }
}

/// The figures of each group, with links to those of its own.
pub(super) fn groups(choice: &Choice, stats: &Stats) -> Markup {
    let groups = stats.groups.as_deref().unwrap_or_default();
    html! {
        @if groups.is_empty() { p.empty { "No job was submitted, started or ended in this window." } } @else {
            div.scroll tabindex="0" role="region" aria-label="Groups" {
                table {
                    caption.unseen { "Figures of each group; the group with the most jobs first" }
                    thead { tr { th scope="col" { (choice.group_name()) } (heads()) } }
                    tbody {
                        @for group in groups {
                            tr {
                                th.name scope="row" {
                                    @match &group.value {
                                        None => span.hint { "none" },
                                        Some(value) => @match choice.only(value.raw()) {
                                            Some(to) => a href=(to) { (shown(value)) },
                                            None => (shown(value)),
                                        }
                                    }
                                }
                                (cells(group.figures()))
                            }
                        }
                    }
                }
            }
            @if stats.groups_truncated { p.hint { "There are more groups, with fewer jobs. The figures above are of all jobs." } }
        }
    }
}

/// A value, so that it can be seen and clicked.
fn shown(value: &Text) -> Markup {
    html! { @if value.is_empty() { "(empty)" } @else { (value) } }
}

/// The rules by which most jobs failed, with links to these jobs.
pub(super) fn failures(choice: &Choice, rules: &[(&Text, u64)]) -> Markup {
    let list = format!("{ROOT}/jobs");
    html! {
        @if rules.is_empty() { p.hint { "No job failed by a rule." } } @else {
            ul.plain {
                @for (rule, jobs) in rules {
                    li { a.facet href=(choice.failed_jobs(&list, rule.raw())) { span.value { (rule) } " " span.number { (jobs) span.unseen { " jobs" } } } }
                }
            }
        }
    }
}

/// The figures of each part of the window, the last one first, with a bar of the jobs that ended.
pub(super) fn buckets(choice: &Choice, buckets: &[Bucket]) -> Markup {
    let most = buckets.iter().map(|bucket| ended(bucket.figures())).max().unwrap_or_default().max(1);
    html! {
        div.scroll tabindex="0" role="region" aria-label={ "Jobs by " (choice.bucket()) } {
            table {
                caption.unseen { "Figures of each " (choice.bucket()) " in UTC, the last one first" }
                thead { tr { th scope="col" { (choice.bucket()) } th scope="col" { "Ended" } (heads()) } }
                tbody {
                    @for bucket in buckets.iter().rev() {
                        @let ended = ended(bucket.figures());
                        tr {
                            th.time scope="row" { (name(choice.bucket(), bucket.start)) }
                            td { span.meter { progress max=(most) value=(ended) aria-label={ (ended) " jobs ended" } {} span { (ended) } } }
                            (cells(bucket.figures()))
                        }
                    }
                }
            }
        }
    }
}

fn ended(figures: Figures) -> u64 {
    let ended = figures.ended;
    ended.done.saturating_add(ended.error).saturating_add(ended.canceled)
}

fn name(bucket: &str, start: Moment) -> String {
    let form = match bucket {
        "hour" => "%Y-%m-%d %H:%M",
        "week" => "from %Y-%m-%d",
        _ => "%Y-%m-%d",
    };
    start.format(form).to_string()
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test_case(Some(1.0) => "100.0 %")]
    #[test_case(Some(0.999_99) => "99.9 %"; "not all jobs")]
    #[test_case(Some(0.0) => "0.0 %")]
    #[test_case(None => "<span class=\"hint\">none ended</span>")]
    fn a_rate_is_rounded_down(part: Option<f64>) -> String {
        rate(part).into_string()
    }

    #[test_case(Some(62.5) => "1 min 2 s")]
    #[test_case(Some(-1.0) => "<span class=\"hint\">none started</span>"; "less than nothing")]
    #[test_case(Some(f64::MAX) => "<span class=\"hint\">none started</span>"; "too long")]
    #[test_case(Some(f64::NAN) => "<span class=\"hint\">none started</span>"; "no number")]
    fn a_wait_is_a_duration(seconds: Option<f64>) -> String {
        wait(seconds).into_string()
    }
}
