//! What a history consists of: its time, its chance, its faults, and what was noted of it.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use testkit::Dice;
use tokio::{
    sync::Notify,
    time::{Instant, sleep, sleep_until},
};

use super::{
    super::ports::{Gate, Port, PortError},
    stops::Stops,
};

/// How often things go wrong in this history, in a thousand.
#[derive(Debug, Clone, Copy)]
pub(super) struct Temper {
    pub(super) crash: u64,
    pub(super) stop: u64,
    /// Answers of the cluster that are long on their way.
    pub(super) slow: u64,
    pub(super) database: u64,
    pub(super) unreachable: u64,
    pub(super) reply_lost: u64,
    pub(super) sbatch: u64,
    pub(super) beyond_bound: u64,
}

impl Temper {
    fn draw(dice: &mut Dice) -> Self {
        // In some, workers often outlive their leases while others are in the middle of the same step.
        let drowsy = dice.chance(200);
        // Most histories have one or two troubles: where everything fails, nothing gets far enough to go wrong.
        let mut some = |chance: u64, least: u64, most: u64| {
            if dice.chance(chance) { dice.between(least, most) } else { 0 }
        };
        Self {
            crash: some(400, 1, 10),
            stop: if drowsy { some(1000, 10, 50) } else { some(400, 1, 12) },
            slow: if drowsy { some(1000, 200, 600) } else { some(200, 10, 100) },
            database: some(300, 5, 60),
            unreachable: some(300, 10, 200),
            reply_lost: some(500, 10, 300),
            sbatch: some(600, 50, 500),
            beyond_bound: some(150, 20, 200),
        }
    }
}

#[derive(Debug)]
struct State {
    dice: Dice,
    trouble: bool,
    stops: Vec<Stops>,
    database_down: Option<Instant>,
    unreachable_until: Option<Instant>,
    trace: Option<Vec<String>>,
    counts: std::collections::BTreeMap<String, u64>,
}

/// One history. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct World {
    began: Instant,
    pub(super) temper: Temper,
    state: Arc<Mutex<State>>,
    /// A worker whose process is to die hears of it here.
    pub(super) kills: Arc<Vec<Notify>>,
}

