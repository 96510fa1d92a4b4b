//! A window of a log.

use axum::response::Response;
use maud::{Markup, PreEscaped, html};

use super::{
    choice::Choice,
    part::{Part, Place},
    search,
};
use crate::{
    ROOT,
    client::{Failure, Query},
    frame::{IdPath, Page, Visit, Wants, wakes},
    layout::{Section, bytes},
    logtext::Line,
    model::Job,
    pages::{job, jobs::title},
};

pub(crate) async fn window(visit: Visit, IdPath(id): IdPath) -> Result<Response, Failure> {
    let job = job::read(&visit, &id).await?;
    // When the page is woken, its head is renewed. The log is not read again: it comes by a stream of its own.
    let fixed = if visit.wants == Wants::Live { None } else { Some(log(&visit, &job).await?) };
    let page = Page {
        title: format!("Logs · {}", title(&job.summary).plain()),
        section: Section::Jobs,
        wakes: Some(wakes(Some(("job", &id)))),
        live: job::around(&visit, &job, "Logs", &html! {}),
        fixed,
    };
    Ok(page.answer(&visit))
}

async fn log(visit: &Visit, job: &Job) -> Result<Markup, Failure> {
    let choice = Choice::of(&visit.query).for_job(job);
    let place = Place::of(&visit.query);
    let found = search::panel(visit, job, &choice).await?;
    // The hits alone, until one is chosen.
    if place == Place::End && search::is_asked(&visit.query) {
        return Ok(html! { (choice.form(job)) (found) });
    }
    let content = match Part::read(&visit.api, &job.summary.id, &choice.query(), place).await {
        Ok(part) => shown(job, &choice, place, &part),
        Err(failure) if failure.is("no_log_yet") => waiting(job, &choice, &failure),
        Err(failure) => return Err(failure),
    };
    Ok(html! { (choice.form(job)) (found) (content) })
}

fn path(job: &Job, rest: &str) -> String {
    format!("{ROOT}/jobs/{}/logs{rest}", job.summary.id)
}

fn is_over(job: &Job) -> bool {
    job.summary.finished_on.is_some()
}

/// The log is followed from its beginning, once there is one.
fn waiting(job: &Job, choice: &Choice, failure: &Failure) -> Markup {
    html! {
        p.empty #log-note { (failure.detail) }
        @if !is_over(job) { (frame(&follow_from(job, choice, 0), &html! {})) }
    }
}

fn follow_from(job: &Job, choice: &Choice, offset: u64) -> String {
    choice.query().with("offset", offset).after(&path(job, "/follow"))
}

fn shown(job: &Job, choice: &Choice, place: Place, part: &Part) -> Markup {
    let at_end = part.end() >= part.size;
    let to = |query: Query| query.after(&path(job, ""));
    let lines = part.lines(place);
    let (whole, rest) = whole_lines(part, &lines);
    let follow = (place == Place::End && !is_over(job)).then(|| follow_from(job, choice, rest));
    html! {
        nav.log-ways aria-label="Parts of the log" {
            @if part.start > 0 {
                a href=(to(choice.query().with("offset", 0))) { "Beginning" }
                a href=(to(choice.query().with("before", part.start))) { "Earlier" }
            }
            @if !at_end { a href=(to(choice.query().with("offset", part.end()))) { "Later" } }
            @if !at_end || place != Place::End { a href=(to(choice.query())) { "End" } }
            span.hint #log-place {
                @if part.size == 0 { "The log is empty" } @else { "Bytes " (part.start) " to " (part.end()) " of " (part.size) " (" (bytes(part.size)) ")" }
                @if let Some(attempt) = part.attempt { ", attempt " (attempt) }
            }
            a href=(choice.query().with("offset", part.start).with("limit", (part.end() - part.start).max(1)).after(&path(job, "/file"))) { "As it is" }
            a href=(choice.query().after(&path(job, "/file"))) download { "Download" }
        }
        @match follow {
            // The unfinished line comes with the stream.
            Some(follow) => (frame(&follow, &whole)),
            None => (plain(&html! { (whole) @for line in lines.iter().filter(|line| line.offset >= rest) { (row(line)) } })),
        }
    }
}

/// The lines that have ended, and the place after them.
fn whole_lines(part: &Part, lines: &[Line]) -> (Markup, u64) {
    let rest = match part.bytes.iter().rposition(|byte| *byte == b'\n') {
        Some(end) => part.start + end as u64 + 1,
        None => part.start,
    };
    (html! { @for line in lines.iter().filter(|line| line.offset < rest) { (row(line)) } }, rest)
}

fn plain(lines: &Markup) -> Markup {
    html! { div.log tabindex="0" role="region" aria-label="Log" { pre #log { (lines) } } }
}

/// A log that grows.
fn frame(follow: &str, lines: &Markup) -> Markup {
    html! {
        p.follow {
            button #follow type="button" aria-pressed="true" { "Follow" }
            span #follow-state role="status" { "Connecting…" }
        }
        div.log tabindex="0" role="region" aria-label="Log" data-follow=(follow) {
            pre #log { (lines) }
            pre #partial {}
        }
    }
}

/// A line with an address of its own.
pub(super) fn row(line: &Line) -> Markup {
    let id = if line.is_marked { "hit".to_owned() } else { format!("b{}", line.offset) };
    html! {
        span.line.hit[line.is_marked] id=(id) {
            @if line.rewrites > 0 { span.again title={ "written " (line.rewrites + 1) " times; this is the last" } { "↻" (line.rewrites) " " } }
            (PreEscaped(&line.html))
            @if line.cut > 0 { span.odd { "… " (line.cut) " more bytes" } }
            "\n"
        }
    }
}
