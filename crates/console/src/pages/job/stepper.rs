//! The way of a job from its acceptance to its end, with the time of each part.

use maud::{Markup, html};

use crate::{
    layout::{Kind, between, clock, kind, since},
    model::{JobSummary, Moment},
};

/// A part of the way.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Step {
    name: &'static str,
    at: Option<Moment>,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Past,
    Now,
    Ahead,
    /// The job ended before it came so far.
    Never,
}

/// The steps and their states. The last one that has a time is the current one until the job has ended.
fn steps(job: &JobSummary) -> [Step; 4] {
    let ended = job.finished_on.is_some();
    let times = [Some(job.created_on), job.submitted_on, job.started_on, job.finished_on];
    let names = ["Accepted", "In Slurm's queue", "Running", "Ended"];
    let newest = times.iter().rposition(Option::is_some).unwrap_or_default();
    std::array::from_fn(|place| Step {
        name: names[place],
        at: times[place],
        state: match times[place] {
            Some(_) if place == newest && !ended => State::Now,
            Some(_) => State::Past,
            None if ended => State::Never,
            None => State::Ahead,
        },
    })
}

/// What the phase says beyond the steps.
fn phase(job: &JobSummary) -> Option<&'static str> {
    Some(match job.phase.raw() {
        "waiting" => "waits for other jobs",
        "converting_image" => "converting its image",
        "submitting" => "being submitted",
        "submit_uncertain" => "looking for a lost submission",
        "suspended" => "suspended by Slurm",
        "finishing" => "collecting exit code and logs",
        "retry_wait" => "waits for the next attempt",
        "paused" => "paused",
        _ => return None,
    })
}

pub(super) fn stepper(now: Moment, job: &JobSummary) -> Markup {
    let steps = steps(job);
    let next_time = |place: usize| steps[place + 1..].iter().find_map(|step| step.at);
    html! {
        ol.stepper aria-label="The way of the job" {
            @for (place, step) in steps.iter().enumerate() {
                @let is_end = place == steps.len() - 1;
                li class=(class(step, job, is_end)) aria-current=[(step.state == State::Now).then_some("step")] {
                    span.step { @if is_end && step.at.is_some() { (job.status) } @else { (step.name) } }
                    @if let Some(at) = step.at {
                        span.when { (clock(at)) }
                        @if let Some(next) = next_time(place) { span.lasts { (between(at, next)) } }
                        @else if step.state == State::Now { span.lasts { (since(now, at)) " so far" } }
                        @if step.state == State::Now { @if let Some(phase) = phase(job) { span.phase { (phase) } } }
                    } @else if step.state == State::Never {
                        span.when { "never" }
                    }
                }
            }
        }
    }
}

fn class(step: &Step, job: &JobSummary, is_end: bool) -> &'static str {
    match step.state {
        State::Past if is_end => match kind(job.status.raw()) {
            Kind::Good => "past good",
            Kind::Bad => "past bad",
            _ => "past off",
        },
        State::Past => "past",
        State::Now => "now",
        State::Ahead => "ahead",
        State::Never => "never",
    }
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;
    use crate::tests::summary;

    #[test_case(serde_json::json!({}) => [State::Now, State::Ahead, State::Ahead, State::Ahead]; "accepted")]
    #[test_case(serde_json::json!({"submitted_on": "2026-11-28T00:00:10Z"}) => [State::Past, State::Now, State::Ahead, State::Ahead]; "in the queue")]
    #[test_case(serde_json::json!({"finished_on": "2026-11-28T00:00:10Z"}) => [State::Past, State::Never, State::Never, State::Past]; "canceled before it was submitted")]
    #[test_case(serde_json::json!({"submitted_on": "2026-11-28T00:00:10Z", "started_on": "2026-11-28T00:00:20Z", "finished_on": "2026-11-28T00:00:30Z"}) => [State::Past; 4]; "ended")]
    fn each_step_is_past_now_or_ahead(fields: impl std::borrow::Borrow<serde_json::Value>) -> [State; 4] {
        steps(&summary(fields.borrow())).map(|step| step.state)
    }
}
