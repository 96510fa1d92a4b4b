use remote::{LogChunk, LogFrom, Subject};
use tokio::sync::Semaphore as Gate;

use super::*;
use crate::ports::LogReading;

/// Answers each question with its own offset; a command waits at the gate.
struct Echo {
    gate: Arc<Gate>,
    commands: Mutex<Vec<usize>>,
}

impl LogSource for Echo {
    fn ask(&self, _: &ClusterName, questions: Vec<LogQuestion>) -> LogReading {
        lock(&self.commands).push(questions.len());
        let gate = Arc::clone(&self.gate);
        Box::pin(async move {
            gate.acquire().await.unwrap().forget();
            Ok(questions.iter().map(echoed).collect())
        })
    }
}

fn echoed(question: &LogQuestion) -> LogAnswer {
    let LogQuestion::Part { paths, from: LogFrom::Offset(offset), .. } = question else {
        return LogAnswer::Missing;
    };
    LogAnswer::Chunk(LogChunk {
        path: paths[0].clone(),
        size: 0,
        inode: 0,
        start: *offset,
        bytes: Vec::new(),
    })
}

fn question(offset: u64) -> LogQuestion {
    let subject = Subject::Job(uuid::Uuid::nil());
    let paths = vec!["/a".parse().unwrap()];
    LogQuestion::Part { subject, paths, from: LogFrom::Offset(offset), max_bytes: 1000 }
}

fn reads(open: usize) -> (Arc<Echo>, LogReads) {
    let echo = Arc::new(Echo { gate: Arc::new(Gate::new(open)), commands: Mutex::default() });
    (Arc::clone(&echo), LogReads::new(echo, Duration::from_secs(10), 4))
}

async fn start(reads: &LogReads, cluster: &str, offset: u64) -> Result<u64, LogUnavailable> {
    let answers = reads.together(&cluster.parse().unwrap(), &[question(offset)]).await?;
    let LogAnswer::Chunk(chunk) = &*answers[0] else { panic!("{answers:?}") };
    Ok(chunk.start)
}

#[tokio::test(start_paused = true)]
async fn fifty_reads_of_the_same_bytes_are_one_question_of_one_command() {
    let (echo, reads) = reads(1);
    let all = futures_util::future::join_all((0..50).map(|_| start(&reads, "dgx", 7))).await;
    assert!(all.iter().all(|start| *start == Ok(7)));
    assert_eq!(*lock(&echo.commands), [1]);
}

#[tokio::test(start_paused = true)]
async fn several_logs_of_a_cluster_are_one_command_and_each_gets_its_own() {
    let (echo, reads) = reads(2);
    let all = futures_util::future::join_all((0..5).map(|offset| start(&reads, "dgx", offset))).await;
    assert_eq!(all, (0..5).map(Ok).collect::<Vec<_>>());
    start(&reads, "other", 9).await.unwrap();
    assert_eq!(*lock(&echo.commands), [5, 1]);
}

#[tokio::test(start_paused = true)]
async fn reads_during_a_command_share_the_next_one() {
    let (echo, reads) = reads(0);
    let later = async {
        while lock(&echo.commands).is_empty() {
            tokio::task::yield_now().await;
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        let both = async { tokio::join!(start(&reads, "dgx", 2), start(&reads, "dgx", 3)) };
        tokio::pin!(both);
        assert!((&mut both).now_or_never().is_none());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!((&mut both).now_or_never().is_none());
        assert_eq!(*lock(&echo.commands), [1], "one command of a cluster at a time");
        echo.gate.add_permits(2);
        both.await
    };
    let (first, others) = tokio::join!(start(&reads, "dgx", 1), later);
    assert_eq!((first, others), (Ok(1), (Ok(2), Ok(3))));
    assert_eq!(*lock(&echo.commands), [1, 2]);
}

#[tokio::test(start_paused = true)]
async fn a_read_that_is_dropped_leaves_the_others_their_answer_and_the_last_one_ends_the_command() {
    let (echo, reads) = reads(0);
    let mut first = Box::pin(start(&reads, "dgx", 1));
    let mut second = Box::pin(start(&reads, "dgx", 1));
    assert!((&mut first).now_or_never().is_none() && (&mut second).now_or_never().is_none());
    tokio::time::advance(Duration::from_secs(1)).await;
    assert!((&mut first).now_or_never().is_none());
    drop(first);
    echo.gate.add_permits(1);
    assert_eq!(second.await, Ok(1));

    let mut lonely = Box::pin(start(&reads, "dgx", 1));
    assert!((&mut lonely).now_or_never().is_none());
    tokio::time::advance(Duration::from_secs(1)).await;
    assert!((&mut lonely).now_or_never().is_none());
    drop(lonely);
    echo.gate.add_permits(1);
    assert_eq!(start(&reads, "dgx", 4).await, Ok(4), "nobody's turn is lost");
}

#[tokio::test(start_paused = true)]
async fn too_much_for_one_command_is_two() {
    let (echo, reads) = reads(3);
    let big = |offset| LogQuestion::Part {
        subject: Subject::Job(uuid::Uuid::nil()),
        paths: vec!["/a".parse().unwrap()],
        from: LogFrom::Offset(offset),
        max_bytes: MOST_BYTES / 2,
    };
    let dgx = "dgx".parse().unwrap();
    let questions: Vec<_> = (0..3).map(|offset| [big(offset)]).collect();
    let all = futures_util::future::join_all(questions.iter().map(|q| reads.together(&dgx, q))).await;
    assert!(all.iter().all(Result::is_ok));
    assert_eq!(*lock(&echo.commands), [2, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_does_not_answer_is_unavailable_after_a_while() {
    let (_, reads) = reads(0);
    let begun = tokio::time::Instant::now();
    let refused = start(&reads, "dgx", 1).await.unwrap_err();
    assert!(refused.detail.contains("within 10 s"), "{refused}");
    assert!(begun.elapsed() < Duration::from_secs(11));
    let dgx = "dgx".parse().unwrap();
    assert!(reads.at_once(&dgx, vec![question(1)]).await.is_err());
}
