//! Workers that are stopped where they stand, and what their clocks make of it.

use std::time::Duration;

use tokio::time::Instant;

#[derive(Debug, Clone, Copy)]
struct Stop {
    since: Instant,
    until: Instant,
    /// Not only the process, as by SIGSTOP: a virtual machine, all of whose clocks stand still meanwhile.
    machine: bool,
}

impl Stop {
    /// How long it has lasted so far.
    fn length(&self) -> Duration {
        self.until.min(Instant::now()) - self.since
    }
}

/// The stops of one worker.
#[derive(Debug, Clone, Default)]
pub(super) struct Stops {
    open: Option<Stop>,
    /// How long its machine has been stopped, before the one that is open.
    before: Duration,
}

impl Stops {
    pub(super) fn begin(&mut self, time: Duration, machine: bool) {
        self.end();
        let since = Instant::now();
        self.open = Some(Stop { since, until: since + time, machine });
    }

    pub(super) fn end(&mut self) {
        if let Some(stop) = self.open.take().filter(|stop| stop.machine) {
            self.before += stop.length();
        }
    }

    /// Until when the worker is stopped now, if it is.
    pub(super) fn until(&mut self) -> Option<Instant> {
        let until = self.open.map(|stop| stop.until)?;
        if until > Instant::now() {
            return Some(until);
        }
        self.end();
        None
    }

    /// How long the machine has stood so far.
    pub(super) fn stood(&self) -> Duration {
        let open = self.open.filter(|stop| stop.machine).map(|stop| stop.length()).unwrap_or_default();
        self.before + open
    }
}
