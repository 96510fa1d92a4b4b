//! The same jobs with the alternative: the published TAO SDK, whose Slurm handler opens an SSH connection for each operation.
//! Both sides submit one job after another, wait for each Slurm id, and then query each job's status equally often. The jobs wait
//! in a partition that is down: the status of a pending job is the SDK's cheapest query.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use crate::{
    Bench,
    row::{Row, each},
    sandbox::BENCH_PARTITION,
    service::{Plan, Service},
    stats::{count, median, number},
    watch::Watch,
};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
const PARTITION: &str = BENCH_PARTITION;
const IMAGE: &str = "/lustre/images/tao-toolkit.sqsh";
/// Status queries per job.
const POLLS: usize = 3;
const TIMEOUT: Duration = Duration::from_mins(3);
const NAME: &str = "TAO SDK 7.2.0";

/// Mean seconds per job, by round.
#[derive(Debug, Default)]
struct Side {
    submit: Vec<f64>,
    ask: Vec<f64>,
}

impl Side {
    /// One submission and its status queries.
    fn whole(&self) -> Vec<f64> {
        self.submit.iter().zip(&self.ask).map(|(submit, ask)| submit + ask * count(POLLS)).collect()
    }
}

pub(crate) fn run(bench: &Bench, rows: &mut Vec<Row>) -> anyhow::Result<()> {
    let setup = Command::new(Path::new(ROOT).join("ci/setup")).arg("--peers").status()?;
    ensure!(setup.success(), "ci/setup --peers: {setup}");
    let jobs = bench.size(50, 4) / bench.rounds();
    let closed = bench.sandbox.close(PARTITION)?;

    // One login host per side, so that logins and commands are counted separately.
    let hosts: Vec<_> = bench.sandbox.var("SLURM_HOSTNAME")?.split(',').map(str::to_owned).collect();
    let [host, _] = &hosts[..] else { anyhow::bail!("the sandbox does not have two login hosts") };
    let before = bench.sandbox.ssh_by_host()?;
    let plan = Plan { env: vec![("SLURM_HOSTNAME", host.clone())], ..Plan::default() };
    let service = Service::start(bench, &plan)?;
    let watch = Watch::open(&service.http, "/events?kind=transition")?;
    let mut peer = Peer::start(bench)?;

    let (mut ours, mut theirs, mut oldest) = (Side::default(), Side::default(), Vec::new());
    for round in 0..bench.rounds() {
        bench.say(&format!("round {} of {}: {jobs} jobs per side", round + 1, bench.rounds()));
        let answer =
            peer.play(&json!({"jobs": jobs, "polls": POLLS, "image": IMAGE, "partition": PARTITION}))?;
        ensure!(
            answer["statuses"] == json!(["Pending"]),
            "the SDK's jobs are not pending: {}",
            answer["statuses"]
        );
        theirs.submit.push(mean(&answer["submit"])?);
        theirs.ask.push(mean(&answer["ask"])?);
        bench.sandbox.clear()?;
        by_the_service(&service, &watch, jobs, &mut ours, &mut oldest)?;
        service.cancel_all()?;
    }
    peer.stop()?;
    let after = bench.sandbox.ssh_by_host()?;
    let (mine, other) = (after[0].since(before[0]), after[1].since(before[1]));
    drop((service, closed));

    let total = jobs * bench.rounds();
    rows.push(
        Row::of("seconds per job: submission and status queries", "s", &ours.whole())
            .less_than(NAME, &theirs.whole())
            .ratio_at_least(10.0)
            .note(format!(
                "{total} jobs one after another, {POLLS} status queries each; {NAME}: {:.3} s. The SDK queries the cluster each \
                 time; the service polls all jobs with one command every {:.0} s here, so its answer may be that old",
                median(&theirs.whole()),
                median(&oldest)
            )),
    );
    rows.push(Row::of("seconds to submit a job", "s", &ours.submit).less_than(NAME, &theirs.submit));
    rows.push(Row::of("seconds per status query", "s", &ours.ask).less_than(NAME, &theirs.ask));
    rows.push(
        Row::new("SSH logins for all jobs", "", number(mine.logins))
            .less_than(NAME, &[number(other.logins)])
            .ratio_at_least(20.0)
            .note(format!("{total} jobs; {NAME}: {}", other.logins)),
    );
    rows.push(
        Row::new("remote commands for all jobs", "", number(mine.commands))
            .less_than(NAME, &[number(other.commands)])
            .note(format!(
                "{NAME}: {}, {:.1} per job; those of the service include polls, cancellations and the time between rounds",
                other.commands,
                each(number(other.commands), total)
            )),
    );
    Ok(())
}

