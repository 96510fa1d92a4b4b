//! How the process runs and ends: the only place that spawns tasks, and the one that waits for all of them.
//!
//! A first signal, or the death of any task, asks everybody to finish (`soft`). A second signal, or too long a
//! wait, drops what is left (`hard`). A task that ended without being asked makes the process fail.

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

/// How long dropped tasks may take to notice.
const LAST_MOMENT: Duration = Duration::from_secs(2);

/// The tasks of the process and the two ways to end them.
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
    /// It was asked to.
    Asked,
    /// A task died.
    Failed,
}

impl Lifecycle {
    /// `drain` bounds the wait for tasks that were asked to finish.
    pub(crate) fn new(drain: Duration) -> Self {
        let hard = CancellationToken::new();
        Self { soft: hard.child_token(), hard, tasks: TaskTracker::new(), drain, failed: Arc::default() }
    }

    /// Canceled when everybody is to finish.
    pub(crate) fn soft(&self) -> CancellationToken {
        self.soft.clone()
    }

    /// For tasks that are over soon by themselves; they are waited for, and their death is no other's.
    pub(crate) fn errands(&self) -> TaskTracker {
        self.tasks.clone()
    }

    /// Runs a task until it ends. It is expected to run until it is asked to finish.
    #[expect(clippy::disallowed_methods, reason = "this is the lifecycle that everybody else spawns through")]
    pub(crate) fn spawn(
        &self,
        name: &'static str,
        task: impl Future<Output = anyhow::Result<()>> + Send + 'static,
    ) {
        let (soft, hard, failed) = (self.soft.clone(), self.hard.clone(), Arc::clone(&self.failed));
        // A task of its own, so that its panic is a result and not silence.
        let mut running = tokio::spawn(task);
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
                Ok(Ok(())) => "it ended without being asked".to_owned(),
                Ok(Err(error)) => format!("{error:#}"),
                Err(error) => error.to_string(),
            };
            tracing::error!(task = name, error, "a part of the service has died; stopping");
            failed.store(true, Ordering::Relaxed);
            soft.cancel();
        });
    }

    /// Waits for the end. `signals` are those of [`signals`], or a test's.
    pub(crate) async fn run(self, mut signals: mpsc::Receiver<&'static str>) -> Ending {
        tokio::select! {
            Some(signal) = signals.recv() => {
                tracing::info!(signal, drain_seconds = self.drain.as_secs(), "finishing; a second signal drops what is left");
            }
            () = self.soft.cancelled() => {}
        }
        self.soft.cancel();
        self.tasks.close();
        tokio::select! {
            () = self.tasks.wait() => {}
            Some(signal) = signals.recv() => tracing::warn!(signal, "dropping what is left"),
            () = tokio::time::sleep(self.drain) => tracing::warn!("the time to finish is over; dropping what is left"),
        }
        self.hard.cancel();
        if tokio::time::timeout(LAST_MOMENT, self.tasks.wait()).await.is_err() {
            tracing::warn!("a task does not end; leaving without it");
        }
        if self.failed.load(Ordering::Relaxed) { Ending::Failed } else { Ending::Asked }
    }
}

/// The signals that mean the end.
#[expect(clippy::disallowed_methods, reason = "it lives as long as the process and holds nothing")]
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
    async fn a_signal_ends_it_in_order() {
        let (lifecycle, sender, signals) = started(LONG);
        let soft = lifecycle.soft();
        lifecycle.spawn("patient", async move {
            soft.cancelled().await;
            Ok(())
        });
        sender.send("SIGTERM").await.unwrap();
        assert_eq!(lifecycle.run(signals).await, Ending::Asked);
    }

    #[tokio::test]
    async fn a_dying_task_ends_the_others_and_is_a_failure() {
        for death in ["error", "panic", "early end"] {
            let (lifecycle, _sender, signals) = started(LONG);
            let soft = lifecycle.soft();
            lifecycle.spawn("survivor", async move {
                soft.cancelled().await;
                Ok(())
            });
            lifecycle.spawn("mortal", async move {
                match death {
                    "error" => anyhow::bail!("no more"),
                    "panic" => panic!("no more"),
                    _ => Ok(()),
                }
            });
            assert_eq!(lifecycle.run(signals).await, Ending::Failed, "{death}");
        }
    }

    #[tokio::test]
    async fn a_second_signal_drops_what_does_not_finish() {
        let (lifecycle, sender, signals) = started(LONG);
        lifecycle.spawn("deaf", std::future::pending());
        sender.send("SIGINT").await.unwrap();
        sender.send("SIGINT").await.unwrap();
        assert_eq!(lifecycle.run(signals).await, Ending::Asked);
    }

    #[tokio::test(start_paused = true)]
    async fn what_does_not_finish_in_time_is_dropped() {
        let (lifecycle, sender, signals) = started(Duration::from_mins(1));
        lifecycle.spawn("deaf", std::future::pending());
        sender.send("SIGTERM").await.unwrap();
        let begun = tokio::time::Instant::now();
        assert_eq!(lifecycle.run(signals).await, Ending::Asked);
        assert_eq!(begun.elapsed().as_secs(), 60);
    }
}
