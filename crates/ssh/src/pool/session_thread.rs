//! The thread that owns one session: it takes commands, connects when necessary, and probes an idle session.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;

use crate::pool::hosts::Hosts;
use crate::pool::queue::{Job, Next, Queue};
use crate::session::connect::connect;
use crate::session::exec::{ExecContext, Executed, execute};
use crate::session::link::Link;
use crate::session::readiness::Waker;
use crate::{Doubt, Effect, HostPort, Output, SshConfig, SshError, keys::auth};

/// How long the server may take to answer a probe.
const PROBE_BOUND: Duration = Duration::from_secs(5);
/// A command is not repeated with less time than this.
const LEAST_TIME: Duration = Duration::from_secs(1);

/// What the threads of a pool share.
pub(crate) struct Shared {
    pub(crate) config: SshConfig,
    pub(crate) hosts: Hosts,
    pub(crate) queue: Queue,
    pub(crate) commands_total: AtomicU64,
    pub(crate) failures_total: AtomicU64,
    /// Set once the pool closes: when running commands are given up.
    pub(crate) closing: OnceLock<Instant>,
}

pub(crate) struct SessionThread {
    shared: Arc<Shared>,
    index: usize,
    waker: Waker,
    link: Option<Link>,
    next_probe: Instant,
}

impl SessionThread {
    pub(crate) fn new(shared: Arc<Shared>, index: usize, waker: Waker) -> Self {
        Self { shared, index, waker, link: None, next_probe: Instant::now() }
    }

    /// Runs commands until the pool is closed.
    pub(crate) fn run(mut self) {
        loop {
            match self.shared.queue.next(self.index, self.link.is_some()) {
                Next::Job(job) => self.serve(*job),
                Next::Sleep(until) => self.idle(until),
                Next::Close => break,
            }
        }
        if let Some(link) = self.link.take() {
            tracing::info!(host = %link.host, "disconnected");
            link.disconnect();
            self.shared.hosts.disconnected();
        }
    }

    /// Sleeps until woken. Meanwhile reads what the server sends and answers its keepalives: some servers
    /// disconnect clients that do not answer.
    fn idle(&mut self, until: Option<Instant>) {
        let socket = self.link.as_ref().map(|link| (&link.socket, PollFlags::IN));
        let until = if socket.is_some() { until.into_iter().chain([self.next_probe]).min() } else { until };
        let Ok(awake) = self.waker.sleep(socket, until) else {
            return self.drop_link("its socket failed");
        };
        if self.link.is_some() && (awake.socket || Instant::now() >= self.next_probe) {
            self.probe();
        }
    }

    fn probe(&mut self) {
        // A dead connection takes the whole bound; new commands go to other threads meanwhile.
        self.shared.queue.set_busy(self.index);
        let bound = PROBE_BOUND.min(self.shared.config.keepalive);
        if self.link.as_ref().is_some_and(|link| link.answers(&self.waker, Instant::now() + bound)) {
            self.next_probe = Instant::now() + self.shared.config.keepalive;
        } else {
            self.drop_link("the server does not answer");
        }
    }

    fn serve(&mut self, job: Job) {
        let Executed { result, channel } = self.attempts(&job);
        self.shared.commands_total.fetch_add(1, Ordering::Relaxed);
        if result.is_err() {
            self.shared.failures_total.fetch_add(1, Ordering::Relaxed);
        }
        log(&job, &result);
        // The caller may have stopped waiting.
        let _ = job.reply.send(result);
        if let (Some(mut channel), Some(link)) = (channel, &self.link)
            && !link.close_channel(&mut channel, &self.waker)
        {
            drop(channel);
            self.drop_link("a channel could not be closed");
        }
    }

