//! The same calls to both stores.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Debug,
    time::{Duration, Instant},
};

use chrono::{DateTime, TimeDelta};
use domain::{
    ActiveJob, ArrayTasks, Job, JobArray, JobId, Need, NeedWhen, ObservedChange, Timestamp, Transition,
};
use persistence::{
    DueJobs as _, Inserted, Lane, Lease, LeaseTerms, Needs as _, NewJob, Observations as _,
    PartitionTurns as _, PollLease, PollResult, PollTurns as _, Purges as _, Requested, StepRecords as _,
    StoreError,
};
use testkit::{Dice, command_job};
use uuid::Uuid;

use crate::{
    moves,
    sides::{LEASE, Memory, Postgres, Request, Side, secrets},
};

/// Makes a call to both stores.
macro_rules! of_both {
    ($self:ident, $call:ident($($argument:expr),*)) => {
        ($self.real.store().$call($($argument),*).await, $self.memory.store().$call($($argument),*).await)
    };
}

mod arrays;
mod images;

const TERMS: LeaseTerms = LeaseTerms { duration: LEASE, limit: 10, only_stopped: false };

/// A result of both stores.
type Pair<T> = (T, T);

pub(crate) struct Both {
    real: Postgres,
    memory: Memory,
    dice: Dice,
    now: Timestamp,
    tokens: u128,
    leases: Vec<(Pair<Lease>, Vec<Job>)>,
    polls: Vec<(Pair<PollLease>, Vec<Job>)>,
    /// The jobs that convert images.
    begun: Vec<JobId>,
    /// How often each call was compared.
    pub(crate) happened: BTreeMap<String, usize>,
    last_call: Instant,
}

fn ids() -> impl Iterator<Item = JobId> {
    (1..=4).map(|number| JobId::new(Uuid::from_u128(number)))
}

/// Each second job needs the one before it.
fn needs(id: JobId) -> Vec<Need> {
    let number = id.get().as_u128();
    let need =
        Need { name: "one".parse().unwrap(), job: Uuid::from_u128(number - 1), when: NeedWhen::Finished };
    if number.is_multiple_of(2) { vec![need] } else { Vec::new() }
}

/// Some jobs have an array.
fn has_array(id: JobId) -> bool {
    id.get().as_u128() > 2
}

fn dgx() -> domain::ClusterName {
    "dgx".parse().unwrap()
}

/// The result of a call, without the details of an error.
fn outcome<T: Debug>(result: &Result<T, StoreError>) -> String {
    match result {
        Ok(value) => format!("{value:?}"),
        Err(StoreError::LeaseLost { .. }) => "the lease was lost".to_owned(),
        Err(error) => panic!("{error:?}"),
    }
}

fn faces<T: Debug>(jobs: &[T]) -> BTreeSet<String> {
    jobs.iter().map(|job| format!("{job:?}")).collect()
}

/// Both clocks advance between two calls, and not by exactly the same.
fn assert_near(what: &str, real: Option<Duration>, memory: Option<Duration>) {
    let near = match (real, memory) {
        (Some(real), Some(memory)) => real.abs_diff(memory) < Duration::from_secs(4),
        (None, None) => true,
        _ => false,
    };
    assert!(near, "{what}: {real:?} says the database, {memory:?} the store without one");
}

impl Both {
    pub(crate) fn new(real: Postgres, memory: Memory, dice: Dice) -> Self {
        Self {
            real,
            memory,
            dice,
            now: DateTime::from_timestamp(1_800_000_000, 0).unwrap(),
            tokens: 0,
            leases: Vec::new(),
            polls: Vec::new(),
            begun: Vec::new(),
            happened: BTreeMap::new(),
            last_call: Instant::now(),
        }
    }

    fn token(&mut self) -> Uuid {
        self.tokens += 1;
        Uuid::from_u128(self.tokens)
    }

