//! What is done with several jobs at once.

use axum::response::Response;
use maud::{Markup, html};

use super::{path, short_id};
use crate::{
    ROOT,
    client::{CANCEL_JOB, Failure, Query, RETRY_JOB},
    frame::{Fields, Visit, done},
};

/// The most jobs of one request.
const MOST: usize = 200;

/// The list with its actions. The buttons are of use once a job is selected.
pub(super) fn form(may_write: bool, table: &Markup) -> Markup {
    let to = format!("{ROOT}/jobs/selected");
    html! {
        form #selection method="post" action=(to) hx-post=(to) hx-target="#notice" {
            @if may_write { div.actions role="group" aria-label="Actions for the selected jobs" {
                span.hint data-picked="job" { "No job selected" }
                button name="action" value="cancel" data-needs-pick="job" data-question="Cancel the selected jobs?" { "Cancel" }
                button name="action" value="retry" data-needs-pick="job" data-question="Retry the selected jobs?" { "Retry" }
            } }
            div.scroll tabindex="0" role="region" aria-label="Jobs" { (table) }
        }
    }
}

/// Cancels or retries the selected jobs, each by a call of its own. One refusal does not stop the others.
pub(crate) async fn selected(visit: Visit, Fields(fields): Fields) -> Result<Response, Failure> {
    let (call, did) = match fields.one("action") {
        Some("cancel") => (&CANCEL_JOB, "will be canceled"),
        Some("retry") => (&RETRY_JOB, "will be submitted again"),
        _ => return Err(Failure::no_page()),
    };
    let (mut accepted, mut refused) = (0, Vec::new());
    for id in fields.all("job").take(MOST) {
        match visit.api.post(call, &[id], None).await {
            Ok(_) => accepted += 1,
            Err(failure) => refused.push(format!("{}: {}", short_id(id), failure.detail.plain())),
        }
    }
    Ok(done(&visit, &told(accepted, did, &refused), &Query::new().after(&path())))
}

fn told(accepted: usize, did: &str, refused: &[String]) -> String {
    let jobs = if accepted == 1 { "1 job".to_owned() } else { format!("{accepted} jobs") };
    match refused.first() {
        Some(first) => format!("{jobs} {did}. {} refused. {first}", refused.len()),
        None => format!("{jobs} {did}."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_notice_counts_both_and_gives_a_reason() {
        assert_eq!(told(1, "will be canceled", &[]), "1 job will be canceled.");
        let refused = ["01997a5e: The job is Done.".to_owned(), "x".to_owned()];
        assert_eq!(
            told(0, "will be canceled", &refused),
            "0 jobs will be canceled. 2 refused. 01997a5e: The job is Done."
        );
    }
}
