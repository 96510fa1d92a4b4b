//! What is measured. A section is one file below `sections/` and one line of [`SECTIONS`].
//!
//! To add one: write `sections/NAME.rs` with
//!
//! ```ignore
//! pub(crate) fn run(bench: &Bench, rows: &mut Vec<Row>) -> anyhow::Result<()>
//! ```
//!
//! and put it into the table. It pushes each row as soon as it is measured: what was pushed is kept if the section fails
//! later, and the other sections go on. What there is to work with:
//!
//! - [`Bench`]: `rounds()` (5, at `--quick` 2) interleaved rounds A/B/A/B; `size(1000, 20)` the full or the quick
//!   size; `say("…")` progress on standard error; `sandbox`; `out`, a directory for files of the run.
//! - [`Row`]: `Row::of("figure", "unit", &samples)` is a median with its samples, `Row::new(…, value)` a single figure. Then
//!   `.against("what", &samples)` for how many times as much as the other side, `.less_than(…)` for how many times less (both
//!   the median of the rounds' own ratios), `.ratio("what", 2.0)` for any other; `.at_least(x)`, `.at_most(x)`,
//!   `.ratio_at_least(x)` the goal; `.note("…")`. Goals are those of `docs/performance.md`, and the only figures written in code.
//! - [`Service`](crate::service::Service): `Service::start(bench, &Plan { roles, settings, env })` starts the shipped program on
//!   the sandbox with a database of its own, or `prepare` then `launch` to fill the database first. `http.get/post/submit`,
//!   `usage()` (processor time, memory, its peak), `ready_after`, `stop()` and `launch()` again, `sql("…")`, `database_time()`,
//!   `metric("name", "label text")`, `active()`, `cancel_all()`. Stopped, and its database dropped, when it is dropped.
//! - [`Watch`](crate::watch::Watch): a stream of server-sent events with the time each arrived. `Watch::open(&service.http,
//!   "/events?kind=transition")`, `next(within)`, `until("what", within, |event| …)`.
//! - [`load`](crate::load): `load::run(&service.http, clients, Pace::Closed | Pace::Open(per_second), lasting, &make)` with
//!   `make: Make` from a number to the bytes of `load::request(&http, "GET", path, headers, body)`; the outcome has
//!   `per_second()`, `percentile(99.0)`, `statuses`, `bytes`, `own_cpu`, and `expect(&[200])`.
//! - [`Sandbox`](crate::sandbox::Sandbox): `login("shell text")` as the user on login1 over ssh, `session()` for many, `admin(&["scontrol", …])` beside
//!   it, `ssh()` and `rpcs()` (what logins, remote commands and calls of the controller there were, `.since(before)`),
//!   `close(sandbox::ROOM)` (a partition whose jobs stay pending while the guard lives), `clear()`, `sql(database, …)`, `seen(path)`.
//! - [`polls`](crate::polls): `plan()` a service that polls at one pace, `grow(bench, &service, 1000)` jobs that wait, `until(&service, "running",
//!   50)`, `polls(bench, &service, |round| …)` what its next polls cost. [`Allocations`](crate::allocations::Allocations): a thousand jobs
//!   that run.
//! - [`stats`](crate::stats): `median`, `percentile`, `millis`, `count`, `number`.

mod accepting;
mod latency;
mod observations;
mod peers;
mod polling;
mod reading;
mod running;
mod size;
mod submission;

use crate::{Bench, row::Row};

#[derive(Debug)]
pub(crate) struct Section {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) run: fn(&Bench, &mut Vec<Row>) -> anyhow::Result<()>,
}

/// In the order in which they run.
pub(crate) const SECTIONS: &[Section] = &[
    Section {
        name: "submission",
        title: "jobs that stay in the queue, many at a time",
        run: submission::run,
    },
    Section { name: "latency", title: "one job at a time on an idle service", run: latency::run },
    Section { name: "observations", title: "when a start and an end are seen", run: observations::run },
    Section { name: "polling", title: "one look at the cluster", run: polling::run },
    Section { name: "running", title: "one look at jobs that run", run: running::run },
    Section { name: "reading", title: "status and lists, and many who watch", run: reading::run },
    Section { name: "accepting", title: "jobs that are handed in", run: accepting::run },
    Section { name: "size", title: "a long history", run: size::run },
    Section { name: "peers", title: "the same jobs by the TAO SDK's Slurm handler", run: peers::run },
];
