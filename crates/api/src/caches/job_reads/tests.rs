use tokio::sync::{Semaphore, mpsc};

use super::*;

/// Reads that wait until they are let through, and the ids that each of them was asked for.
fn held() -> (JobReads, Arc<Semaphore>, mpsc::UnboundedReceiver<Vec<JobId>>) {
    let gate = Arc::new(Semaphore::new(0));
    let (seen, asked) = mpsc::unbounded_channel();
    let passes = Arc::clone(&gate);
    let reads = JobReads::new(TaskTracker::new(), move |ids| {
        let (gate, seen) = (Arc::clone(&passes), seen.clone());
        Box::pin(async move {
            seen.send(ids.clone()).unwrap();
            gate.acquire().await.unwrap().forget();
            Ok(ids.into_iter().filter(|id| *id != id_of(404)).map(|id| (id, Arc::new(job(id)))).collect())
        })
    });
    (reads, gate, asked)
}

fn id_of(number: u128) -> JobId {
    JobId::new(uuid::Uuid::from_u128(number))
}

fn job(id: JobId) -> Job {
    let mut job = testkit::command_job(1);
    job.id = id;
    job
}

fn ask(reads: &JobReads, number: u128) -> tokio::task::JoinHandle<Answer> {
    let reads = reads.clone();
    TaskTracker::new().spawn(async move { reads.find(id_of(number)).await })
}

#[tokio::test]
async fn reads_during_a_statement_share_the_next_one() {
    let (reads, gate, mut asked) = held();
    let mut callers = vec![ask(&reads, 1)];
    assert_eq!(asked.recv().await.unwrap(), [id_of(1)], "one statement is under way");
    for number in [3, 4, 4, 1] {
        callers.push(ask(&reads, number));
    }
    while reads.0.desk().waiting.values().map(Vec::len).sum::<usize>() < 4 {
        tokio::task::yield_now().await;
    }
    gate.add_permits(1);
    let mut second = asked.recv().await.unwrap();
    second.sort_unstable();
    assert_eq!(second, [1, 3, 4].map(id_of), "also the job that is being read: it may have changed since");
    gate.add_permits(1);
    for (caller, number) in callers.into_iter().zip([1, 3, 4, 4, 1]) {
        assert_eq!(caller.await.unwrap().unwrap().unwrap().id, id_of(number));
    }
    assert!(asked.try_recv().is_err(), "two statements for five questions");
}

#[tokio::test]
async fn after_an_idle_time_a_new_reader_starts() {
    let (reads, gate, _asked) = held();
    gate.add_permits(2);
    assert!(reads.find(id_of(1)).await.unwrap().is_some());
    while reads.0.desk().is_read {
        tokio::task::yield_now().await;
    }
    assert!(reads.find(id_of(404)).await.unwrap().is_none());
}

#[tokio::test]
async fn an_error_is_shared_by_all_callers() {
    let reads = JobReads::new(TaskTracker::new(), |_| {
        Box::pin(async { Err(StoreError::Unstorable("the disk is gone")) })
    });
    let both = tokio::join!(reads.find(id_of(1)), reads.find(id_of(2)));
    assert!(both.0.is_err() && both.1.is_err());
}

#[tokio::test]
async fn a_caller_that_goes_away_does_not_block_other_callers() {
    let (reads, gate, mut asked) = held();
    let gone = ask(&reads, 1);
    asked.recv().await.unwrap();
    gone.abort();
    let (second, third) = (ask(&reads, 2), ask(&reads, 3));
    gate.add_permits(3);
    assert!(second.await.unwrap().unwrap().is_some() && third.await.unwrap().unwrap().is_some());
}

#[tokio::test]
async fn a_reader_that_panics_does_not_affect_later_reads() {
    let reads = JobReads::new(TaskTracker::new(), |ids| {
        Box::pin(async move {
            assert_ne!(ids, [id_of(13)], "an unlucky number");
            Ok(ids.into_iter().map(|id| (id, Arc::new(job(id)))).collect())
        })
    });
    assert!(reads.find(id_of(13)).await.unwrap().is_none());
    assert!(reads.find(id_of(1)).await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_statement_that_hangs_times_out_and_the_next_one_runs() {
    let reads = JobReads::new(TaskTracker::new(), |ids| {
        Box::pin(async move {
            if ids == [id_of(13)] {
                std::future::pending::<()>().await;
            }
            Ok(ids.into_iter().map(|id| (id, Arc::new(job(id)))).collect())
        })
    });
    let hanging = ask(&reads, 13);
    while !reads.0.desk().is_read || !reads.0.desk().waiting.is_empty() {
        tokio::task::yield_now().await;
    }
    let next = ask(&reads, 1);
    let given_up = hanging.await.unwrap().unwrap_err();
    assert!(given_up.is_unavailable(), "{given_up}");
    assert_eq!(next.await.unwrap().unwrap().unwrap().id, id_of(1));
}

#[test]
fn a_statement_reads_a_bounded_number_of_jobs() {
    let sender = || vec![oneshot::channel().0];
    let mut waiting: Turn = (0..300).map(|number| (id_of(number), sender())).collect();
    assert_eq!((take(&mut waiting).len(), waiting.len()), (BATCH, 300 - BATCH));
    assert_eq!(take(&mut waiting).len(), 300 - BATCH);
    assert!(waiting.is_empty());
}
