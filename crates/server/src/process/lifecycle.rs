//! Starting and stopping the process. All tasks are spawned here, and the process waits for all of them.
//!
//! The first signal, or the end of any task, requests a stop: all tasks finish their work (`soft`). A second signal, or a
//! timeout, aborts the remaining tasks (`hard`). If a task ends without a requested stop, the process fails.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// How long aborted tasks may take to end.
const ABORT_TIMEOUT: Duration = Duration::from_secs(2);

/// The tasks of the process, and the two ways to stop them.
pub(crate) struct Lifecycle {
    soft: CancellationToken,
    hard: CancellationToken,
    tasks: TaskTracker,
    drain: Duration,
    failed: Arc<AtomicBool>,
}

/// How the process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// By a signal.
    Requested,
    /// By the end of a task.
    Failed,
}

impl Lifecycle {
    /// `drain` limits how long tasks may take to finish their work.
    pub(crate) fn new(drain: Duration) -> Self {
        let hard = CancellationToken::new();
        Self { soft: hard.child_token(), hard, tasks: TaskTracker::new(), drain, failed: Arc::default() }
    }

    /// Canceled when a stop is requested.
    pub(crate) fn soft(&self) -> CancellationToken {
        self.soft.clone()
    }

    /// For short tasks. The process waits for them, but their failure does not stop it.
    pub(crate) fn errands(&self) -> TaskTracker {
        self.tasks.clone()
    }

    /// Runs a task that goes on until the given token is canceled.
    pub(crate) fn spawn_loop<F: Future<Output = ()> + Send + 'static>(
        &self,
        name: &'static str,
        task: impl FnOnce(CancellationToken) -> F,
    ) {
        let task = task(self.soft());
        self.spawn(name, |_| async {
            task.await;
            Ok(())
        });
    }

    /// As [`Self::spawn_loop`], for a task that may fail.
    #[expect(clippy::disallowed_methods, reason = "all other code spawns its tasks through this")]
    pub(crate) fn spawn<F: Future<Output = anyhow::Result<()>> + Send + 'static>(
        &self,
        name: &'static str,
        task: impl FnOnce(CancellationToken) -> F,
    ) {
        let (soft, hard, failed) = (self.soft.clone(), self.hard.clone(), Arc::clone(&self.failed));
        // In a task of its own, so that a panic becomes a result.
        let mut running = tokio::spawn(task(self.soft()));
        self.tasks.spawn(async move {
            let ended = tokio::select! {
                ended = &mut running => ended,
                () = hard.cancelled() => {
                    running.abort();
                    return;
                }
            };
            let error = match ended {
                Ok(Ok(())) if soft.is_cancelled() => return,
                Ok(Ok(())) => "it ended unexpectedly".to_owned(),
                Ok(Err(error)) => format!("{error:#}"),
                Err(error) => error.to_string(),
            };
            tracing::error!(task = name, error, "a task of the service has failed; stopping");
            failed.store(true, Ordering::Relaxed);
            soft.cancel();
        });
    }

    /// Waits for a signal or a failure, then stops all tasks.
    pub(crate) async fn run(self, mut signals: mpsc::Receiver<&'static str>) -> Ending {
        tokio::select! {
            Some(signal) = signals.recv() => {
                tracing::info!(signal, drain_seconds = self.drain.as_secs(), "stopping: tasks finish their work; a second signal aborts them");
            }
            () = self.soft.cancelled() => {}
        }
        self.soft.cancel();
        self.tasks.close();
        tokio::select! {
            () = self.tasks.wait() => {}
            Some(signal) = signals.recv() => tracing::warn!(signal, "aborting the remaining tasks"),
            () = tokio::time::sleep(self.drain) => tracing::warn!("server.drain_timeout is over; aborting the remaining tasks"),
        }
        self.hard.cancel();
        if tokio::time::timeout(ABORT_TIMEOUT, self.tasks.wait()).await.is_err() {
            tracing::warn!("a task does not end; exiting without it");
        }
        if self.failed.load(Ordering::Relaxed) { Ending::Failed } else { Ending::Requested }
    }
}

/// The signals that stop the process, by name.
#[expect(clippy::disallowed_methods, reason = "it runs as long as the process and holds nothing")]
pub(crate) fn signals() -> io::Result<mpsc::Receiver<&'static str>> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let (sender, receiver) = mpsc::channel(4);
    tokio::spawn(async move {
        loop {
            let name = tokio::select! {
                Some(()) = terminate.recv() => "SIGTERM",
                Some(()) = interrupt.recv() => "SIGINT",
                else => return,
            };
            if sender.send(name).await.is_err() {
                return;
            }
        }
    });
    Ok(receiver)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_mins(10);

    fn started(drain: Duration) -> (Lifecycle, mpsc::Sender<&'static str>, mpsc::Receiver<&'static str>) {
        let (sender, receiver) = mpsc::channel(4);
        (Lifecycle::new(drain), sender, receiver)
    }

    #[tokio::test]
    async fn a_signal_stops_all_tasks() {
        let (lifecycle, sender, signals) = started(LONG);
        lifecycle.spawn_loop("patient", |soft| async move { soft.cancelled().await });
        sender.send("SIGTERM").await.unwrap();
        assert_eq!(lifecycle.run(signals).await, Ending::Requested);
    }

    #[tokio::test]
    async fn a_failed_task_stops_the_others_and_the_process_fails() {
        for failure in ["error", "panic", "early end"] {
            let (lifecycle, _sender, signals) = started(LONG);
            lifecycle.spawn_loop("healthy", |soft| async move { soft.cancelled().await });
            lifecycle.spawn("failing", |_| async move {
                match failure {
                    "error" => anyhow::bail!("failed"),
                    "panic" => panic!("failed"),
                    _ => Ok(()),
                }
            });
            assert_eq!(lifecycle.run(signals).await, Ending::Failed, "{failure}");
        }
    }

    #[tokio::test]
    async fn a_second_signal_aborts_the_remaining_tasks() {
        let (lifecycle, sender, signals) = started(LONG);
        lifecycle.spawn_loop("stuck", |_| std::future::pending());
        sender.send("SIGINT").await.unwrap();
        sender.send("SIGINT").await.unwrap();
        assert_eq!(lifecycle.run(signals).await, Ending::Requested);
    }

    #[tokio::test(start_paused = true)]
    async fn tasks_that_do_not_finish_in_time_are_aborted() {
        let (lifecycle, sender, signals) = started(Duration::from_mins(1));
        lifecycle.spawn_loop("stuck", |_| std::future::pending());
        sender.send("SIGTERM").await.unwrap();
        let begun = tokio::time::Instant::now();
        assert_eq!(lifecycle.run(signals).await, Ending::Requested);
        assert_eq!(begun.elapsed().as_secs(), 60);
    }
}