    fn same<T: PartialEq + Debug>(&mut self, call: &str, (real, memory): Pair<T>) {
        assert_eq!(real, memory, "{call}: the database, and the store without one");
        *self.happened.entry(call.to_owned()).or_default() += 1;
    }

    pub(crate) async fn make_a_call(&mut self) {
        self.now += TimeDelta::milliseconds(7);
        // The server clock advances meanwhile, on a busy machine by seconds.
        let passed = TimeDelta::from_std(self.last_call.elapsed()).unwrap() + TimeDelta::milliseconds(1);
        self.last_call = Instant::now();
        self.memory.pass(passed).await;
        match self.dice.below(32) {
            0 | 1 => self.insert().await,
            2..=4 => self.request().await,
            5..=7 => self.acquire().await,
            8..=10 => self.record().await,
            11 => self.give_back().await,
            12 => self.poll().await,
            13 => self.record_poll().await,
            14 => self.want_image().await,
            15 => self.record_image().await,
            16 | 17 => self.await_conversion().await,
            18 => self.partitions().await,
            19 => self.poll_soon().await,
            20..=23 => self.observe_tasks().await,
            24..=27 => self.tend().await,
            _ => {
                let time = self.dice.one_of(&[10, 20, 40]);
                self.real.pass(TimeDelta::seconds(time)).await;
                self.memory.pass(TimeDelta::seconds(time)).await;
            }
        }
    }

    fn any_job(&mut self) -> JobId {
        match self.begun.last() {
            Some(id) if self.dice.chance(200) => *id,
            _ => self.callers_job(),
        }
    }

    fn callers_job(&mut self) -> JobId {
        JobId::new(Uuid::from_u128(u128::from(self.dice.between(1, 4))))
    }

    async fn insert(&mut self) {
        let id = self.callers_job();
        let Job { owner, cluster, mut spec, .. } = command_job(id.get().as_u128());
        if has_array(id) {
            spec.array =
                Some(JobArray { tasks: ArrayTasks::Indices("0-5".parse().unwrap()), max_parallel: None });
        }
        spec.needs = needs(id);
        if has_array(id) {
            // Task by task, of another array.
            spec.needs.iter_mut().for_each(|need| need.when = NeedWhen::Each);
        }
        let job = Job::accepted(id, owner, cluster, spec, self.now);
        let new = NewJob { job, secrets: secrets(), request_hash: [u8::from(self.dice.chance(200)); 32] };
        let tell = |inserted| match inserted {
            Inserted::Created(job) => format!("created {job:?}"),
            Inserted::Same(job) => format!("same {job:?}"),
            Inserted::Other => "other".to_owned(),
            Inserted::ClusterGone => "cluster gone".to_owned(),
            Inserted::NeedsUnknown(places) => format!("unknown needs {places:?}"),
        };
        let told = (tell(self.real.insert(&new).await), tell(self.memory.insert(&new).await));
        self.same("insert", told);
    }

    async fn request(&mut self) {
        let id = self.any_job();
        let request = match self.dice.below(6) {
            0 => Request::Cancel,
            1 | 2 => Request::Pause,
            3 => Request::Resume,
            // Which tasks are carried again is decided by the caller of the store.
            4 if !has_array(id) => Request::Retry,
            _ => Request::Delete { artifacts: self.dice.chance(500) },
        };
        let reported = |result| match result {
            Requested::Taken(_) if matches!(request, Request::Delete { .. }) => "taken".to_owned(),
            Requested::Taken(job) => format!("taken {job:?}"),
            Requested::Stays(job) => format!("stays {job:?}"),
            Requested::NoJob => "no job".to_owned(),
        };
        let real = reported(self.real.request(id, request, self.now).await);
        let memory = reported(self.memory.request(id, request, self.now).await);
        self.same(&format!("request {request:?}"), (real, memory));
    }

