//! Commands on their way into the timeline: collected here and written in batches, without making the command wait.
//! Commands that find no room, or no database, are lost and counted.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use domain::{Clock, Timestamp};
use persistence::{CommandRun, Store};
use tokio::{sync::mpsc, time::timeout};
use tokio_util::sync::CancellationToken;

/// The most commands that wait to be written: some seconds of the busiest cluster.
const WAITING: usize = 4096;
/// The most that one statement writes.
const MOST: usize = 500;
/// How long a batch waits for more.
const GATHER: Duration = Duration::from_millis(300);
/// How often the writer checks for the last command when the service stops.
const LAST: Duration = Duration::from_millis(50);

/// Takes commands that have ended. Clones share the queue.
#[derive(Clone)]
pub struct Timeline {
    sender: mpsc::Sender<CommandRun>,
    clock: Arc<dyn Clock>,
    under_way: Arc<AtomicUsize>,
}

/// Writes the commands of a [`Timeline`].
#[derive(Debug)]
pub struct TimelineWriter {
    receiver: mpsc::Receiver<CommandRun>,
    under_way: Arc<AtomicUsize>,
    store: Store,
}

/// A command under way: the writer waits for it before it ends.
pub(crate) struct UnderWay {
    pub(crate) since: Timestamp,
    counted: Arc<AtomicUsize>,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.counted.fetch_sub(1, Ordering::Relaxed);
    }
}

impl std::fmt::Debug for Timeline {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Timeline").finish_non_exhaustive()
    }
}

impl Timeline {
    pub fn new(store: Store, clock: Arc<dyn Clock>) -> (Self, TimelineWriter) {
        // Shown as 0 from the start.
        for why in ["no_room", "database"] {
            lost(0, why);
        }
        let (sender, receiver) = mpsc::channel(WAITING);
        let under_way = Arc::new(AtomicUsize::new(0));
        let writer = TimelineWriter { receiver, under_way: Arc::clone(&under_way), store };
        (Self { sender, clock, under_way }, writer)
    }

    /// Begins a command.
    pub(crate) fn begin(&self) -> UnderWay {
        self.under_way.fetch_add(1, Ordering::Relaxed);
        UnderWay { since: self.clock.now(), counted: Arc::clone(&self.under_way) }
    }

    /// Adds a command that has ended.
    pub(crate) fn note(&self, run: CommandRun) {
        if !run.subjects.is_empty() && self.sender.try_send(run).is_err() {
            lost(1, "no_room");
        }
    }
}

impl TimelineWriter {
    /// Writes until `stop`, then the commands still under way.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut batch = Vec::with_capacity(MOST);
        loop {
            let taken = tokio::select! {
                biased;
                taken = self.receiver.recv_many(&mut batch, MOST) => taken,
                () = stop.cancelled() => break,
            };
            if taken == 0 {
                return;
            }
            // Commands that end within this time go into the same statement.
            let more = async {
                while batch.len() < MOST {
                    let room = MOST - batch.len();
                    if self.receiver.recv_many(&mut batch, room).await == 0 {
                        return;
                    }
                }
            };
            let _over = stop.run_until_cancelled(timeout(GATHER, more)).await;
            self.write(&mut batch).await;
        }
        loop {
            let more = timeout(LAST, self.receiver.recv_many(&mut batch, MOST)).await;
            self.write(&mut batch).await;
            if more == Ok(0) || self.under_way.load(Ordering::Relaxed) == 0 && self.receiver.is_empty() {
                return;
            }
        }
    }

    async fn write(&self, batch: &mut Vec<CommandRun>) {
        if let Err(error) = self.store.record_commands(batch).await {
            tracing::warn!(error = %error, commands = batch.len(), "commands could not be written; the timelines of jobs have a gap");
            lost(batch.len(), "database");
        }
        batch.clear();
    }
}

fn lost(commands: usize, why: &'static str) {
    metrics::counter!("tao_slurm_timeline_commands_lost_total", "why" => why).increment(commands as u64);
}

#[cfg(test)]
mod tests {
    use persistence::Sealer;
    use remote::{CommandResult, Subject};
    use sqlx::PgPool;

    use super::*;

    fn poll() -> CommandRun {
        CommandRun {
            cluster: "dgx".parse().unwrap(),
            class: "poll",
            host: None,
            started_at: chrono::DateTime::UNIX_EPOCH,
            duration: Duration::ZERO,
            result: CommandResult::Ok,
            exit_code: None,
            bytes: None,
            jobs: 1,
            subjects: vec![(Subject::Cluster, None)],
        }
    }

    fn timeline(pool: &PgPool) -> (Timeline, TimelineWriter) {
        Timeline::new(
            Store::from_pool(pool.clone(), Sealer::from_key([7; 32])),
            Arc::new(testkit::HandClock::new()),
        )
    }

    async fn stored(pool: &PgPool) -> usize {
        let rows: i64 = sqlx::query_scalar("select count(*) from timeline").fetch_one(pool).await.unwrap();
        usize::try_from(rows).unwrap()
    }

    #[sqlx::test(migrator = "persistence::MIGRATOR")]
    async fn what_is_under_way_when_the_service_stops_is_written_and_what_finds_no_room_is_not_waited_for(
        pool: PgPool,
    ) {
        let (timeline, writer) = timeline(&pool);
        for _ in 0..WAITING + 10 {
            timeline.note(poll());
        }
        let under_way = timeline.begin();
        let stop = CancellationToken::new();
        stop.cancel();
        let last = async {
            while stored(&pool).await < WAITING {
                tokio::task::yield_now().await;
            }
            timeline.note(CommandRun { cluster: "last".parse().unwrap(), ..poll() });
            drop(under_way);
        };
        tokio::join!(writer.run(stop.clone()), last);
        let clusters: i64 = sqlx::query_scalar("select count(distinct cluster) from timeline")
            .fetch_one(&pool)
            .await
            .unwrap();
        assert_eq!(clusters, 2, "the command that was under way is missing");
        assert_eq!(timeline.sender.capacity(), WAITING);
    }

    #[sqlx::test(migrator = "persistence::MIGRATOR")]
    async fn what_the_database_refuses_is_a_gap_and_what_comes_after_it_is_written(pool: PgPool) {
        let (timeline, writer) = timeline(&pool);
        // Longer than the database has numbers for.
        timeline.note(CommandRun { duration: Duration::MAX, ..poll() });
        let under_way = timeline.begin();
        let stop = CancellationToken::new();
        stop.cancel();
        let rest = async {
            while timeline.sender.capacity() < WAITING {
                tokio::task::yield_now().await;
            }
            timeline.note(poll());
            drop(under_way);
        };
        tokio::join!(writer.run(stop.clone()), rest);
        assert_eq!(stored(&pool).await, 1);
    }
}
