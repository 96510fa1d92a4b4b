//! The queue of commands that wait for a session. It decides which thread takes the next one.
//!
//! Sites count connections, so the pool opens few sessions. A connected thread takes a command first. A
//! thread without a session opens one only after the other threads have been busy for a moment.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::session::readiness::Waker;
use crate::{Command, HostPort, Output, SshError};

/// How long a command waits for a connected session before another one is opened for it.
const PATIENCE: Duration = Duration::from_millis(50);

/// A command and the channel for its answer.
pub(crate) struct Job {
    pub(crate) command: Command,
    pub(crate) reply: oneshot::Sender<Result<Output, SshError>>,
    pub(crate) ticket: Arc<Ticket>,
    pub(crate) enqueued: Instant,
}

impl Job {
    /// Whether the caller still waits, within the promised time. After this process was suspended (SIGSTOP), the command
    /// may be too late: the caller's lease may have expired.
    pub(crate) fn is_in_time(&self, connect_timeout: Duration) -> bool {
        !self.reply.is_closed()
            && self.enqueued.elapsed() <= self.command.deadline.saturating_add(connect_timeout)
    }
}

/// Decides whether a command is sent: its caller may withdraw it until a thread claims it.
#[derive(Debug, Default)]
pub(crate) struct Ticket(Mutex<Stage>);

#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Waiting,
    SentTo(HostPort),
    Withdrawn,
}

impl Ticket {
    /// Claims the command for this host; returns whether it may be sent. It can no longer be withdrawn then.
    pub(crate) fn claim(&self, host: &HostPort) -> bool {
        let mut stage = self.0.lock();
        if *stage != Stage::Withdrawn {
            *stage = Stage::SentTo(host.clone());
        }
        *stage != Stage::Withdrawn
    }

    /// Withdraws the command for good. If it is too late, returns the host that it was sent to.
    pub(crate) fn withdraw(&self) -> Result<(), HostPort> {
        let mut stage = self.0.lock();
        if let Stage::SentTo(host) = &*stage {
            return Err(host.clone());
        }
        *stage = Stage::Withdrawn;
        Ok(())
    }
}

/// What a thread does next.
pub(crate) enum Next {
    /// Run this command.
    Job(Box<Job>),
    /// Sleep until woken, or until this time.
    Sleep(Option<Instant>),
    /// End the thread.
    Close,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Thread {
    Idle { connected: bool },
    Busy,
}

/// The queue of a pool.
pub(crate) struct Queue {
    state: Mutex<State>,
    wakers: Vec<Waker>,
}

struct State {
    jobs: VecDeque<Job>,
    threads: Vec<Thread>,
    closed: bool,
}

impl Queue {
    /// A queue with one thread per waker.
    pub(crate) fn new(wakers: Vec<Waker>) -> Self {
        let threads = vec![Thread::Idle { connected: false }; wakers.len()];
        Self {
            state: Mutex::new(State { jobs: VecDeque::new(), threads, closed: wakers.is_empty() }),
            wakers,
        }
    }

    /// Adds a command. Returns it if the pool is closed.
    pub(crate) fn push(&self, job: Job) -> Result<(), Job> {
        let mut state = self.state.lock();
        if state.closed {
            return Err(job);
        }
        state.jobs.push_back(job);
        let idle = state.best_idle();
        drop(state);
        self.wake(idle);
        Ok(())
    }

    /// What the thread does next. It counts as idle until it gets a command.
    pub(crate) fn next(&self, thread: usize, connected: bool) -> Next {
        let mut state = self.state.lock();
        state.set(thread, Thread::Idle { connected });
        if state.closed {
            return Next::Close;
        }
        state.jobs.retain(|job| !job.reply.is_closed());
        let Some(oldest) = state.jobs.front() else { return Next::Sleep(None) };
        let patience = oldest.enqueued + PATIENCE;
        let others_may_take_it =
            state.threads.iter().any(|other| *other != Thread::Idle { connected: false });
        if !connected && others_may_take_it && Instant::now() < patience {
            return Next::Sleep(Some(patience));
        }
        let Some(job) = state.jobs.pop_front() else { return Next::Sleep(None) };
        state.set(thread, Thread::Busy);
        // The next command may have been waiting for this thread.
        let idle = if state.jobs.is_empty() { None } else { state.best_idle() };
        drop(state);
        self.wake(idle);
        Next::Job(Box::new(job))
    }

