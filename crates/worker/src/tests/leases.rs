//! A lease is extended while a batch is judged. A judgement searches logs, which takes seconds of a busy processor.

use std::{future::poll_fn, pin::pin};

use super::{
    clusters::{job_on, name_of, target, worker},
    *,
};

/// How often a step that judges so many failed jobs gives way to what extends its lease.
async fn pauses(jobs: u128) -> usize {
    let (target, fake) = target("busy", None);
    let (worker, store) = worker(vec![target]);
    let runtime = worker.runtimes().next().unwrap();
    for number in 1..=jobs {
        store.insert_job(&job_on("busy", number));
    }
    worker.take_steps(&runtime, Lane::Submit, None).await.unwrap();
    for number in 1..=jobs {
        fake.set_state(&name_of(number), &SlurmState::Failed, Some(3));
    }
    worker.poll_if_due(&runtime, Duration::ZERO).await.unwrap();
    let mut judged = pin!(worker.take_steps(&runtime, Lane::Follow, None));
    let mut pauses = 0;
    let taken = poll_fn(|context| {
        let judged = judged.as_mut().poll(context);
        pauses += usize::from(judged.is_pending());
        judged
    });
    assert_eq!(taken.await.unwrap() as u128, jobs);
    pauses
}

#[tokio::test]
async fn a_lease_can_be_extended_after_each_judgement() {
    assert_eq!(pauses(12).await, pauses(1).await + 11);
}