impl World {
    pub(super) fn new(seed: u64, workers: usize, traced: bool) -> Self {
        let mut dice = Dice::new(seed);
        let temper = Temper::draw(&mut dice);
        let state = State {
            dice,
            trouble: true,
            stops: vec![Stops::default(); workers],
            database_down: None,
            unreachable_until: None,
            trace: traced.then(Vec::new),
            counts: std::collections::BTreeMap::new(),
        };
        Self {
            began: Instant::now(),
            temper,
            state: Arc::new(Mutex::new(state)),
            kills: Arc::new((0..workers).map(|_| Notify::new()).collect()),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A throw of the one dice of this history.
    pub(super) fn dice<T>(&self, throw: impl FnOnce(&mut Dice) -> T) -> T {
        throw(&mut self.state().dice)
    }

    /// A time between so many milliseconds.
    pub(super) fn millis(&self, least: u64, most: u64) -> Duration {
        Duration::from_millis(self.dice(|dice| dice.between(least, most)))
    }

    /// Whether something goes wrong now that does so many times in a thousand.
    pub(super) fn strikes(&self, in_thousand: u64) -> bool {
        let mut state = self.state();
        in_thousand > 0 && state.trouble && state.dice.chance(in_thousand)
    }

    /// From now on nothing goes wrong any more.
    pub(super) fn calm(&self) {
        let mut state = self.state();
        state.trouble = false;
        state.stops.iter_mut().for_each(Stops::end);
        state.database_down = None;
        state.unreachable_until = None;
    }

    pub(super) fn is_calm(&self) -> bool {
        !self.state().trouble
    }

    pub(super) fn take_database_down(&self, time: Duration) {
        self.state().database_down = Some(Instant::now() + time);
    }

    pub(super) fn take_network_down(&self, time: Duration) {
        self.state().unreachable_until = Some(Instant::now() + time);
    }

    pub(super) fn is_unreachable(&self) -> bool {
        self.state().unreachable_until.is_some_and(|until| until > Instant::now())
    }

    fn is_database_down(&self) -> bool {
        self.state().database_down.is_some_and(|until| until > Instant::now())
    }

    /// Stops a worker where it stands: its process, as by SIGSTOP, or its whole machine.
    fn stop(&self, worker: usize, time: Duration) {
        let machine = self.dice(|dice| dice.chance(500));
        self.state().stops[worker].begin(time, machine);
        let what = if machine { "machine" } else { "process" };
        self.count(&format!("{what} stopped"));
        self.note(|| format!("the {what} of w{worker} is stopped for {time:?}"));
    }

    async fn goes_on(&self, worker: usize) {
        loop {
            let until = self.state().stops[worker].until();
            match until {
                // Looked at again now and then: the end of all trouble ends this, too.
                Some(until) => sleep_until(until.min(Instant::now() + Duration::from_secs(5))).await,
                None => return,
            }
        }
    }

    /// How long the machine of a worker has stood so far.
    pub(super) fn stood(&self, worker: usize) -> Duration {
        self.state().stops[worker].stood()
    }

    pub(super) fn count(&self, what: &str) {
        *self.state().counts.entry(what.to_owned()).or_default() += 1;
    }

    pub(super) fn note(&self, say: impl FnOnce() -> String) {
        let at = self.began.elapsed();
        if let Some(trace) = &mut self.state().trace {
            trace.push(format!("{:9.3} {}", at.as_secs_f64(), say()));
        }
    }

    /// What was noted, and how often what happened.
    pub(super) fn told(&self) -> (Vec<String>, std::collections::BTreeMap<String, u64>) {
        let mut state = self.state();
        (state.trace.take().unwrap_or_default(), std::mem::take(&mut state.counts))
    }
}

/// One process of a worker, as its ports see it.
#[derive(Debug, Clone)]
pub(super) struct Process {
    pub(super) world: World,
    pub(super) worker: usize,
}

impl Process {
    /// The process dies here, or is stopped for longer than its leases last.
    async fn may_be_struck(&self, call: &'static str) {
        let world = &self.world;
        if world.strikes(world.temper.crash) {
            world.count("crashed");
            world.note(|| format!("w{} dies at {call}", self.worker));
            world.kills[self.worker].notify_one();
            std::future::pending::<()>().await;
        }
        if world.strikes(world.temper.stop) {
            // Half of them not much longer than its leases last: then somebody else is in the middle of the same step.
            let time =
                if world.strikes(500) { world.millis(30_000, 60_000) } else { world.millis(1000, 400_000) };
            world.stop(self.worker, time);
        }
        world.goes_on(self.worker).await;
    }
}

impl Gate for Process {
    async fn pass<T: Send, E: PortError>(
        &self,
        call: &'static str,
        work: impl Future<Output = Result<T, E>> + Send,
    ) -> Result<T, E> {
        let (world, worker) = (&self.world, self.worker);
        world.goes_on(worker).await;
        self.may_be_struck(call).await;
        if E::PORT == Port::Store {
            if world.strikes(200) {
                sleep(world.millis(1, 50)).await;
            }
            if world.is_database_down() || world.strikes(world.temper.database) {
                world.note(|| format!("w{worker} {call}: the database does not serve"));
                sleep(Duration::from_millis(5)).await;
                world.goes_on(worker).await;
                return Err(E::failed());
            }
        }
        let mut result = work.await;
        world.note(|| match &result {
            Ok(_) => format!("w{worker} {call}"),
            Err(error) => format!("w{worker} {call}: {error:?}"),
        });
        // A statement that was carried out, and whose answer was lost.
        if E::PORT == Port::Store && world.strikes(world.temper.database / 3) {
            world.note(|| format!("w{worker} {call}: its answer is lost"));
            result = Err(E::failed());
        }
        self.may_be_struck(call).await;
        result
    }
}
