//! A page that lives while a hundred jobs change each second: how far it is behind, and what it costs.

use std::{
    io::{BufRead, BufReader, Write as _},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};

use crate::{
    Bench,
    browser::{Browser, timed},
    row::Row,
    service::Service,
    stats::{count, millis, percentile},
};

const CHANGES_PER_SECOND: u32 = 100;
/// The jobs that change in turn. The page has 50, and some have ended.
const SHOWN: usize = 40;
/// Each change has its number in the job's message.
const MARK: &str = "change-";

/// When each change was committed.
type Changes = thread::JoinHandle<anyhow::Result<Vec<Instant>>>;

pub(super) fn measure(
    bench: &Bench,
    service: &Service<'_>,
    browser: &Browser,
    rows: &mut Vec<Row>,
) -> anyhow::Result<()> {
    let changes = bench.size(1000, 200);
    bench.say("a page lives");
    let mut wakes = browser.wakes("/ui/wake")?;
    let before = service.usage()?;
    let began = Instant::now();
    let changing = change(service, changes)?;
    let (mut shown, mut renewals) = (Vec::new(), Vec::new());
    while shown.last().is_none_or(|(newest, _)| *newest < changes) {
        ensure!(
            began.elapsed() < Duration::from_mins(1),
            "the page does not show the newest change: {:?}",
            shown.last()
        );
        wakes.next()?;
        let (html, took) = timed(|| browser.renewal("/ui/jobs"))?;
        renewals.push(millis(took));
        shown.push((newest(&html), Instant::now()));
    }
    let lasted = began.elapsed();
    let used = service.usage()?.since(before).cpu;
    let committed = changing.join().map_err(|_| anyhow::anyhow!("the changes ended with a panic"))??;
    let seen = |number: usize| shown.iter().find(|(newest, _)| *newest >= number).map(|(_, at)| *at);
    let behind =
        (1..).zip(&committed).map(|(number, at)| Some(millis(seen(number)?.saturating_duration_since(*at))));
    let behind: Vec<f64> = behind.collect::<Option<_>>().context("a change was not shown")?;
    let per_second = count(committed.len())
        / committed.last().map_or(f64::NAN, |last| last.duration_since(began).as_secs_f64());
    rows.push(
        Row::of("from a change to its sight on a live page of jobs: p90", "ms", &behind)
            .value(percentile(&behind, 90.0))
            .at_most(1500.0)
            .note(format!(
                "p50 {:.0} ms, slowest {:.0} ms; {per_second:.0} changes/s; a page is woken at most once a second",
                percentile(&behind, 50.0),
                percentile(&behind, 100.0)
            )),
    );
    rows.push(
        Row::new("requests of that page", "1/s", count(renewals.len()) / lasted.as_secs_f64())
            .at_most(1.2)
            .note(format!("p90 {:.0} ms", percentile(&renewals, 90.0))),
    );
    rows.push(Row::new(
        "processor time of the service meanwhile",
        "ms/s",
        millis(used) / lasted.as_secs_f64(),
    ));
    Ok(())
}

/// The number of the newest change that a page shows; 0 without one.
fn newest(html: &str) -> usize {
    let numbers = html.split(MARK).skip(1).map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        rest[..end].parse().unwrap_or(0)
    });
    numbers.max().unwrap_or(0)
}

/// Changes jobs at a fixed rate, each in a transaction of its own.
fn change(service: &Service<'_>, changes: usize) -> anyhow::Result<Changes> {
    let ids = service.sql(&format!("select id from jobs where phase <> 'ended' and phase <> 'queued' order by created_at desc, id desc limit {SHOWN}"))?;
    let ids: Vec<String> = ids.lines().map(str::to_owned).collect();
    ensure!(ids.len() == SHOWN, "there are only {} jobs", ids.len());
    let mut psql = Command::new("psql");
    psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", &service.database_url()?]);
    let mut psql = psql.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut input = psql.stdin.take().context("psql has no input")?;
    let mut output = BufReader::new(psql.stdout.take().context("psql has no output")?).lines();
    Ok(thread::spawn(move || {
        let began = Instant::now();
        let mut committed = Vec::new();
        for number in 1..=changes {
            let due = began + Duration::from_secs(1) / CHANGES_PER_SECOND * u32::try_from(number)?;
            thread::sleep(due.saturating_duration_since(Instant::now()));
            writeln!(
                input,
                "update jobs set message = 'Epoch {MARK}{number} of 1000.', \
                 phase = case phase when 'running' then 'suspended' else 'running' end, \
                 status = 'Running', version = version + 1, last_modified = now() \
                 where id = '{}' returning 1;",
                ids[number % SHOWN]
            )?;
            input.flush()?;
            output.next().context("psql has ended")??;
            committed.push(Instant::now());
        }
        drop(input);
        psql.wait()?;
        Ok(committed)
    }))
}
