//! What both stores promise of jobs with an array.

use domain::{ArrayTasks, AttemptNo, Job, JobArray, Phase, Run, Status, TaskEnding, TaskOutcome, Transition};
use persistence::{
    ConcludedTask, DueJobs as _, Inserted, Lane, Lease, NewJob, ObservedTask, PollTurns as _,
    StepRecords as _, TaskPolls as _, TaskRecords as _,
};
use slurm::SlurmJobId;
use testkit::command_job;
use uuid::Uuid;

use crate::{
    moves::failure,
    promises::{NOW, TERMS, dgx, lease},
    sides::{LEASE, Request, Side, secrets},
};

async fn lease_in_slurm(side: &impl Side, token: u128) -> Lease {
    side.store().acquire_due(&dgx(), Lane::Follow, Uuid::from_u128(token), TERMS).await.unwrap()
}

/// A job of four tasks, whose runs are over.
async fn ran(side: &impl Side) -> Job {
    let mut spec = command_job(1).spec;
    spec.array = Some(JobArray { tasks: ArrayTasks::Indices("0-3".parse().unwrap()), max_parallel: None });
    let Job { id, owner, cluster, .. } = command_job(1);
    let job = Job::accepted(id, owner, cluster, spec, NOW);
    let new = NewJob { job, secrets: secrets(), request_hash: [0; 32] };
    let Inserted::Created(mut job) = side.insert(&new).await else { panic!("it exists") };
    let held = lease(side, 1).await;
    let mut attempt = job.new_attempt("/lustre/users/tao".parse().unwrap(), NOW).unwrap();
    (attempt.tasks, attempt.slurm_id, attempt.submitted_at) =
        (job.spec.tasks(), SlurmJobId::new(7), Some(NOW));
    job.begin_attempt(attempt);
    job.phase = Phase::InQueue;
    let step = [Transition { job: job.clone(), due_at: Some(NOW) }];
    assert_eq!(side.store().record_steps(&held, &step, NOW).await.unwrap().len(), 1);
    let poll = side.store().acquire_poll(&dgx(), Uuid::from_u128(2), LEASE).await.unwrap().unwrap();
    let over = (0..4).map(|task| ObservedTask {
        job: job.id,
        attempt: AttemptNo::FIRST,
        run: Run { task, is_over: true, ..Run::default() },
    });
    let over: Vec<ObservedTask> = over.collect();
    side.store().record_observed_tasks(&poll, &over, NOW).await.unwrap();
    job
}

pub(crate) async fn an_array_that_failed_has_the_failure_of_its_first_failed_task(side: impl Side) {
    let job = ran(&side).await;
    let shown = async || {
        let found = side.find(job.id).await.unwrap();
        found.failure().map(|failure| failure.rule.clone())
    };
    let held = lease_in_slurm(&side, 3).await;
    let ended = side.store().ended_tasks(&held.jobs, 10).await.unwrap();
    let concluded = ended.into_iter().map(|task| {
        let mut run = task.ended.run;
        let (outcome, rule) = match run.task {
            0 => (TaskOutcome::Retried, Some("node_fail")),
            1 => (TaskOutcome::Error, None),
            2 => (TaskOutcome::Error, Some("python-error")),
            _ => (TaskOutcome::Error, Some("file-missing")),
        };
        run.failure = rule.map(failure);
        let ending =
            TaskEnding { run, outcome: Some(outcome), message: "so".to_owned(), failure: None, until: None };
        ConcludedTask { job: job.id, attempt: AttemptNo::FIRST, ending }
    });
    let concluded: Vec<ConcludedTask> = concluded.collect();
    let runs: Vec<&ConcludedTask> = concluded.iter().collect();
    let step = [Transition { job: held.jobs[0].clone(), due_at: Some(NOW) }];
    assert_eq!(side.store().record_tended(&held, &step, &runs, NOW).await.unwrap().len(), 1);
    assert_eq!(shown().await, None, "it has not ended");

    let held = lease_in_slurm(&side, 4).await;
    let mut ended = held.jobs[0].clone();
    (ended.status, ended.phase, ended.finished_at) = (Status::Error, Phase::Ended, Some(NOW));
    let step = [Transition { job: ended, due_at: None }];
    assert_eq!(side.store().record_steps(&held, &step, NOW).await.unwrap().len(), 1);
    assert_eq!(shown().await.as_deref(), Some("python-error"));

    side.request(job.id, Request::Retry, NOW).await;
    assert_eq!(shown().await, None, "it goes again");
}
