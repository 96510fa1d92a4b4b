//! Jobs that stay in the queue: how many a second get from a POST to a Slurm id that a watcher knows, against the floor: a
//! shell on the login node that runs `sbatch` in a loop, one at a time and four at a time, on the same batch script.

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
    sandbox::{ROOM, Rpcs, Ssh},
    service::{Plan, Service},
    shares::Shares,
    stats::{count, median, number},
    watch::Watch,
};

/// Closed, so that jobs stay pending on both sides: the API knows no `--hold`.
const PARTITION: &str = ROOM;
/// As many as hand in jobs at the same time.
const CALLERS: usize = 8;
const SLURM: &str = "Slurm's daemons and the database of its accounting";
/// How long a batch of jobs may take, however slow this machine is.
const PATIENCE: Duration = Duration::from_mins(5);

#[derive(Debug, Default)]
struct Side {
    per_second: Vec<f64>,
    /// Processor time of the whole machine for each job, in milliseconds.
    worked: Vec<f64>,
    whose: Whose,
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
    // Those with which the service opens its connections count, too.
    let first_logins = bench.sandbox.ssh()?.since(before).logins;

    let (mut ours, mut accepted, mut ssh) = (Side::default(), Vec::new(), Ssh::default());
    let (mut one, mut four) = (Side::default(), Side::default());
    for round in 0..bench.rounds() {
        bench.say(&format!("round {} of {}: {jobs} jobs each way", round + 1, bench.rounds()));
        sbatch_loop(bench, &script, jobs, 1, &mut one)?;
        let (rpcs, seen) = (bench.sandbox.rpcs()?, bench.sandbox.ssh()?);
        let (used, shares) = (service.usage()?, Shares::take()?);
        let (all, worked, posts) = through_the_api(&service.http, &watch, jobs)?;
        ours.whose.add(service.usage()?.since(used).cpu, Shares::take()?.since(shares), jobs);
        ssh = ssh.plus(bench.sandbox.ssh()?.since(seen));
        ours.add(jobs, all, worked, &bench.sandbox.rpcs()?.since(&rpcs));
        accepted.push(count(jobs) / posts.as_secs_f64());
        service.cancel_all()?;
        sbatch_loop(bench, &script, jobs, 4, &mut four)?;
    }
    drop((service, closed));

    let (loop_one, loop_four) = ("`sbatch` in a loop on the login node", "the same loop, four at a time");
    let figure = "jobs by the API, from the first POST to the last Slurm id at a watcher";
    rows.push(
        Row::of(figure, "1/s", &ours.per_second).against(loop_one, &one.per_second).ratio_at_least(1.0).note(
            format!(
                "{CALLERS} callers, {jobs} jobs a round; the jobs wait in a partition that is down; {}",
                kinds(&ours)
            ),
        ),
    );
    rows.push(Row::of(figure, "1/s", &ours.per_second).against(loop_four, &four.per_second));
    rows.push(Row::of("jobs accepted: POST to 201", "1/s", &accepted).note(format!("{CALLERS} callers")));
    rows.push(Row::of(loop_one, "1/s", &one.per_second).note(kinds(&one)));
    rows.push(Row::of(loop_four, "1/s", &four.per_second));
    let worked = "processor time of the whole machine for each job";
    rows.push(Row::of(format!("{worked}, API"), "ms", &ours.worked).less_than(loop_one, &one.worked));
    rows.extend(ours.whose.rows());
    for (of, side) in [(loop_one, &one), (loop_four, &four)] {
        rows.push(Row::of(format!("{worked}, {of}"), "ms", &side.worked));
        rows.push(Row::of(format!("of that, {SLURM}"), "ms", &side.whose.slurm));
    }
    rows.push(Row::of("calls of slurmctld for each job, API", "", &ours.rpcs).less_than(loop_one, &one.rpcs));
    let total = jobs * bench.rounds();
    rows.push(
        Row::new("SSH logins for all jobs of the API", "", number(first_logins + ssh.logins))
            .note(format!("{total} jobs; the first connections among them")),
    );
    rows.push(
        Row::new("remote commands for each job of the API", "", each(number(ssh.commands), total))
            .note(format!("{} commands, polls meanwhile among them", ssh.commands)),
    );
    ensure!(median(&ours.per_second) > 0.0, "no job was submitted");
    Ok(())
}

fn kinds(side: &Side) -> String {
    format!("slurmctld: {}", side.kinds.text())
}

/// Whose processor time it was, for each job in milliseconds.
#[derive(Debug, Default)]
struct Whose {
    service: Vec<f64>,
    postgres: Vec<f64>,
    login: Vec<f64>,
    slurm: Vec<f64>,
    load: Vec<f64>,
}

impl Whose {
    fn add(&mut self, service: Duration, shares: Shares, jobs: usize) {
        self.service.push(millis(service, jobs));
        self.postgres.push(millis(shares.postgres, jobs));
        self.login.push(millis(shares.login, jobs));
        self.slurm.push(millis(shares.slurm, jobs));
        self.load.push(millis(shares.load, jobs));
    }

    fn rows(&self) -> [Row; 5] {
        [
            ("the service", &self.service),
            ("Postgres", &self.postgres),
            ("the callers and the watcher", &self.load),
            ("the login host: sshd, our program and `sbatch`", &self.login),
            (SLURM, &self.slurm),
        ]
        .map(|(whose, each)| Row::of(format!("of that, {whose}"), "ms", each))
    }
}

/// For each of so many.
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

/// The script of a job of the service, as a file on the cluster: both sides give the same text to `sbatch`. It also opens the
/// service's connections, which are there from then on.
fn batch_script(bench: &Bench, service: &Service<'_>, watch: &Watch) -> anyhow::Result<String> {
    let id = service.http.submit(&job())?;
    watch.until("the first job's Slurm id", PATIENCE, |event| {
        event.text("/job_id") == Some(&id) && event.text("/data/slurm_job_id").is_some()
    })?;
    let script = service.http.get(&format!("/jobs/{id}/script"))?;
    ensure!(script.status == 200, "the script: {}", script.text);
    service.cancel_all()?;
    let path = "/home/tao/bench.sbatch";
    fs::write(bench.sandbox.seen(path), script.text).context(path)?;
    Ok(path.to_owned())
}

/// The time is that of the loop alone, without the login.
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
        // -I would make a line of each; -n 1 would hand the number to the script. It does not look at it.
        _ => {
            format!("seq {jobs} | xargs -n 1 -P {at_a_time} sbatch --parsable {script} >/dev/null || exit 1")
        }
    };
    let text = format!("began=$(date +%s%N); {body}; echo $(($(date +%s%N) - began))");
    let (worked, shares) = (machine_worked()?, Shares::take()?);
    let nanos: u64 = bench.sandbox.login(&text)?.parse()?;
    let worked = machine_worked()?.saturating_sub(worked);
    side.whose.add(Duration::ZERO, Shares::take()?.since(shares), jobs);
    side.add(jobs, Duration::from_nanos(nanos), worked, &bench.sandbox.rpcs()?.since(&before));
    bench.sandbox.clear()
}

/// Until the last id is known, and what the machine worked till then; and until the last POST was answered.
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
            watch.next(PATIENCE)?.with_context(|| format!("{} jobs get no Slurm id", waiting.len()))?;
        if event.text("/data/slurm_job_id").is_some()
            && event.text("/job_id").is_some_and(|id| waiting.remove(id))
        {
            last = event.at;
        }
    }
    Ok((last.duration_since(began), machine_worked()?.saturating_sub(worked), posts))
}
