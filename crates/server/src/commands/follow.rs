//! Following a job or a stream of events until its end, over restarts of the service.

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use domain::JobId;

use super::{
    failed, interrupt,
    output::{Output, note},
};
use crate::{
    cli::Format,
    client::{Answer, Client, ClientError, ServerEvent, StatusDocument, live_line},
};

/// How long the service waits for a change before it answers.
const WAIT: Duration = Duration::from_secs(30);
/// The shortest time between two requests: a service that is stopping answers at once.
const MIN_INTERVAL: Duration = Duration::from_secs(1);
/// Failed requests in a row before giving up: enough for a restart of the service or a few minutes without network.
const MAX_FAILURES: u32 = 60;
/// The same for a request that changes something: the user waits for it.
const MAX_LOST: u32 = 5;
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Prints the status until the job ends: on a terminal one line that changes in place, else one line for each change. Then why it failed.
pub(super) fn status(
    client: &Client,
    id: JobId,
    format: Format,
    mut output: Output,
) -> anyhow::Result<ExitCode> {
    interrupt::say(format!(
        "The job goes on. Come back with `tao-slurm status {id} --watch`; end it with `tao-slurm cancel {id}`."
    ));
    let in_place = output.is_terminal && !format.is_document();
    let mut last = String::new();
    until_final(client, &format!("/jobs/{id}/status"), "the job is not affected", |answer| {
        let job: StatusDocument = answer.document()?;
        let line = job.line();
        match (format.is_document(), in_place) {
            (true, _) => output.document(format, &answer.document()?)?,
            (_, true) => output.bytes(live_line(&line, output.width()).as_bytes())?,
            // The document may change while the line stays the same.
            _ if line != last => output.line(&line)?,
            _ => {}
        }
        last = line;
        let code = job.exit_code();
        if code.is_some() && in_place {
            // The final status stays on the terminal, in full.
            output.bytes(b"\r\x1b[2K")?;
            output.line(&job.colored_line())?;
        }
        if code == Some(1) && !format.is_document() {
            output.text(&failed::why(client, id))?;
        }
        Ok(code)
    })
}

/// Passes each state of the resource to `show` until that returns an exit code. `effect`: what a failed request means.
pub(super) fn until_final(
    client: &Client,
    resource: &str,
    effect: &str,
    show: impl FnMut(&Answer) -> anyhow::Result<Option<u8>>,
) -> anyhow::Result<ExitCode> {
    let code = until(client, resource, effect, None, show)?;
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

/// The same until a time; none if it is over first.
pub(super) fn until(
    client: &Client,
    resource: &str,
    effect: &str,
    end: Option<Instant>,
    mut show: impl FnMut(&Answer) -> anyhow::Result<Option<u8>>,
) -> anyhow::Result<Option<u8>> {
    let mut path = resource.to_owned();
    let (mut etag, mut failures) = (None::<String>, Failures(0));
    loop {
        let started = Instant::now();
        let answer = match client.get_changed(&path, etag.as_deref()) {
            Ok(answer) => answer,
            Err(error) => {
                failures.retry(error, etag.is_some(), effect)?;
                continue;
            }
        };
        failures = Failures(0);
        if !answer.unchanged {
            if let Some(code) = show(&answer)? {
                return Ok(Some(code));
            }
            etag = answer.etag;
        }
        let left = end.map_or(WAIT, |end| WAIT.min(end.saturating_duration_since(Instant::now())));
        if left.is_zero() {
            return Ok(None);
        }
        path = format!("{resource}?wait={}", left.as_secs().max(1));
        if answer.unchanged {
            pause(MIN_INTERVAL.saturating_sub(started.elapsed()).min(left));
        }
    }
}

/// Passes each event to `take` once, until the event `end` or until the service has no more.
pub(super) fn events(
    client: &Client,
    path: &str,
    mut take: impl FnMut(&ServerEvent) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let (mut failures, mut has_begun, mut last_id) = (Failures(0), false, None);
    loop {
        match client.events(path, last_id.as_deref()) {
            Ok(None) => return Ok(()),
            Ok(Some(mut events)) => {
                (has_begun, failures) = (true, Failures(0));
                // A stream that breaks is reopened, like one that the service has closed.
                while let Ok(Some(event)) = events.next() {
                    take(&event)?;
                    if event.name == "end" {
                        return Ok(());
                    }
                }
                last_id = events.last_id().or(last_id);
                failures.pause();
            }
            Err(error) => failures.retry(error, has_begun, "no event is lost")?,
        }
    }
}

/// Repeats a request that the service may have got although its answer is lost. The request must have an idempotency key.
pub(super) fn repeated<T>(
    effect: &str,
    request: impl Fn() -> Result<T, ClientError>,
) -> Result<T, ClientError> {
    let (mut failures, mut is_lost) = (Failures(0), false);
    loop {
        let error = match request() {
            Err(error) => error,
            answer => return answer,
        };
        // When one answer is lost, also a service that is away now may have acted.
        is_lost |= error.may_have_arrived();
        if !is_lost || failures.0 >= MAX_LOST {
            return Err(error);
        }
        failures.retry(error, true, effect)?;
    }
}

/// Failed requests in a row.
struct Failures(u32);

impl Failures {
    /// Pauses before the next try. It returns the error if there are too many, or if the service never answered.
    fn retry(&mut self, error: ClientError, has_answered: bool, effect: &str) -> Result<(), ClientError> {
        if !error.is_transient() || !has_answered || self.0 >= MAX_FAILURES {
            return Err(error);
        }
        if self.0 == 0 {
            note(&format!("\n{error}\nRetrying; {effect}."));
        }
        self.pause();
        Ok(())
    }

    /// Pauses longer after each failure.
    fn pause(&mut self) {
        self.0 += 1;
        pause((MIN_INTERVAL * self.0).min(LONGEST_PAUSE));
    }
}

#[expect(clippy::disallowed_methods, reason = "the client has one thread, with nothing else to do")]
fn pause(time: Duration) {
    std::thread::sleep(time);
}
