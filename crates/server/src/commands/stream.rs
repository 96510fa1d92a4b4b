//! Reading a stream of events to its end, taken up again wherever it stops.

use super::{
    output::remark,
    watch::{MOST_FAILURES, pause_after},
};
use crate::client::{Client, ClientError, ServerEvent};

/// Passes each event on, once, until one of them is `end` or the service says that there is nothing more.
pub(super) fn to_the_end(
    client: &Client,
    path: &str,
    mut last: Option<String>,
    mut take: impl FnMut(&ServerEvent) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let (mut failures, mut has_begun): (u32, bool) = (0, false);
    loop {
        match client.events(path, last.as_deref()) {
            Ok(None) => return Ok(()),
            Ok(Some(mut events)) => {
                (has_begun, failures) = (true, 0);
                // A stream that breaks is taken up again, like one that was ended in order.
                while let Ok(Some(event)) = events.next() {
                    take(&event)?;
                    if event.name == "end" {
                        return Ok(());
                    }
                }
                last = events.last_id().or(last);
            }
            Err(error) if !is_worth_another_try(&error, has_begun, failures) => return Err(error.into()),
            Err(error) if failures == 0 => {
                remark(&format!("\n{error}\nTrying again; nothing is lost."));
            }
            Err(_) => {}
        }
        failures += 1;
        pause_after(failures);
    }
}

/// A service that was never there is not waited for.
fn is_worth_another_try(error: &ClientError, has_begun: bool, failures: u32) -> bool {
    error.is_passing() && has_begun && failures < MOST_FAILURES
}
