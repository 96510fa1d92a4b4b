//! One history from its seed to its audit.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use chrono::TimeDelta;
use domain::{Clock, Cluster, DesiredState, Graces, JobId, Phase, RpcBudget};
use testkit::{CountingIds, Dice, LivingCluster, MemoryStore, Weather, cluster};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::{
    audit::{audit, faces},
    callers::Callers,
    clocks::{VirtualClock, WorkersClock},
    link::LossyLink,
    programs::FarSide,
    world::{Process, World},
};
use crate::{
    ClusterTarget, Metered, Pace, WorkerSettings,
    tests::ports::{GatedLink, GatedStore},
    worker::Worker,
};

/// What became of a history.
pub(super) struct History {
    pub(super) violations: Vec<String>,
    pub(super) trace: Vec<String>,
    pub(super) counts: BTreeMap<String, u64>,
}

/// Longer than the longest wait that the service allows itself after the last fault.
const PATIENCE: Duration = Duration::from_hours(3);
/// After everything has come to its end, nothing may change any more.
const QUIET: Duration = Duration::from_mins(3);

pub(super) async fn live(seed: u64, traced: bool) -> History {
    let mut dice = Dice::new(seed ^ 0x00c0_ffee);
    let workers = usize::try_from(dice.between(2, 3)).unwrap_or(2);
    let world = World::new(seed, workers, traced);
    let clock = VirtualClock::new();
    let store = MemoryStore::new(Arc::new(clock));
    let is_over = {
        let store = store.clone();
        move |owner| {
            let job = store.all_jobs().into_iter().find(|job| job.id == JobId::new(owner));
            job.is_none_or(|job| matches!(job.phase, Phase::Ended | Phase::Paused))
        }
    };
    let ahead = TimeDelta::milliseconds(i64::try_from(dice.between(0, 20_000)).unwrap_or(0) - 10_000);
    let site = LivingCluster::new(dice.roll(), Arc::new(clock), ahead, Box::new(is_over));
    let callers = Callers::new(world.clone(), store.clone(), clock);
    let ids = Arc::new(CountingIds::default());
    let stop = CancellationToken::new();
    // Some sites limit requests, some of them to few.
    let budget = dice.chance(400).then(|| RpcBudget {
        burst: u32::try_from(dice.between(20, 60)).unwrap_or(20),
        per_minute: u32::try_from(dice.between(10, 120)).unwrap_or(10),
    });
    let mut tasks = tokio::task::JoinSet::new();
    for worker in 0..workers {
        let skew = TimeDelta::milliseconds(i64::try_from(dice.between(0, 10_000)).unwrap_or(0) - 5000);
        let process = Process { world: world.clone(), worker };
        let seat = Seat {
            clock: Arc::new(WorkersClock::new(clock, process.clone(), skew)),
            process,
            store: store.clone(),
            far: FarSide { world: world.clone(), cluster: site.clone() },
            ids: Arc::clone(&ids),
            budget,
        };
        tasks.spawn(seat.run(stop.clone()));
    }
    for number in 0..dice.between(1, 5) {
        tasks.spawn(callers.clone().call(number));
    }
    trouble(&world, &site, Duration::from_secs(dice.between(150, 500)).max(Callers::LONGEST)).await;
    world.note(|| "no more trouble".to_owned());
    let mut violations = settle(&store, &site, &callers).await;
    let before = faces(&store);
    sleep(QUIET).await;
    if faces(&store) != before {
        violations.push(format!("what was over has changed: {before:?} became {:?}", faces(&store)));
    }
    violations.extend(audit(&store, &site, &callers.sent()));
    stop.cancel();
    tasks.abort_all();
    let (trace, mut counts) = world.told();
    *counts.entry("jobs".to_owned()).or_default() += callers.sent().len() as u64;
    *counts.entry("allocations".to_owned()).or_default() += store.allocations().0.len() as u64;
    site.truth(|truth| {
        *counts.entry("Slurm jobs".to_owned()).or_default() += truth.jobs.len() as u64;
        for (ending, count) in &truth.endings {
            *counts.entry(ending.clone()).or_default() += count;
        }
    });
    History { violations, trace, counts }
}

/// A place where a worker's process runs, dies and is started again.
struct Seat {
    process: Process,
    store: MemoryStore,
    far: FarSide,
    clock: Arc<WorkersClock>,
    ids: Arc<CountingIds>,
    budget: Option<RpcBudget>,
}