    async fn acquire(&mut self) {
        let (token, lane) = (self.token(), if self.dice.chance(600) { Lane::Submit } else { Lane::Follow });
        let (real, memory) = of_both!(self, acquire_due(&dgx(), lane, token, TERMS));
        let (real, memory) = (real.unwrap(), memory.unwrap());
        self.same("acquire_due", (faces(&real.jobs), faces(&memory.jobs)));
        let jobs = real.jobs.clone();
        if !jobs.is_empty() {
            self.leases.push(((real, memory), jobs));
        }
    }

    /// An earlier lease, which may have expired.
    fn some_lease(&mut self) -> Option<(Pair<Lease>, Vec<Job>)> {
        let count = self.leases.len() as u64;
        (count > 0).then(|| self.leases.swap_remove(usize::try_from(self.dice.below(count)).unwrap()))
    }

    async fn record(&mut self) {
        let Some(((real, memory), jobs)) = self.some_lease() else { return };
        let now = self.now;
        let steps: Vec<Transition> = jobs.iter().map(|job| moves::step(job, &mut self.dice, now)).collect();
        let intents = self.dice.chance(300);
        let stored = if intents {
            let real = self.real.store().record_intents(&real, &steps, now).await;
            (real, self.memory.store().record_intents(&memory, &steps, now).await)
        } else {
            let real = self.real.store().record_steps(&real, &steps, now).await;
            (real, self.memory.store().record_steps(&memory, &steps, now).await)
        };
        let sorted = |ids: Result<_, StoreError>| {
            BTreeSet::from_iter::<std::collections::HashSet<JobId>>(ids.unwrap())
        };
        let stored = (sorted(stored.0), sorted(stored.1));
        if stored.0.is_empty() {
            *self.happened.entry("a result that was dropped".to_owned()).or_default() += 1;
        }
        self.same("record", stored);
        let ids: Vec<JobId> = ids().collect();
        let left = of_both!(self, purge_targets(&ids));
        let told = |left: Result<Vec<_>, StoreError>| -> BTreeSet<String> {
            left.unwrap().iter().map(|left| format!("{left:?}")).collect()
        };
        self.same("remains", (told(left.0), told(left.1)));
        let opened = of_both!(self, open_secrets(&ids));
        let known = |secrets: Result<std::collections::HashMap<JobId, _>, StoreError>| {
            secrets.unwrap().into_keys().collect::<BTreeSet<JobId>>()
        };
        self.same("open_secrets", (known(opened.0), known(opened.1)));
        let needed = of_both!(self, needed(&ids));
        let told = |needed: Result<_, StoreError>| {
            BTreeMap::from_iter::<std::collections::HashMap<JobId, _>>(needed.unwrap())
        };
        self.same("needed", (told(needed.0), told(needed.1)));
        if intents {
            let jobs = steps.into_iter().map(|step| step.job).collect();
            self.leases.push(((real, memory), jobs));
        }
    }

    async fn give_back(&mut self) {
        let Some(((real, memory), jobs)) = self.some_lease() else { return };
        let ids: Vec<JobId> = jobs.iter().map(|job| job.id).collect();
        match self.dice.below(3) {
            0 => {
                let real = self.real.store().extend(&real, LEASE).await;
                let memory = self.memory.store().extend(&memory, LEASE).await;
                self.same("extend", (outcome(&real), outcome(&memory)));
            }
            1 => {
                let again_in = self.dice.chance(500).then_some(LEASE);
                let real = self.real.store().put_off(&real, &jobs, again_in).await;
                let memory = self.memory.store().put_off(&memory, &jobs, again_in).await;
                self.same("put_off", (outcome(&real), outcome(&memory)));
                return;
            }
            _ => {
                let real = self.real.store().delete_purged(&real, &ids).await;
                let memory = self.memory.store().delete_purged(&memory, &ids).await;
                self.same("delete_purged", (outcome(&real), outcome(&memory)));
            }
        }
        self.leases.push(((real, memory), jobs));
    }

