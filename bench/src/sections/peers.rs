//! The same jobs by what one would use instead: the published TAO SDK, whose Slurm handler opens an SSH connection for each
//! thing it does. Both submit one job after another, each known to Slurm before the next, and then ask for the status of
//! each job equally often. The jobs wait in a partition that is down: for the SDK a waiting job is the cheapest to ask for.

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
    sandbox::ROOM,
    service::{Plan, Service},
    stats::{count, median, number},
    watch::Watch,
};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
const PARTITION: &str = ROOM;
const IMAGE: &str = "/lustre/images/tao-toolkit.sqsh";
/// How often each job's status is asked for.
const POLLS: usize = 3;
const PATIENCE: Duration = Duration::from_mins(3);
const NAME: &str = "TAO SDK 7.2.0";

/// Seconds, by round: of one job in the mean.
#[derive(Debug, Default)]
struct Side {
    submit: Vec<f64>,
    ask: Vec<f64>,
}

impl Side {
    /// A job that is submitted, and asked for as often as agreed.
    fn whole(&self) -> Vec<f64> {
        self.submit.iter().zip(&self.ask).map(|(submit, ask)| submit + ask * count(POLLS)).collect()
    }
}

pub(crate) fn run(bench: &Bench, rows: &mut Vec<Row>) -> anyhow::Result<()> {
    let setup = Command::new(Path::new(ROOT).join("ci/setup")).arg("--peers").status()?;
    ensure!(setup.success(), "ci/setup --peers: {setup}");
    let jobs = bench.size(50, 4) / bench.rounds();
    let closed = bench.sandbox.close(PARTITION)?;

    // A login host for each side, so that it is known whose logins and commands were whose.
    let hosts: Vec<_> = bench.sandbox.var("SLURM_HOSTNAME")?.split(',').map(str::to_owned).collect();
    let [host, _] = &hosts[..] else { anyhow::bail!("the sandbox has not two login hosts") };
    let before = bench.sandbox.ssh_by_host()?;
    let plan = Plan { env: vec![("SLURM_HOSTNAME", host.clone())], ..Plan::default() };
    let service = Service::start(bench, &plan)?;
    let watch = Watch::open(&service.http, "/events?kind=transition")?;
    let mut peer = Peer::start(bench)?;

    let (mut ours, mut theirs, mut oldest) = (Side::default(), Side::default(), Vec::new());
    for round in 0..bench.rounds() {
        bench.say(&format!("round {} of {}: {jobs} jobs each way", round + 1, bench.rounds()));
        let answer =
            peer.play(&json!({"jobs": jobs, "polls": POLLS, "image": IMAGE, "partition": PARTITION}))?;
        ensure!(
            answer["statuses"] == json!(["Pending"]),
            "the SDK's jobs do not wait: {}",
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
        Row::of("seconds a job: until Slurm has it, and its status", "s", &ours.whole())
            .less_than(NAME, &theirs.whole())
            .ratio_at_least(10.0)
            .note(format!(
                "{total} jobs one after another, each asked for {POLLS} times; {NAME}: {:.3} s. It asks the cluster each \
                 time; the service polls all jobs with one command every {:.0} s here, so its answer may be that old",
                median(&theirs.whole()),
                median(&oldest)
            )),
    );
    rows.push(Row::of("seconds until Slurm has a job", "s", &ours.submit).less_than(NAME, &theirs.submit));
    rows.push(Row::of("seconds to ask for a job's status", "s", &ours.ask).less_than(NAME, &theirs.ask));
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
                "{NAME}: {}, {:.1} a job; of the service those of its polls, cancellations and rests between rounds, too",
                other.commands,
                each(number(other.commands), total)
            )),
    );
    Ok(())
}

/// One job after another until a watcher knows its Slurm id; then each is asked for, and each time is followed by a poll of
/// the cluster, so that no answer is read twice.
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
        watch.until("a job's Slurm id", PATIENCE, |event| {
            event.text("/job_id") == Some(&id) && event.text("/data/slurm_job_id").is_some()
        })?;
        ids.push(id);
    }
    side.submit.push(began.elapsed().as_secs_f64() / count(jobs));
    let mut asking = Duration::ZERO;
    for _ in 0..POLLS {
        polled_anew(service)?;
        for id in &ids {
            let began = Instant::now();
            let status = service.http.get(&format!("/jobs/{id}/status"))?.ok()?;
            asking += began.elapsed();
            ensure!(status["status"] == "Pending", "a job does not wait: {status}");
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

fn polled_anew(service: &Service<'_>) -> anyhow::Result<()> {
    let polled = || -> anyhow::Result<Value> {
        let cluster = service.http.get("/clusters/sandbox")?.ok()?;
        Ok(cluster.pointer("/poll/polled_on").cloned().unwrap_or_default())
    };
    let (began, before) = (Instant::now(), polled()?);
    while polled()? == before {
        ensure!(began.elapsed() < PATIENCE, "the cluster is not polled");
        thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

fn mean(seconds: &Value) -> anyhow::Result<f64> {
    let seconds: Vec<f64> = seconds.as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
    ensure!(!seconds.is_empty(), "the SDK's driver has measured nothing");
    Ok(seconds.iter().sum::<f64>() / count(seconds.len()))
}

/// The SDK in a process of its own, on the second login host.
#[derive(Debug)]
struct Peer {
    process: Child,
    asked: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Peer {
    fn start(bench: &Bench) -> anyhow::Result<Self> {
        let place = bench.out.join("peers");
        fs::create_dir_all(&place)?;
        // It calls ssh and scp by their names, and knows neither ports nor where their settings are.
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
            // The image is a file already. Otherwise it asks before each job whether it was converted.
            .env("SLURM_USE_SQSH", "false")
            .env("TAO_SDK_STATE_DIR", &place)
            .env("HOME", &place)
            .env("PATH", path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(fs::File::create(place.join("sdk.log"))?)
            .spawn()
            .context("the SDK's driver")?;
        let asked = process.stdin.take().context("no standard input")?;
        let answers = BufReader::new(process.stdout.take().context("no standard output")?);
        Ok(Self { process, asked, answers })
    }

    fn play(&mut self, round: &Value) -> anyhow::Result<Value> {
        writeln!(self.asked, "{round}")?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        serde_json::from_str(&line).context("the SDK has failed: see peers/sdk.log of this run")
    }

    fn stop(mut self) -> anyhow::Result<()> {
        drop(self.asked);
        let status = self.process.wait()?;
        ensure!(status.success(), "the SDK's driver: {status}");
        Ok(())
    }
}