impl Seat {
    async fn run(self, stop: CancellationToken) {
        let world = &self.process.world;
        while !stop.is_cancelled() {
            let gate = self.process.clone();
            let link = GatedLink { link: LossyLink(self.far.clone()), gate: gate.clone() };
            let pace = Pace { min: Duration::from_secs(5), max: Duration::from_mins(1) };
            let store = GatedStore { store: self.store.clone(), gate };
            let cluster = Cluster { rpc_budget: self.budget, ..cluster() };
            let link = Metered::new(link, store.clone(), cluster.name.clone(), self.budget);
            let target = ClusterTarget { cluster, incarnation: None, link, pace };
            let settings = WorkerSettings {
                lease: Duration::from_secs(30),
                batch: 64,
                graces: Graces::default(),
                partitions_every: Duration::from_mins(5),
            };
            let clock: Arc<dyn Clock> = Arc::<WorkersClock>::clone(&self.clock);
            let worker =
                Worker::new(store, vec![target], settings, clock, Arc::<CountingIds>::clone(&self.ids));
            tokio::select! {
                biased;
                () = world.kills[self.process.worker].notified() => {}
                _ = Arc::new(worker).run(stop.clone()) => return,
            }
            sleep(world.millis(500, 60_000)).await;
            world.note(|| format!("w{} is started again", self.process.worker));
        }
    }
}

/// Makes something wrong with the site, or right again.
type Switch = fn(&mut Weather, bool);

/// What may be wrong with the site for a while.
const KINDS: [(&str, Switch); 6] = [
    ("the scheduler is silent", |weather, on| weather.scheduler_silent = on),
    ("accounting is silent", |weather, on| weather.accounting_silent = on),
    ("the file system is gone", |weather, on| weather.files_gone = on),
    ("the queue is said to be empty", |weather, on| weather.queue_lies_empty = on),
    ("Slurm takes no more jobs", |weather, on| weather.full = on),
    ("Slurm refuses requests", |weather, on| weather.rate_limited = on),
];

/// What is wrong with the site comes and goes.
async fn trouble(world: &World, site: &LivingCluster, time: Duration) {
    let end = Instant::now() + time;
    let (lag, files) = world.dice(|dice| {
        let lag = if dice.chance(300) { dice.seconds(0, 60) } else { dice.millis(0, 3000) };
        (lag, if dice.chance(300) { dice.seconds(0, 20) } else { TimeDelta::zero() })
    });
    site.change_weather(|weather| (weather.accounting_lag, weather.files_lag) = (lag, files));
    while Instant::now() < end {
        sleep(world.millis(5000, 60_000)).await;
        let time = world.millis(1000, 100_000);
        let kind = world.dice(|dice| dice.below(12));
        match kind {
            6 => {
                world.note(|| format!("the database is down for {time:?}"));
                world.take_database_down(time);
            }
            7 => {
                world.note(|| format!("the cluster cannot be reached for {time:?}"));
                world.take_network_down(time);
            }
            kind => {
                if let Some((what, switch)) = usize::try_from(kind).ok().and_then(|kind| KINDS.get(kind)) {
                    during(world, site, what, time, switch).await;
                }
            }
        }
    }
    world.calm();
}

async fn during(world: &World, site: &LivingCluster, what: &str, time: Duration, switch: &Switch) {
    world.note(|| format!("{what} for {time:?}"));
    site.change_weather(|weather| switch(weather, true));
    sleep(time).await;
    site.change_weather(|weather| switch(weather, false));
    world.note(|| format!("it is over that {what}"));
}

/// Waits until every job has come to its end; says which have not.
async fn settle(store: &MemoryStore, site: &LivingCluster, callers: &Callers) -> Vec<String> {
    let began = Instant::now();
    let mut resumed = false;
    loop {
        sleep(Duration::from_secs(5)).await;
        let open: Vec<_> = store
            .all_jobs()
            .into_iter()
            .filter(|job| match job.phase {
                Phase::Ended => job.desired == DesiredState::Delete,
                Phase::Paused => job.desired != DesiredState::Pause,
                // Perhaps for a job that is paused.
                Phase::Waiting => resumed || job.desired != DesiredState::Run,
                _ => true,
            })
            .collect();
        let active = site.active();
        if open.is_empty() && active.is_empty() {
            if resumed {
                return Vec::new();
            }
            callers.resume_all();
            resumed = true;
            continue;
        }
        if began.elapsed() > PATIENCE {
            let stuck = open.iter().map(|job| {
                format!("job {} is stuck in {} ({}): {}", job.id, job.phase, job.desired, job.message)
            });
            let orphans = active.iter().map(|(id, name)| format!("Slurm job {id} ({name}) is nobody's"));
            return stuck.chain(orphans).collect();
        }
    }
}
