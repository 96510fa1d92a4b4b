//! Figures about jobs: how many, how they ended, and how long they waited.

mod charts;
mod choice;
mod tables;

use axum::response::Response;
use maud::{Markup, html};

use crate::{
    ROOT,
    client::{Failure, STATS},
    frame::{Page, Visit},
    layout::{Section, badge, clock, facts},
    model::Stats,
};

pub(crate) use charts::charts;
use choice::Choice;

/// The rules that the page shows.
const MOST_RULES: usize = 10;

fn path() -> String {
    format!("{ROOT}/usage")
}

/// The figures of the window and the filters in the address.
pub(crate) async fn show(visit: Visit) -> Result<Response, Failure> {
    let choice = Choice::of(&visit.query);
    let (figures, failures) = (choice.figures(visit.now), choice.failures(visit.now));
    let (stats, failures) =
        tokio::join!(visit.api.get(&STATS, &[], &figures), visit.api.get(&STATS, &[], &failures));
    let live = content(&visit, &choice, &stats?, &failures?);
    // A change of one job is not worth counting all of them again.
    let page = Page { title: "Usage".to_owned(), section: Section::Usage, wakes: None, live, fixed: None };
    Ok(page.answer(&visit))
}

fn content(visit: &Visit, choice: &Choice, stats: &Stats, failures: &Stats) -> Markup {
    html! {
        div.title-row {
            h1 { "Usage" }
            (choice.chosen())
            (choice.windows())
        }
        p.hint { "From " (clock(stats.since)) " until " (clock(stats.until)) "." }
        div.columns {
            (totals(stats))
            section {
                h2 { "Now" }
                @if stats.now.is_empty() { p.hint { "All jobs have finished." } } @else {
                    (facts_of_now(stats))
                }
            }
            section {
                h2 { "Most frequent failures" }
                (tables::failures(choice, &worst(failures)))
            }
        }
        (charts::section(choice))
        section {
            div.title-row { h2 { "Groups" } (choice.groups(visit.who.is_admin())) }
            (tables::groups(choice, stats))
        }
        section {
            h2 { "Jobs by " (choice.bucket()) }
            (tables::buckets(choice, stats.buckets.as_deref().unwrap_or_default()))
        }
    }
}

fn totals(stats: &Stats) -> Markup {
    let (totals, wait) = (stats.totals, stats.totals.queue_wait_seconds);
    html! {
        section {
            h2 { "Jobs" }
            (facts([
                ("Submitted", Some(html! { (totals.submitted) })),
                ("Done", Some(html! { (totals.ended.done) })),
                ("Error", Some(html! { (totals.ended.error) })),
                ("Canceled", Some(html! { (totals.ended.canceled) })),
                ("Success rate", Some(tables::rate(totals.success_rate))),
                ("GPU hours", Some(html! { (tables::hours(totals.gpu_hours)) })),
                ("Runs started", Some(html! { (wait.runs) })),
                ("Wait in the queue", Some(html! { (tables::wait(wait.p50)) " (median), " (tables::wait(wait.p90)) " (9 of 10)" })),
            ]))
        }
    }
}

fn facts_of_now(stats: &Stats) -> Markup {
    html! {
        dl.facts { @for count in &stats.now { div { dt { (badge(&count.status)) } dd { (count.jobs) } } } }
    }
}

/// The rules by which most jobs failed, with the number of these jobs.
fn worst(failures: &Stats) -> Vec<(&crate::model::Text, u64)> {
    let groups = failures.groups.iter().flatten();
    let rules = groups.filter_map(|group| Some((group.value.as_ref()?, group.figures().ended.error)));
    let mut rules: Vec<_> = rules.filter(|(_, jobs)| *jobs > 0).collect();
    rules.sort_by_key(|(_, jobs)| std::cmp::Reverse(*jobs));
    rules.truncate(MOST_RULES);
    rules
}