    async fn poll(&mut self) {
        let token = self.token();
        let (real, memory) = of_both!(self, acquire_poll(&dgx(), token, LEASE));
        let (real, memory) = (real.unwrap(), memory.unwrap());
        let unreachable_for = |lease: &PollLease| (lease.polled_at, lease.unreachable_for(self.now));
        self.same("acquire_poll", (real.as_ref().map(unreachable_for), memory.as_ref().map(unreachable_for)));
        let jobs = of_both!(self, active_jobs(&dgx()));
        let (active, other) = (jobs.0.unwrap(), jobs.1.unwrap());
        self.same("active_jobs", (faces(&active), faces(&other)));
        let asked: Vec<&ActiveJob> = active.iter().collect();
        let asked = of_both!(self, unchanged_jobs(&asked));
        let (active, other) = (asked.0.unwrap(), asked.1.unwrap());
        self.same("unchanged_jobs", (faces(&active), faces(&other)));
        if let (Some(real), Some(memory)) = (real, memory) {
            self.polls.push(((real, memory), active));
        }
    }

    async fn record_poll(&mut self) {
        let Some(((real, memory), jobs)) = self.polls.pop() else { return };
        let now = self.now;
        let changed: Vec<ObservedChange> =
            jobs.iter().filter_map(|job| moves::seen(job, &mut self.dice, now)).collect();
        let result = match self.dice.below(5) {
            0 => PollResult::Idle,
            1 => PollResult::Unanswered { error: "no route", auth_required: false },
            _ => PollResult::Answered,
        };
        let pause = Duration::from_secs(self.dice.between(0, 3) * 15);
        if self.dice.chance(200) {
            let real = self.real.store().extend_poll(&real, LEASE).await;
            let memory = self.memory.store().extend_poll(&memory, LEASE).await;
            self.same("extend_poll", (outcome(&real), outcome(&memory)));
        }
        if matches!(result, PollResult::Answered) {
            let real = self.real.store().record_observations(&real, &changed, now).await;
            let memory = self.memory.store().record_observations(&memory, &changed, now).await;
            self.same("record_observations", (outcome(&real), outcome(&memory)));
        }
        let real = self.real.store().record_poll(&real, result, pause, now).await;
        let memory = self.memory.store().record_poll(&memory, result, pause, now).await;
        self.same("record_poll", (outcome(&real), outcome(&memory)));
    }

    async fn partitions(&mut self) {
        let taken = of_both!(self, take_partitions_turn(&dgx(), Duration::from_mins(1)));
        self.same("take_partitions_turn", (outcome(&taken.0), outcome(&taken.1)));
        let done = of_both!(self, record_partitions_unanswered(&dgx(), "no route", LEASE, self.now));
        self.same("record_partitions_unanswered", (outcome(&done.0), outcome(&done.1)));
    }

    async fn poll_soon(&mut self) {
        // The server clock and the time of the test are years apart, so no interval between them makes sense.
        let pace = Duration::ZERO;
        if self.polls.is_empty() {
            return;
        }
        let done = of_both!(self, poll_soon(&"other".parse().unwrap(), pace));
        self.same("poll_soon", (outcome(&done.0), outcome(&done.1)));
    }

    /// Compares everything that is stored, and when it is due.
    pub(crate) async fn compare(&mut self) {
        for id in ids().chain(self.begun.clone()) {
            let (real, memory) = (self.real.find(id).await, self.memory.find(id).await);
            assert_eq!(format!("{real:?}"), format!("{memory:?}"), "the job {id}");
            assert_eq!(self.real.events(id).await, self.memory.events(id).await, "the events of {id}");
        }
        for lane in [Lane::Submit, Lane::Follow] {
            let due = of_both!(self, next_due_in(&dgx(), lane));
            assert_near(&format!("what is due in {lane:?}"), due.0.unwrap(), due.1.unwrap());
        }
        let due = of_both!(self, next_poll_in(&dgx()));
        assert_near("the next poll", due.0.unwrap(), due.1.unwrap());
        let due = of_both!(self, next_partitions_in(&dgx()));
        assert_near("the next question for partitions", due.0.unwrap(), due.1.unwrap());
    }
}
