//! The asynchronous face: commands in, answers out. The threads behind it are in `worker`.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::keys::key_file::warn_if_exposed;
use crate::pool::hosts::Hosts;
use crate::pool::queue::{Job, Queue, Ticket};
use crate::pool::thread::{Shared, Worker};
use crate::session::readiness::wake_pair;
use crate::{Command, Doubt, HostPort, Output, PoolHealth, SshConfig, SshError};

/// How much later than the deadline of a command its threads may answer.
const MARGIN: Duration = Duration::from_secs(15);
/// How long `close` lets a running command go on.
const CLOSE_BOUND: Duration = Duration::from_secs(10);

/// The sessions of one cluster. Clones share them; the last one to go closes them.
#[derive(Clone)]
pub struct SshPool {
    handle: Arc<Handle>,
}

struct Handle {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl SshPool {
    /// A pool that has not connected yet; the first command does.
    pub fn start(config: SshConfig) -> Self {
        if let Some(path) = &config.key_path {
            warn_if_exposed(path);
        }
        let pairs = (0..config.session_count()).filter_map(|_| wake_pair().ok());
        let (wakers, wake_ups): (Vec<_>, Vec<_>) = pairs.unzip();
        let shared = Arc::new(Shared {
            hosts: Hosts::new(&config.hosts),
            config,
            queue: Queue::new(wakers),
            commands_total: AtomicU64::new(0),
            failures_total: AtomicU64::new(0),
            closing: OnceLock::new(),
        });
        let spawn = |(index, wake_ups)| {
            let worker = Worker::new(Arc::clone(&shared), index, wake_ups);
            thread::Builder::new().name(format!("ssh-{index}")).spawn(move || worker.run())
        };
        let started: Result<Vec<_>, _> = wake_ups.into_iter().enumerate().map(spawn).collect();
        let threads = started.unwrap_or_else(|error| {
            tracing::error!(%error, "no threads for SSH sessions");
            // Without its threads a command would wait for ever: a closed pool answers.
            shared.queue.close();
            Vec::new()
        });
        Self { handle: Arc::new(Handle { shared, threads: Mutex::new(threads) }) }
    }

    /// Runs a command on a login host and waits for its end.
    ///
    /// The command is sent within its deadline and the connect timeout, or not at all. After that the
    /// answer comes within the deadline and 15 seconds. Dropping the future withdraws a command that waits
    /// and abandons one that runs: it goes on until its end or its deadline.
    ///
    /// A command of which surely nothing ran is tried on the next host. One that is `repeatable` is also
    /// tried once more when the link was lost.
    pub async fn run(&self, command: Command) -> Result<Output, SshError> {
        if command.program.contains('\0') {
            return Err(SshError::NotSent { reason: "the program contains a NUL byte".to_owned() });
        }
        let shared = &self.handle.shared;
        let (reply, mut answer) = oneshot::channel();
        let ticket = Arc::new(Ticket::default());
        let deadline = command.deadline;
        let job = Job { command, reply, ticket: Arc::clone(&ticket), enqueued: Instant::now() };
        if shared.queue.push(job).is_err() {
            return Err(SshError::Closed);
        }
        let sent_by = deadline.saturating_add(shared.config.connect_timeout);
        match timeout(sent_by, &mut answer).await {
            Ok(Ok(result)) => return result,
            // The thread is gone without an answer.
            Ok(Err(_)) => return Err(ticket.withdraw().map_or_else(given_up, |()| SshError::Closed)),
            Err(_) => {}
        }
        let Err(host) = ticket.withdraw() else {
            return Err(SshError::NotSent { reason: "no session became free in time".to_owned() });
        };
        match timeout(deadline.saturating_add(MARGIN), answer).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) | Err(_) => Err(given_up(host)),
        }
    }

    /// What is known about the hosts and the sessions, without asking anyone.
    pub fn health(&self) -> PoolHealth {
        let shared = &self.handle.shared;
        PoolHealth {
            hosts: shared.hosts.health(),
            sessions_open: shared.hosts.sessions_open(),
            connects_total: shared.hosts.connects_total(),
            commands_total: shared.commands_total.load(Ordering::Relaxed),
            failures_total: shared.failures_total.load(Ordering::Relaxed),
        }
    }

    /// Answers waiting commands with [`SshError::Closed`], lets running ones go on for ten seconds, then
    /// disconnects and waits for the threads. Other clones are closed as well.
    pub async fn close(self) {
        self.handle.shut();
        let threads =
            std::mem::take(&mut *self.handle.threads.lock().unwrap_or_else(PoisonError::into_inner));
        let joined = tokio::task::spawn_blocking(|| {
            for thread in threads {
                if thread.join().is_err() {
                    tracing::error!("an SSH thread panicked");
                }
            }
        });
        // It fails only when the runtime itself is going away.
        let _ = joined.await;
    }
}

fn given_up(host: HostPort) -> SshError {
    SshError::OutcomeUnknown { host, doubt: Doubt::Deadline, detail: "its session gave no answer".to_owned() }
}

impl Handle {
    fn shut(&self) {
        self.shared.closing.get_or_init(|| Instant::now() + CLOSE_BOUND);
        for job in self.shared.queue.close() {
            // Nobody may be waiting any more.
            let _ = job.reply.send(Err(SshError::Closed));
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shut();
    }
}

impl fmt::Debug for SshPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SshPool").field("health", &self.health()).finish_non_exhaustive()
    }
}