    /// Marks the thread as busy with its own session; it takes no command before its next call.
    pub(crate) fn set_busy(&self, thread: usize) {
        self.state.lock().set(thread, Thread::Busy);
    }

    /// Refuses further commands, returns the waiting ones, and wakes every thread.
    pub(crate) fn close(&self) -> VecDeque<Job> {
        let mut state = self.state.lock();
        state.closed = true;
        let waiting = std::mem::take(&mut state.jobs);
        drop(state);
        self.wakers.iter().for_each(Waker::wake);
        waiting
    }

    fn wake(&self, thread: Option<usize>) {
        if let Some(waker) = thread.and_then(|index| self.wakers.get(index)) {
            waker.wake();
        }
    }
}

impl State {
    fn set(&mut self, thread: usize, state: Thread) {
        if let Some(slot) = self.threads.get_mut(thread) {
            *slot = state;
        }
    }

    /// The idle thread to wake: a connected one if possible.
    fn best_idle(&self) -> Option<usize> {
        let find = |state| self.threads.iter().position(|thread| *thread == state);
        find(Thread::Idle { connected: true }).or_else(|| find(Thread::Idle { connected: false }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job() -> (Job, oneshot::Receiver<Result<Output, SshError>>) {
        let (reply, answer) = oneshot::channel();
        let command = Command {
            program: "true".to_owned(),
            stdin: Vec::new(),
            deadline: Duration::from_secs(1),
            stdout_limit: 1,
            repeatable: false,
        };
        (Job { command, reply, ticket: Arc::default(), enqueued: Instant::now() }, answer)
    }

    fn queue(threads: usize) -> Queue {
        Queue::new((0..threads).map(|_| Waker::new().expect("a waker")).collect())
    }

    #[test]
    fn a_command_is_either_sent_or_withdrawn_and_never_both() {
        let host: HostPort = "login1".parse().expect("a host");
        let (sent, withdrawn) = (Ticket::default(), Ticket::default());
        assert!(sent.claim(&host) && sent.claim(&host));
        assert_eq!(sent.withdraw(), Err(host.clone()));
        assert_eq!(withdrawn.withdraw(), Ok(()));
        assert!(!withdrawn.claim(&host));
    }

    #[test]
    fn a_thread_without_a_session_waits_a_moment_for_the_connected_one() {
        let queue = queue(2);
        queue.set_busy(0);
        let (job, _answer) = job();
        assert!(queue.push(job).is_ok());
        let Next::Sleep(Some(until)) = queue.next(1, false) else { panic!("the thread did not wait") };
        assert!(until <= Instant::now() + PATIENCE);
        assert!(matches!(queue.next(0, true), Next::Job(_)));
        assert!(matches!(queue.next(1, false), Next::Sleep(None)));
    }

    #[test]
    fn an_abandoned_command_is_dropped_from_the_queue() {
        let queue = queue(1);
        let (job, answer) = job();
        assert!(queue.push(job).is_ok());
        drop(answer);
        assert!(matches!(queue.next(0, false), Next::Sleep(None)));
    }

    #[test]
    fn a_closed_queue_returns_its_commands_and_accepts_no_more() {
        let queue = queue(1);
        let ((first, _one), (second, _two)) = (job(), job());
        assert!(queue.push(first).is_ok());
        assert_eq!(queue.close().len(), 1);
        assert!(queue.push(second).is_err());
        assert!(matches!(queue.next(0, true), Next::Close));
    }
}
