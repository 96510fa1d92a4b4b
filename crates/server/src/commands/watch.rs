//! Following a job: a line that changes in place for a person, one line a change for a file.

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use super::output::{Output, remark};
use crate::client::{Answer, Client, ClientError, StatusDocument, live_line};

/// How long the service may wait for a change before it says that there is none, in seconds.
const WAIT: u32 = 30;
/// It does not wait while it stops, and is not to be asked in a circle then.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How many looks in a row may fail: a restart of the service, or a few minutes of bad network.
pub(super) const MOST_FAILURES: u32 = 60;
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Follows the job until it ends; the exit code says how.
pub(super) fn to_the_end(
    client: &Client,
    id: &str,
    json: bool,
    mut output: Output,
) -> anyhow::Result<ExitCode> {
    let mut path = format!("/jobs/{id}/status");
    let in_place = output.is_terminal && !json;
    let (mut known, mut last) = (None, String::new());
    loop {
        let asked = Instant::now();
        let answer = patiently(client, &path, known.as_deref())?;
        if !answer.unchanged {
            let job: StatusDocument = client.document(&answer.body)?;
            let line = job.line();
            match (json, in_place) {
                (true, _) => output.document(&answer.body)?,
                (_, true) => output.bytes(live_line(&line, output.width()).as_bytes())?,
                // The document may change without the line doing so.
                _ if line != last => output.line(&line)?,
                _ => {}
            }
            last = line;
            if let Some(code) = job.exit_code() {
                if in_place {
                    // The last word is shown whole, and stays.
                    output.bytes(b"\r\x1b[2K")?;
                    output.line(&last)?;
                }
                return Ok(ExitCode::from(code));
            }
            known = answer.etag;
        } else if asked.elapsed() < LOOK_EVERY {
            pause(LOOK_EVERY);
        }
        path = format!("/jobs/{id}/status?wait={WAIT}");
    }
}

/// Asks again while the service is away for a moment.
fn patiently(client: &Client, path: &str, known: Option<&str>) -> Result<Answer, ClientError> {
    let mut failures = 0;
    loop {
        match client.get(path, known) {
            Ok(answer) => return Ok(answer),
            // A service that was never there is not waited for.
            Err(error) if !error.is_passing() || known.is_none() || failures == MOST_FAILURES => {
                return Err(error);
            }
            Err(error) => {
                if failures == 0 {
                    remark(&format!("\n{error}\nTrying again; the job is not affected."));
                }
                failures += 1;
                pause_after(failures);
            }
        }
    }
}

/// Waits longer after each failure in a row.
pub(super) fn pause_after(failures: u32) {
    pause((LOOK_EVERY * failures).min(LONGEST_PAUSE));
}

#[expect(clippy::disallowed_methods, reason = "the client is one thread with nothing else to do")]
fn pause(time: Duration) {
    std::thread::sleep(time);
}