    /// Runs the command, and repeats it once if that is certainly harmless.
    fn attempts(&mut self, job: &Job) -> Executed {
        let begun = Instant::now();
        let (first, lost) = self.attempt(job, job.command.deadline, None);
        // The repetition gets the remaining time, so that the caller's deadline holds for both together.
        let left = job.command.deadline.saturating_sub(begun.elapsed());
        let (Err(error), Some(host)) = (&first.result, &lost) else { return first };
        if left < LEAST_TIME || self.shared.closing.get().is_some() || !may_repeat(error, job) {
            return first;
        }
        tracing::debug!(%host, %error, "repeating the command");
        let (second, _) = self.attempt(job, left, Some(host));
        let second_did_nothing = second.result.as_ref().is_err_and(|error| error.effect() == Effect::None);
        if error.effect() == Effect::Unknown && second_did_nothing {
            // The failed repetition says nothing about what the first attempt did.
            return first;
        }
        second
    }

    /// Runs the command once. Also returns the host whose link was dropped.
    fn attempt(
        &mut self,
        job: &Job,
        deadline: Duration,
        avoided: Option<&HostPort>,
    ) -> (Executed, Option<HostPort>) {
        let ready = self.ensure_link(avoided).and_then(|()| self.link.as_ref().ok_or(SshError::Closed));
        let link = match ready {
            Ok(link) => link,
            Err(error) => return (Executed::failed(error, None), None),
        };
        let host = link.host.clone();
        let context = ExecContext {
            waker: &self.waker,
            closing: &self.shared.closing,
            keepalive: self.shared.config.keepalive,
        };
        let executed = execute(link, &job.command, deadline, &context, || {
            job.is_in_time(self.shared.config.connect_timeout) && job.ticket.claim(&host)
        });
        self.next_probe = Instant::now() + self.shared.config.keepalive;
        let lost = executed.channel.is_none().then_some(host);
        if lost.is_some() {
            self.drop_link("the command was not completed");
        }
        (executed, lost)
    }

    /// Connects unless a working link exists. Probes the link first if the server has sent something.
    fn ensure_link(&mut self, avoided: Option<&HostPort>) -> Result<(), SshError> {
        if let Some(link) = &self.link {
            let awake = self.waker.sleep(Some((&link.socket, PollFlags::IN)), Some(Instant::now()));
            if awake.is_ok_and(|awake| awake.socket) {
                self.probe();
            }
        }
        if self.link.is_some() {
            return Ok(());
        }
        let shared = Arc::clone(&self.shared);
        auth::check(&shared.config)?;
        for index in shared.hosts.candidates(avoided, &shared.config) {
            if shared.closing.get().is_some() {
                return Err(SshError::Closed);
            }
            let Some(host) = shared.hosts.begin_connect(index) else { continue };
            match connect(&shared.config, &host) {
                Ok(link) => {
                    tracing::info!(%host, "connected");
                    shared.hosts.connected(index);
                    self.next_probe = Instant::now() + shared.config.keepalive;
                    self.link = Some(link);
                    return Ok(());
                }
                Err(error) => shared.hosts.failed(index, error, &shared.config),
            }
        }
        Err(shared.hosts.verdict())
    }

    fn drop_link(&mut self, reason: &str) {
        if let Some(link) = self.link.take() {
            tracing::info!(host = %link.host, age = ?link.opened.elapsed(), reason, "disconnected");
            self.shared.hosts.disconnected();
        }
    }
}

/// Whether the command did not run, or may safely run twice. After a deadline a repetition would only take more time.
fn may_repeat(error: &SshError, job: &Job) -> bool {
    match error {
        SshError::NotSent { .. } => true,
        SshError::OutcomeUnknown { doubt: Doubt::LinkLost, .. } => job.command.repeatable,
        _ => false,
    }
}

fn log(job: &Job, result: &Result<Output, SshError>) {
    let sent = job.command.stdin.len();
    match result {
        Ok(output) => tracing::debug!(
            host = %output.host,
            elapsed = ?output.elapsed,
            exit_code = output.exit_code,
            stdin.bytes = sent,
            stdout.bytes = output.stdout.len(),
            stderr.bytes = output.stderr.len(),
            "command"
        ),
        Err(error) => {
            tracing::debug!(stdin.bytes = sent, waited = ?job.enqueued.elapsed(), %error, "command failed");
        }
    }
}
