//! Which log is meant: its attempt, task, component and stream. They are in the page's address, under the API's names.

use maud::{Markup, html};

use crate::{
    ROOT,
    client::Query,
    model::{Job, Text},
};

const NAMES: [&str; 4] = ["attempt", "task", "role", "stream"];

/// A log of a job.
#[derive(Debug, Clone)]
pub(super) struct Choice(Query);

impl Choice {
    pub(super) fn of(query: &Query) -> Self {
        let given = query.only(&NAMES);
        // Places are places in one file.
        let stream = given.one("stream").filter(|stream| *stream == "err").unwrap_or("out").to_owned();
        Self(given.without("stream").with("stream", stream))
    }

    /// The task of a job with an array must be given: the first one.
    pub(super) fn for_job(self, job: &Job) -> Self {
        let first = job.details.array.as_ref().and_then(|array| {
            let digits: String = array.indices.raw().chars().take_while(char::is_ascii_digit).collect();
            digits.parse::<u32>().ok()
        });
        match first {
            Some(first) if self.0.one("task").is_none() => Self(self.0.with("task", first)),
            _ => self,
        }
    }

    pub(super) fn query(&self) -> Query {
        self.0.clone()
    }

    fn is(&self, name: &str, value: &str) -> bool {
        self.0.one(name).unwrap_or_default() == value
    }

    /// The choices that the job has.
    pub(super) fn form(&self, job: &Job) -> Markup {
        let id = &job.summary.id;
        let components: Vec<&Text> =
            job.details.services.iter().chain(&job.details.steps).map(|component| &component.name).collect();
        html! {
            form.log-choice method="get" action={ (ROOT) "/jobs/" (id) "/logs" } data-submits="" {
                label { "Stream"
                    select name="stream" {
                        option value="out" selected[self.is("stream", "out")] { "standard output" }
                        option value="err" selected[self.is("stream", "err")] { "standard error" }
                    }
                }
                @if !components.is_empty() {
                    label { "Component"
                        select name="role" {
                            option value="" { "the job itself" }
                            @for name in components { option value=(name.raw()) selected[self.is("role", name.raw())] { (name.plain()) } }
                        }
                    }
                }
                @if let Some(array) = &job.details.array {
                    label { "Task"
                        input type="number" name="task" min="0" required value=[self.0.one("task")] aria-describedby="tasks-of-job";
                    }
                    span.hint #tasks-of-job { (array.indices) }
                } @else if job.summary.attempt > 1 {
                    label { "Attempt"
                        select name="attempt" {
                            option value="" { "newest" }
                            @for number in (1..=job.summary.attempt).rev().take(200) { option value=(number) selected[self.is("attempt", &number.to_string())] { (number) } }
                        }
                    }
                }
                button { "Show" }
            }
        }
    }
}
