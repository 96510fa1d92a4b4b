//! The jobs that a job waits for.

use maud::{Markup, html};

use super::path;
use crate::model::Job;

/// The jobs that this one waits for, or has waited for.
pub(super) fn needs(job: &Job) -> Markup {
    html! {
        section {
            h2 { "Needs" }
            ul.plain {
                @for need in &job.details.needs {
                    li { a href=(path(&need.job, "")) { (need.name) } span.hint { " " (need.when) } }
                }
            }
        }
    }
}
