//! A worker on a site that limits requests, in virtual time. The site counts by its own rules and refuses nothing; a test sees whether it would.

use std::{
    any::Any,
    sync::{Mutex, PoisonError},
};

use domain::{RpcBudget, Timestamp};
use remote::{
    Cancel, How, Locate, Partitions, Poll, PollAnswer, SacctOutcome, SqueueOutcome, SubmitAnswer, SubmitBatch,
};
use testkit::MemoryStore;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;

use super::{simulation::clocks::VirtualClock, *};
use crate::Metered;

const SITE: RpcBudget = RpcBudget { burst: 40, per_minute: 4 };
/// The period after which Slurm adds tokens.
const PERIOD: i64 = 60;

/// The requests that Slurm's daemons get.
#[derive(Debug, Default)]
struct Requests(Mutex<Vec<(Timestamp, &'static str, u32)>>);

impl Requests {
    fn all(&self) -> Vec<(Timestamp, &'static str, u32)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The times at which a site with this budget would have refused a request (`rate_limit.c`).
    fn refused(&self, budget: RpcBudget) -> Vec<String> {
        let mut tokens = i64::from(budget.burst);
        let mut last = None;
        let mut refused = Vec::new();
        for (at, _, rpcs) in self.all() {
            let period = at.timestamp() / PERIOD;
            let passed = period - last.replace(period).unwrap_or(period);
            let added = passed * i64::from(budget.per_minute) * PERIOD / 60;
            tokens = (tokens + added).min(budget.burst.into()) - i64::from(rpcs);
            if tokens < 0 {
                refused.push(at.to_string());
                tokens = 0;
            }
        }
        refused
    }
}

#[derive(Debug, Clone)]
struct Site {
    fake: Arc<FakeCluster>,
    clock: VirtualClock,
    requests: Arc<Requests>,
    /// squeue answers that there are too many requests.
    is_busy: Arc<Mutex<bool>>,
}

impl ClusterLink for Site {
    async fn call<C: RemoteCommand>(&self, command: &C) -> Result<C::Output, LinkError> {
        let mut answer = FakeLink(Arc::clone(&self.fake)).call(command).await?;
        let rpcs = requests_of(command, &answer);
        let mut all = self.requests.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push((self.clock.now(), C::NAME, rpcs));
        let is_busy = *self.is_busy.lock().unwrap_or_else(PoisonError::into_inner);
        if is_busy && let Some(poll) = (&mut answer as &mut dyn Any).downcast_mut::<PollAnswer>() {
            let text = "slurm_load_jobs error: Rate limit exceeded, please retry momentarily";
            poll.squeue = SqueueOutcome::Failed(slurm::failure::classify(text));
            poll.sacct = SacctOutcome::NotAsked;
        }
        Ok(answer)
    }
}

/// What the commands of this program were measured to make.
fn requests_of<C: RemoteCommand>(command: &C, answer: &C::Output) -> u32 {
    let number = |count: usize| u32::try_from(count).unwrap();
    let any: &dyn Any = command;
    if any.is::<SubmitBatch>() {
        let answers = (answer as &dyn Any).downcast_ref::<Vec<SubmitAnswer>>().unwrap();
        let new = |answer: &&SubmitAnswer| matches!(answer, SubmitAnswer::Submitted { how: How::New, .. });
        number(answers.iter().filter(new).count())
    } else if any.is::<Poll>() || any.is::<Locate>() {
        4
    } else if let Some(cancel) = any.downcast_ref::<Cancel>() {
        3 + number(cancel.jobs.len())
    } else if any.is::<Partitions>() {
        6
    } else {
        0
    }
}

struct Service {
    fake: Arc<FakeCluster>,
    store: MemoryStore,
    clock: VirtualClock,
    requests: Arc<Requests>,
    is_busy: Arc<Mutex<bool>>,
    /// Ends with it.
    tasks: Mutex<JoinSet<()>>,
}

impl Service {
    /// Starts two workers that share a store and a cluster.
    fn start(budget: Option<RpcBudget>) -> Self {
        let clock = VirtualClock::new();
        let store = MemoryStore::new(Arc::new(clock));
        let (fake, requests) = (Arc::new(FakeCluster::new()), Arc::new(Requests::default()));
        let (mut tasks, is_busy) = (JoinSet::new(), Arc::new(Mutex::new(false)));
        let ids = Arc::new(CountingIds::default());
        for _ in 0..2 {
            let site = Site {
                fake: Arc::clone(&fake),
                clock,
                requests: Arc::clone(&requests),
                is_busy: Arc::clone(&is_busy),
            };
            let cluster = Cluster { rpc_budget: budget, ..cluster() };
            let link = Metered::new(site, store.clone(), cluster.name.clone(), budget);
            let pace = Pace { min: Duration::from_secs(5), max: Duration::from_mins(1) };
            let settings = WorkerSettings {
                lease: Duration::from_secs(30),
                batch: 64,
                graces: Graces::default(),
                partitions_every: Duration::from_mins(5),
            };
            let target = ClusterTarget { cluster, incarnation: None, link, pace };
            let ids = Arc::<CountingIds>::clone(&ids);
            let worker = Worker::new(store.clone(), vec![target], settings, Arc::new(clock), ids);
            tasks.spawn(async move { Arc::new(worker).run(CancellationToken::new()).await.unwrap() });
        }
        Self { fake, store, clock, requests, is_busy, tasks: Mutex::new(tasks) }
    }

    fn accept(&self, jobs: std::ops::RangeInclusive<u128>) -> Vec<JobId> {
        let accept = |number| {
            let job = Job { created_at: self.clock.now(), ..command_job(number) };
            let id = job.id;
            self.store.insert_job(&NewJob { job, secrets: Secrets::default(), request_hash: [0; 32] });
            id
        };
        jobs.map(accept).collect()
    }

    /// Waits in virtual time.
    async fn until(&self, limit: Duration, what: impl Fn() -> bool) -> Duration {
        let began = Instant::now();
        while !what() {
            assert!(began.elapsed() < limit, "not within {limit:?}: {:?}", self.requests.all());
            sleep(Duration::from_secs(1)).await;
        }
        began.elapsed()
    }

    /// Asks for the last one first, because it is the last one to be submitted.
    fn have_ended(&self, ids: &[JobId]) -> bool {
        ids.iter().rev().all(|id| self.store.find_job(*id).unwrap().phase == Phase::Ended)
    }

    /// Every job ends some seconds after Slurm has it.
    fn run_jobs(&self) {
        let fake = Arc::clone(&self.fake);
        self.tasks.lock().unwrap().spawn(async move {
            loop {
                sleep(Duration::from_secs(10)).await;
                fake.complete_all();
            }
        });
    }
}

#[tokio::test(start_paused = true)]
async fn a_thousand_jobs_finish_and_the_site_refuses_no_request() {
    let service = Service::start(Some(SITE));
    let ids = service.accept(1..=1000);
    service.run_jobs();
    service.until(Duration::from_hours(12), || service.have_ended(&ids)).await;
    assert_eq!(service.requests.refused(SITE), Vec::<String>::new());
    let all = service.requests.all();
    assert_eq!(all.iter().filter(|(_, name, _)| *name == "submit").map(|(.., rpcs)| rpcs).sum::<u32>(), 1000);
    assert!(all.iter().any(|(_, name, _)| *name == "poll"), "polls starve");
}

#[tokio::test(start_paused = true)]
async fn without_a_budget_the_same_jobs_are_refused() {
    let service = Service::start(None);
    let ids = service.accept(1..=200);
    service.run_jobs();
    service.until(Duration::from_mins(5), || service.have_ended(&ids)).await;
    assert!(!service.requests.refused(SITE).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_overtakes_the_submissions_that_wait() {
    let service = Service::start(Some(SITE));
    let ids = service.accept(1..=150);
    let in_queue = || service.store.find_job(ids[0]).unwrap().phase == Phase::InQueue;
    service.until(Duration::from_mins(1), in_queue).await;
    sleep(Duration::from_mins(10)).await;
    service.store.request_cancel(ids[0], service.clock.now());
    let is_sent = || service.requests.all().iter().any(|(_, name, _)| *name == "cancel");
    let took = service.until(Duration::from_mins(10), is_sent).await;
    assert!(took <= Duration::from_secs(2), "{took:?}");
    // A job that has not been submitted needs no request.
    let last = ids[149];
    service.store.request_cancel(last, service.clock.now());
    let took = service.until(Duration::from_mins(10), || service.have_ended(&[last])).await;
    assert!(took <= Duration::from_secs(6), "{took:?}");
    assert_eq!(service.requests.refused(SITE), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn many_cancellations_leave_room_for_the_poll_that_confirms_them() {
    let service = Service::start(Some(SITE));
    let ids = service.accept(1..=60);
    service
        .until(Duration::from_hours(1), || {
            ids.iter().all(|id| service.store.find_job(*id).unwrap().phase == Phase::InQueue)
        })
        .await;
    for id in &ids {
        service.store.request_cancel(*id, service.clock.now());
    }
    service.until(Duration::from_hours(2), || service.have_ended(&ids)).await;
    assert_eq!(service.requests.refused(SITE), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_there_are_too_many_requests_slows_the_service_and_fails_nothing() {
    let service = Service::start(Some(SITE));
    let ids = service.accept(1..=5);
    service
        .until(Duration::from_mins(1), || service.fake.submissions(&format!("tao-job-{}", ids[4])) == 1)
        .await;
    *service.is_busy.lock().unwrap() = true;
    let before = service.requests.all().len();
    sleep(Duration::from_mins(20)).await;
    let polls = service.requests.all().len() - before;
    assert!((2..=25).contains(&polls), "{polls} commands");
    *service.is_busy.lock().unwrap() = false;
    service.run_jobs();
    service.until(Duration::from_mins(20), || service.have_ended(&ids)).await;
    let statuses = ids.iter().map(|id| service.store.find_job(*id).unwrap().status);
    assert_eq!(statuses.collect::<Vec<_>>(), [Status::Done; 5]);
}
