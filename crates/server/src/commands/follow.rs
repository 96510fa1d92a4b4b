//! Following a job or a stream of events until its end, over restarts of the service.

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use super::output::{Output, note};
use crate::client::{Answer, Client, ClientError, ServerEvent, StatusDocument, live_line};

/// How long the service waits for a change before it answers, in seconds.
const WAIT: u32 = 30;
/// The shortest time between two requests: a service that is stopping answers at once.
const MIN_INTERVAL: Duration = Duration::from_secs(1);
/// Failed requests in a row before giving up: enough for a restart of the service or a few minutes without network.
const MAX_FAILURES: u32 = 60;
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Prints the status until the job ends: on a terminal one line that changes in place, else one line for each change.
pub(super) fn status(client: &Client, id: &str, json: bool, mut output: Output) -> anyhow::Result<ExitCode> {
    let in_place = output.is_terminal && !json;
    let mut last = String::new();
    until_final(client, &format!("/jobs/{id}/status"), "the job is not affected", |answer| {
        let job: StatusDocument = answer.document()?;
        let line = job.line();
        match (json, in_place) {
            (true, _) => output.json(answer)?,
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
            output.line(&last)?;
        }
        Ok(code)
    })
}

/// Passes each state of the resource to `show` until that returns an exit code. `effect`: what a failed request means.
pub(super) fn until_final(
    client: &Client,
    resource: &str,
    effect: &str,
    mut show: impl FnMut(&Answer) -> anyhow::Result<Option<u8>>,
) -> anyhow::Result<ExitCode> {
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
        path = format!("{resource}?wait={WAIT}");
        if answer.unchanged {
            pause(MIN_INTERVAL.saturating_sub(started.elapsed()));
            continue;
        }
        if let Some(code) = show(&answer)? {
            return Ok(ExitCode::from(code));
        }
        etag = answer.etag;
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