/// Submits one job after another and waits for each Slurm id. Then queries each status; before each pass it waits for a poll, so
/// that no answer is repeated.
fn by_the_service(
    service: &Service<'_>,
    watch: &Watch,
    jobs: usize,
    side: &mut Side,
    oldest: &mut Vec<f64>,
) -> anyhow::Result<()> {
    let job = json!({
        "image": IMAGE, "command": "true", "resources": {"num_gpus": 1, "time_hours": 4.0},
        "backend_details": {"backend_type": "slurm", "partition": PARTITION},
    });
    let (mut ids, began) = (Vec::new(), Instant::now());
    for _ in 0..jobs {
        let id = service.http.submit(&job)?;
        watch.until("a job's Slurm id", TIMEOUT, |event| {
            event.text("/job_id") == Some(&id) && event.text("/data/slurm_job_id").is_some()
        })?;
        ids.push(id);
    }
    side.submit.push(began.elapsed().as_secs_f64() / count(jobs));
    let mut asking = Duration::ZERO;
    for _ in 0..POLLS {
        wait_for_poll(service)?;
        for id in &ids {
            let began = Instant::now();
            let status = service.http.get(&format!("/jobs/{id}/status"))?.ok()?;
            asking += began.elapsed();
            ensure!(status["status"] == "Pending", "a job is not pending: {status}");
        }
        oldest.extend(interval(service)?);
    }
    side.ask.push(asking.as_secs_f64() / count(jobs * POLLS));
    Ok(())
}

/// The time between two polls, in seconds.
fn interval(service: &Service<'_>) -> anyhow::Result<Option<f64>> {
    let cluster = service.http.get("/clusters/sandbox")?.ok()?;
    Ok(cluster.pointer("/poll/interval_seconds").and_then(Value::as_f64))
}

fn wait_for_poll(service: &Service<'_>) -> anyhow::Result<()> {
    let polled = || -> anyhow::Result<Value> {
        let cluster = service.http.get("/clusters/sandbox")?.ok()?;
        Ok(cluster.pointer("/poll/polled_on").cloned().unwrap_or_default())
    };
    let (began, before) = (Instant::now(), polled()?);
    while polled()? == before {
        ensure!(began.elapsed() < TIMEOUT, "the cluster is not polled");
        thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

fn mean(seconds: &Value) -> anyhow::Result<f64> {
    let seconds: Vec<f64> = seconds.as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
    ensure!(!seconds.is_empty(), "the SDK driver measured nothing");
    Ok(seconds.iter().sum::<f64>() / count(seconds.len()))
}

/// The SDK in its own process, on the second login host.
#[derive(Debug)]
struct Peer {
    process: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Peer {
    fn start(bench: &Bench) -> anyhow::Result<Self> {
        let place = bench.out.join("peers");
        fs::create_dir_all(&place)?;
        // The SDK runs ssh and scp by name, without ports or a configuration file.
        let config = bench.sandbox.dir.join("ssh/config");
        for name in ["ssh", "scp"] {
            let text = format!("#!/bin/sh\nexec /usr/bin/{name} -F '{}' \"$@\"\n", config.display());
            fs::write(place.join(name), text)?;
            fs::set_permissions(place.join(name), fs::Permissions::from_mode(0o755))?;
        }
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", place.display());
        let mut process = Command::new(Path::new(ROOT).join(".tools/tao-sdk/bin/python"))
            .arg(Path::new(ROOT).join("bench/peers/drive.py"))
            .env_clear()
            .envs(
                bench
                    .sandbox
                    .env
                    .iter()
                    .filter(|(name, _)| name.starts_with("SLURM_") || name.starts_with("SSH_")),
            )
            .env("SLURM_HOSTNAME", "login2")
            // The image is a file already. Otherwise the SDK checks before each job whether it is converted.
            .env("SLURM_USE_SQSH", "false")
            .env("TAO_SDK_STATE_DIR", &place)
            .env("HOME", &place)
            .env("PATH", path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(fs::File::create(place.join("sdk.log"))?)
            .spawn()
            .context("the SDK driver")?;
        let requests = process.stdin.take().context("no stdin")?;
        let answers = BufReader::new(process.stdout.take().context("no stdout")?);
        Ok(Self { process, requests, answers })
    }

    fn play(&mut self, round: &Value) -> anyhow::Result<Value> {
        writeln!(self.requests, "{round}")?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        serde_json::from_str(&line).context("the SDK failed; see peers/sdk.log of this run")
    }

    fn stop(mut self) -> anyhow::Result<()> {
        drop(self.requests);
        let status = self.process.wait()?;
        ensure!(status.success(), "the SDK driver: {status}");
        Ok(())
    }
}
