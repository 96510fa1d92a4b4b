//! The sessions of one cluster. [`SshPool`] is the asynchronous interface; behind it, threads that each own
//! one session take commands from a queue.

pub(crate) mod hosts;
mod queue;
mod session_thread;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::keys::key_file::warn_if_exposed;
use crate::session::readiness::Waker;
use crate::{Command, Doubt, HostHealth, HostPort, Output, SshConfig, SshError};
use hosts::Hosts;
use queue::{Job, Queue, Ticket};
use session_thread::{SessionThread, Shared};

/// The most sessions of a pool, whatever the configuration says.
const MAX_SESSIONS: usize = 4;
/// How long after the deadline of a command its thread may still answer.
const MARGIN: Duration = Duration::from_secs(15);
/// How long `close` lets a running command continue.
const CLOSE_BOUND: Duration = Duration::from_secs(10);

/// The sessions of one cluster. Clones share them; dropping the last clone closes them.
#[derive(Clone)]
pub struct SshPool(Arc<Handle>);

struct Handle {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// A snapshot of a pool.
#[derive(Debug, Clone)]
pub struct PoolHealth {
    /// One entry per login host, in the configured order.
    pub hosts: Vec<HostHealth>,
    /// Sessions that are connected now.
    pub sessions_open: usize,
    /// Attempts to connect since the start, successful or not.
    pub connects_total: u64,
    /// Commands that returned an answer or an error since the start.
    pub commands_total: u64,
    /// Commands that returned an error since the start.
    pub failures_total: u64,
}

impl SshPool {
    /// Starts a pool. It connects when the first command needs a session.
    pub fn start(config: SshConfig) -> Self {
        if let Some(path) = &config.key_path {
            warn_if_exposed(path);
        }
        let wakers: Vec<_> =
            (0..config.sessions.clamp(1, MAX_SESSIONS)).filter_map(|_| Waker::new().ok()).collect();
        let shared = Arc::new(Shared {
            hosts: Hosts::new(&config.hosts),
            config,
            queue: Queue::new(wakers.clone()),
            commands_total: AtomicU64::new(0),
            failures_total: AtomicU64::new(0),
            closing: OnceLock::new(),
        });
        let spawn = |(index, waker)| {
            let thread = SessionThread::new(Arc::clone(&shared), index, waker);
            thread::Builder::new().name(format!("ssh-{index}")).spawn(move || thread.run())
        };
        let started: Result<Vec<_>, _> = wakers.into_iter().enumerate().map(spawn).collect();
        let threads = started.unwrap_or_else(|error| {
            tracing::error!(%error, "cannot start the threads for SSH sessions");
            // Without threads a command would wait for ever; a closed pool answers.
            shared.queue.close();
            Vec::new()
        });
        Self(Arc::new(Handle { shared, threads: Mutex::new(threads) }))
    }

    /// Runs a command on a login host and waits for its end.
    ///
    /// The command is sent within its deadline plus the connect timeout, or not at all. After that the
    /// answer comes within the deadline plus 15 seconds. Dropping the future withdraws a waiting command and
    /// abandons a running one, which continues until its end or its deadline.
    ///
    /// A command that certainly did not run is tried on the next host. A `repeatable` command is also tried
    /// once more if the connection was lost.
    pub async fn run(&self, command: Command) -> Result<Output, SshError> {
        if command.program.contains('\0') {
            return Err(SshError::NotSent { reason: "the program contains a NUL byte".to_owned() });
        }
        let shared = &self.0.shared;
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
            // The thread has ended without an answer.
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

    /// Why no command would be sent at this moment: each login host has failed, and none may be tried yet.
    pub fn out_of_reach(&self) -> Option<SshError> {
        let Shared { hosts, config, .. } = &*self.0.shared;
        hosts.are_out_of_reach(config).then(|| hosts.verdict())
    }

    /// The state of the hosts and sessions, without contacting a host.
    pub fn health(&self) -> PoolHealth {
        let shared = &self.0.shared;
        let (sessions_open, connects_total) = shared.hosts.counts();
        PoolHealth {
            hosts: shared.hosts.health(),
            sessions_open,
            connects_total,
            commands_total: shared.commands_total.load(Ordering::Relaxed),
            failures_total: shared.failures_total.load(Ordering::Relaxed),
        }
    }

    /// Answers waiting commands with [`SshError::Closed`], lets running ones continue for ten seconds, then
    /// disconnects and waits for the threads. This closes the other clones as well.
    pub async fn close(self) {
        self.0.shut();
        let threads = std::mem::take(&mut *self.0.threads.lock());
        let joined = tokio::task::spawn_blocking(|| {
            for thread in threads {
                if thread.join().is_err() {
                    tracing::error!("an SSH thread panicked");
                }
            }
        });
        // It fails only if the runtime shuts down.
        let _ = joined.await;
    }
}

fn given_up(host: HostPort) -> SshError {
    SshError::OutcomeUnknown { host, doubt: Doubt::Deadline, detail: "its session did not answer".to_owned() }
}

impl Handle {
    fn shut(&self) {
        self.shared.closing.get_or_init(|| Instant::now() + CLOSE_BOUND);
        for job in self.shared.queue.close() {
            // Its caller may have stopped waiting.
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
