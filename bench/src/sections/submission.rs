//! The submission rate: jobs per second from a POST to the Slurm id at a watcher. The baseline is a shell on the login node that
//! runs `sbatch` in a loop with the same batch script, one at a time and four in parallel.

use std::{
    collections::HashSet,
    fs, thread,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use crate::{
    Bench,
    http::Http,
    process::machine_worked,
    row::{Row, each},
    sandbox::{BENCH_PARTITION, Rpcs, Ssh},
    service::{Plan, Service},
    shares::Shares,
    stats::{count, median, number},
    watch::Watch,
};

/// Closed, so that jobs stay pending on both sides: the API has no `--hold`.
const PARTITION: &str = BENCH_PARTITION;
/// The number of callers that submit jobs at the same time.
const CALLERS: usize = 8;
const SLURM: &str = "Slurm daemons and accounting database";
/// The longest time for one round of jobs.
const TIMEOUT: Duration = Duration::from_mins(5);

#[derive(Debug, Default)]
struct Side {
    per_second: Vec<f64>,
    /// CPU time of the whole machine per job, in milliseconds.
    worked: Vec<f64>,
    cpu: CpuTimes,
    rpcs: Vec<f64>,
    kinds: Rpcs,
}

pub(crate) fn run(bench: &Bench, rows: &mut Vec<Row>) -> anyhow::Result<()> {
    let jobs = bench.size(1000, 10);
    let closed = bench.sandbox.close(PARTITION)?;
    let before = bench.sandbox.ssh()?;
    let service = Service::start(bench, &Plan::default())?;
    let watch = Watch::open(&service.http, "/events?kind=transition")?;
    let script = batch_script(bench, &service, &watch)?;
    // The logins that open the service's connections count as well.
    let first_logins = bench.sandbox.ssh()?.since(before).logins;

    let (mut ours, mut accepted, mut ssh) = (Side::default(), Vec::new(), Ssh::default());
    let (mut one, mut four) = (Side::default(), Side::default());
    for round in 0..bench.rounds() {
        bench.say(&format!("round {} of {}: {jobs} jobs per side", round + 1, bench.rounds()));
        sbatch_loop(bench, &script, jobs, 1, &mut one)?;
        let (rpcs, seen) = (bench.sandbox.rpcs()?, bench.sandbox.ssh()?);
        let (used, shares) = (service.usage()?, Shares::take()?);
        let (all, worked, posts) = through_the_api(&service.http, &watch, jobs)?;
        ours.cpu.add(service.usage()?.since(used).cpu, Shares::take()?.since(shares), jobs);
        ssh = ssh.plus(bench.sandbox.ssh()?.since(seen));
        ours.add(jobs, all, worked, &bench.sandbox.rpcs()?.since(&rpcs));
        accepted.push(count(jobs) / posts.as_secs_f64());
        service.cancel_all()?;
        sbatch_loop(bench, &script, jobs, 4, &mut four)?;
    }
    drop((service, closed));

    let (loop_one, loop_four) = ("`sbatch` loop on the login node", "`sbatch` loop, four in parallel");
    let figure = "API: first POST to last Slurm id at a watcher";
    rows.push(
        Row::of(figure, "1/s", &ours.per_second).against(loop_one, &one.per_second).ratio_at_least(1.0).note(
            format!("{CALLERS} callers, {jobs} jobs per round in a partition that is down; {}", kinds(&ours)),
        ),
    );
    rows.push(Row::of(figure, "1/s", &ours.per_second).against(loop_four, &four.per_second));
    rows.push(Row::of("jobs accepted: POST to 201", "1/s", &accepted).note(format!("{CALLERS} callers")));
    rows.push(Row::of(loop_one, "1/s", &one.per_second).note(kinds(&one)));
    rows.push(Row::of(loop_four, "1/s", &four.per_second));
    let worked = "machine CPU time per job";
    rows.push(Row::of(format!("{worked}, API"), "ms", &ours.worked).less_than(loop_one, &one.worked));
    rows.extend(ours.cpu.rows());
    for (of, side) in [(loop_one, &one), (loop_four, &four)] {
        rows.push(Row::of(format!("{worked}, {of}"), "ms", &side.worked));
        rows.push(Row::of(format!("part: {SLURM}"), "ms", &side.cpu.slurm));
    }
    rows.push(Row::of("slurmctld RPCs per job, API", "", &ours.rpcs).less_than(loop_one, &one.rpcs));
    let total = jobs * bench.rounds();
    rows.push(
        Row::new("SSH logins for all API jobs", "", number(first_logins + ssh.logins))
            .note(format!("{total} jobs, including the first connections")),
    );
    rows.push(
        Row::new("remote commands per API job", "", each(number(ssh.commands), total))
            .note(format!("{} commands, including polls", ssh.commands)),
    );
    ensure!(median(&ours.per_second) > 0.0, "no job was submitted");
    Ok(())
}

fn kinds(side: &Side) -> String {
    format!("slurmctld: {}", side.kinds.text())
}

/// CPU time by consumer, in milliseconds per job.
#[derive(Debug, Default)]
struct CpuTimes {
    service: Vec<f64>,
    postgres: Vec<f64>,
    login: Vec<f64>,
    slurm: Vec<f64>,
    load: Vec<f64>,
}

impl CpuTimes {
    fn add(&mut self, service: Duration, shares: Shares, jobs: usize) {
        self.service.push(millis(service, jobs));
        self.postgres.push(millis(shares.postgres, jobs));
        self.login.push(millis(shares.login, jobs));
        self.slurm.push(millis(shares.slurm, jobs));
        self.load.push(millis(shares.load, jobs));
    }

    fn rows(&self) -> [Row; 5] {
        [
            ("service", &self.service),
            ("Postgres", &self.postgres),
            ("callers and watcher", &self.load),
            ("login host: sshd, our program, `sbatch`", &self.login),
            (SLURM, &self.slurm),
        ]
        .map(|(consumer, each)| Row::of(format!("part: {consumer}"), "ms", each))
    }
}

/// Milliseconds per job.
fn millis(time: Duration, jobs: usize) -> f64 {
    time.as_secs_f64() * 1000.0 / count(jobs)
}

impl Side {
    fn add(&mut self, jobs: usize, took: Duration, worked: Duration, rpcs: &Rpcs) {
        self.per_second.push(count(jobs) / took.as_secs_f64());
        self.worked.push(millis(worked, jobs));
        self.rpcs.push(each(number(rpcs.user), jobs));
        for (name, number) in &rpcs.by_type {
            *self.kinds.by_type.entry(name.clone()).or_default() += number;
        }
    }
}

fn job() -> Value {
    json!({
        "command": "true",
        "resources": {"num_gpus": 0, "cpus_per_task": 1, "time_hours": 0.1},
        "backend_details": {"backend_type": "slurm", "partition": PARTITION},
    })
}

/// Writes the batch script of a service job to a file on the cluster, so that both sides submit the same script. This also opens
/// the service's connections.
fn batch_script(bench: &Bench, service: &Service<'_>, watch: &Watch) -> anyhow::Result<String> {
    let id = service.http.submit(&job())?;
    watch.until("the first job's Slurm id", TIMEOUT, |event| {
        event.text("/job_id") == Some(&id) && event.text("/data/slurm_job_id").is_some()
    })?;
    let script = service.http.get(&format!("/jobs/{id}/script"))?;
    ensure!(script.status == 200, "GET script: {}", script.text);
    service.cancel_all()?;
    let path = "/home/tao/bench.sbatch";
    fs::write(bench.sandbox.local(path), script.text).context(path)?;
    Ok(path.to_owned())
}

/// Measures the loop without the login.
fn sbatch_loop(
    bench: &Bench,
    script: &str,
    jobs: usize,
    at_a_time: usize,
    side: &mut Side,
) -> anyhow::Result<()> {
    let before = bench.sandbox.rpcs()?;
    let body = match at_a_time {
        1 => format!("for i in $(seq {jobs}); do sbatch --parsable {script} >/dev/null || exit 1; done"),
        // -n 1 passes each number as an argument to the script, which ignores it.
        _ => {
            format!("seq {jobs} | xargs -n 1 -P {at_a_time} sbatch --parsable {script} >/dev/null || exit 1")
        }
    };
    let text = format!("began=$(date +%s%N); {body}; echo $(($(date +%s%N) - began))");
    let (worked, shares) = (machine_worked()?, Shares::take()?);
    let nanos: u64 = bench.sandbox.login(&text)?.parse()?;
    let worked = machine_worked()?.saturating_sub(worked);
    side.cpu.add(Duration::ZERO, Shares::take()?.since(shares), jobs);
    side.add(jobs, Duration::from_nanos(nanos), worked, &bench.sandbox.rpcs()?.since(&before));
    bench.sandbox.clear()
}

/// Returns the time to the last Slurm id, the machine's CPU time until then, and the time to the last answered POST.
fn through_the_api(
    http: &Http,
    watch: &Watch,
    jobs: usize,
) -> anyhow::Result<(Duration, Duration, Duration)> {
    while watch.next(Duration::ZERO)?.is_some() {}
    let (began, worked) = (Instant::now(), machine_worked()?);
    let posted: Vec<_> = thread::scope(|scope| {
        let post = |caller| -> anyhow::Result<Vec<String>> {
            (caller..jobs).step_by(CALLERS).map(|_| http.submit(&job())).collect()
        };
        let callers: Vec<_> = (0..CALLERS).map(|caller| scope.spawn(move || post(caller))).collect();
        let joined = callers
            .into_iter()
            .map(|caller| caller.join().map_err(|_| anyhow::anyhow!("a caller panicked"))?);
        joined.collect::<anyhow::Result<Vec<_>>>()
    })?;
    let posts = began.elapsed();
    let mut waiting: HashSet<String> = posted.into_iter().flatten().collect();
    let mut last = began;
    while !waiting.is_empty() {
        let event =
            watch.next(TIMEOUT)?.with_context(|| format!("{} jobs have no Slurm id", waiting.len()))?;
        if event.text("/data/slurm_job_id").is_some()
            && event.text("/job_id").is_some_and(|id| waiting.remove(id))
        {
            last = event.at;
        }
    }
    Ok((last.duration_since(began), machine_worked()?.saturating_sub(worked), posts))
}
