//! A pipeline as a graph: each job in a column after those that it needs.

use std::collections::HashMap;

use maud::{Markup, html};

use crate::{
    ROOT,
    layout::kind,
    model::{PipelineJob, Text},
};

/// A larger pipeline is a table only.
const MOST: usize = 200;
const WIDTH: usize = 190;
const HEIGHT: usize = 44;
const GAP_ACROSS: usize = 60;
const GAP_DOWN: usize = 16;
/// The letters of a name that fit.
const LETTERS: usize = 22;

/// The place of a job: its column, and its row in it.
type Place = (usize, usize);

/// Jobs come after those that they need, so one pass finds the columns. Needs of other jobs count for nothing.
fn places(jobs: &[PipelineJob]) -> Vec<Place> {
    let mut columns: HashMap<&str, usize> = HashMap::new();
    let mut rows: Vec<usize> = Vec::new();
    let mut places = Vec::with_capacity(jobs.len());
    for job in jobs {
        let before = job.needs.iter().filter_map(|need| columns.get(need.job.as_str()));
        let column = before.max().map_or(0, |column| column + 1);
        columns.insert(&job.id, column);
        rows.resize(rows.len().max(column + 1), 0);
        places.push((column, rows[column]));
        rows[column] += 1;
    }
    places
}

fn corner((column, row): Place) -> (usize, usize) {
    (column * (WIDTH + GAP_ACROSS) + 2, row * (HEIGHT + GAP_DOWN) + 2)
}

/// A curve from the right side of one job to the left side of another.
fn curve(from: Place, to: Place) -> String {
    let ((x, y), (to_x, to_y)) = (corner(from), corner(to));
    let (x, y, to_y) = (x + WIDTH, y + HEIGHT / 2, to_y + HEIGHT / 2);
    let half = GAP_ACROSS / 2;
    format!("M{x} {y}C{} {y} {} {to_y} {to_x} {to_y}", x + half, to_x.saturating_sub(half))
}

pub(super) fn draw(jobs: &[PipelineJob]) -> Markup {
    if jobs.is_empty() || jobs.len() > MOST {
        return html! {};
    }
    let places = places(jobs);
    let by_id: HashMap<&str, Place> =
        jobs.iter().map(|job| job.id.as_str()).zip(places.iter().copied()).collect();
    let columns = places.iter().map(|(column, _)| column + 1).max().unwrap_or(1);
    let rows = places.iter().map(|(_, row)| row + 1).max().unwrap_or(1);
    let (width, height) =
        (columns * (WIDTH + GAP_ACROSS) - GAP_ACROSS + 4, rows * (HEIGHT + GAP_DOWN) - GAP_DOWN + 4);
    html! {
        div.scroll.graph tabindex="0" role="region" aria-label="Graph of the pipeline" {
            svg width=(width) height=(height) viewBox={ "0 0 " (width) " " (height) } role="group" aria-label="Jobs and what they need" {
                @for (job, place) in jobs.iter().zip(&places) {
                    @for need in &job.needs {
                        @if let Some(from) = by_id.get(need.job.as_str()) { path.need d=(curve(*from, *place)) {} }
                    }
                }
                @for (job, place) in jobs.iter().zip(&places) { (node(job, *place)) }
            }
        }
    }
}

fn node(job: &PipelineJob, place: Place) -> Markup {
    let (x, y) = corner(place);
    let status = if job.skipped { Text::from("skipped") } else { job.status.clone() };
    let name = job.name.plain();
    let short: String = name.chars().take(LETTERS).collect();
    html! {
        a href={ (ROOT) "/jobs/" (job.id) } {
            title { (name) }
            rect class=(kind(status.raw()).class()) x=(x) y=(y) width=(WIDTH) height=(HEIGHT) rx="4" {}
            text.name x=(x + 10) y=(y + 19) { (short) @if short.len() < name.len() { "…" } } " "
            text x=(x + 10) y=(y + 35) { (status.plain()) }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn job(id: &str, needs: &[&str]) -> PipelineJob {
        let needs: Vec<_> =
            needs.iter().map(|job| json!({"name": job, "job": job, "when": "succeeded"})).collect();
        let job = json!({"name": id, "id": id, "status": "Pending", "message": "", "skipped": false, "needs": needs});
        serde_json::from_value(job).unwrap()
    }

    #[test]
    fn each_job_is_in_a_column_after_those_that_it_needs() {
        let jobs = [
            job("prep", &[]),
            job("a", &["prep"]),
            job("b", &["prep", "elsewhere"]),
            job("end", &["a", "prep"]),
        ];
        assert_eq!(places(&jobs), [(0, 0), (1, 0), (1, 1), (2, 0)]);
    }

    #[test]
    fn a_name_that_is_markup_is_drawn_as_text() {
        let drawn = draw(&[job("</text><script>alert(1)</script>", &[])]).into_string();
        assert!(!drawn.contains("<script>") && drawn.contains("&lt;/text&gt;"), "{drawn}");
    }
}
