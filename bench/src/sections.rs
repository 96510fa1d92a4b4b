//! The sections. A section is one file below `sections/` and one entry of [`SECTIONS`].
//!
//! To add one, write `sections/NAME.rs` with
//!
//! ```ignore
//! pub(crate) fn run(bench: &Bench, rows: &mut Vec<Row>) -> anyhow::Result<()>
//! ```
//!
//! and add it to the table. It pushes each row as soon as it is measured: if the section fails later, the pushed rows are kept,
//! and the other sections continue. What a section can use:
//!
//! - [`Bench`]: `rounds()` (5, or 2 with `--quick`) interleaved rounds A/B/A/B; `size(1000, 20)` the full or the quick
//!   size; `say("…")` progress on stderr; `sandbox`; `out`, a directory for files of the run.
//! - [`Row`]: `Row::of("figure", "unit", &samples)` is a median with its samples, `Row::new(…, value)` a single figure. Then
//!   `.against("what", &samples)` for how many times as much as the other side, `.less_than(…)` for how many times less (both
//!   the median of the rounds' own ratios), `.ratio("what", 2.0)` for any other; `.at_least(x)`, `.at_most(x)`,
//!   `.ratio_at_least(x)` the goal; `.note("…")`. The goals are those of `docs/performance.md`; no other figures are in the code.
//! - [`Service`](crate::service::Service): `Service::start(bench, &Plan { roles, settings, env })` starts the shipped program on
//!   the sandbox with its own database; `prepare` then `launch` to fill the database first. `http.get/post/submit`,
//!   `usage()` (CPU time, memory, peak memory), `ready_after`, `stop()` and `launch()` again, `sql("…")`, `database_time()`,
//!   `metric("name", "label text")`, `active()`, `cancel_all()`. Dropping it stops the service and drops its database.
//! - [`Watch`](crate::watch::Watch): a stream of server-sent events with the time each arrived. `Watch::open(&service.http,
//!   "/events?kind=transition")`, `next(within)`, `until("what", within, |event| …)`.
//! - [`Browser`](crate::browser::Browser): a visitor of the console. `Browser::log_in(&service.http)`, then `page("/ui/jobs")`,
//!   `renewal(…)` for the visible part alone, and `wakes("/ui/wake")`, the stream that wakes a page.
//! - [`load`](crate::load): `load::run(&service.http, clients, Pace::Closed | Pace::Open(per_second), lasting, &make)` with
//!   `make: Make` from a number to the bytes of `load::request(&http, "GET", path, headers, body)`; the outcome has
//!   `per_second()`, `percentile(99.0)`, `statuses`, `bytes`, `own_cpu`, and `expect(&[200])`.
//! - [`Sandbox`](crate::sandbox::Sandbox): `login("shell text")` as the user on login1 over ssh, `session()` for many commands,
//!   `admin(&["scontrol", …])` not over ssh, `ssh()` and `rpcs()` (counts of logins, remote commands and controller RPCs,
//!   `.since(before)`), `close(sandbox::BENCH_PARTITION)` (a partition whose jobs stay pending while the guard lives), `clear()`,
//!   `sql(database, …)`, `local(path)`.
//! - [`polls`](crate::polls): `plan()` a service that polls at a fixed interval, `grow(bench, &service, 1000)` pending jobs,
//!   `until(&service, "running", 50)`, `polls(bench, &service, |round| …)` the cost of its next polls.
//!   [`Allocations`](crate::allocations::Allocations): a thousand running jobs.
//! - [`stats`](crate::stats): `median`, `percentile`, `millis`, `count`, `number`, `grouped`.

mod accepting;
mod arrays;
mod console;
mod latency;
mod peers;
mod pipelines;
mod polling;
mod reading;
mod running;
mod size;
mod status_latency;
mod submission;

use crate::{Bench, row::Row};

#[derive(Debug)]
pub(crate) struct Section {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) run: fn(&Bench, &mut Vec<Row>) -> anyhow::Result<()>,
}

/// The sections, in the order in which they run.
pub(crate) const SECTIONS: &[Section] = &[
    Section { name: "submission", title: "submission rate of pending jobs", run: submission::run },
    Section { name: "latency", title: "submit latency on an idle service", run: latency::run },
    Section { name: "status-latency", title: "latency of status changes", run: status_latency::run },
    Section { name: "polling", title: "cost of a poll with pending jobs", run: polling::run },
    Section { name: "running", title: "cost of a poll with running jobs", run: running::run },
    Section { name: "arrays", title: "sweeps of many tasks", run: arrays::run },
    Section { name: "pipelines", title: "pipelines of many jobs", run: pipelines::run },
    Section { name: "reading", title: "status, lists, and event streams", run: reading::run },
    Section { name: "console", title: "the console: lists, a live page, and a large log", run: console::run },
    Section { name: "accepting", title: "rate of POST /jobs", run: accepting::run },
    Section { name: "size", title: "a long history", run: size::run },
    Section { name: "peers", title: "comparison with the TAO SDK's Slurm handler", run: peers::run },
];
