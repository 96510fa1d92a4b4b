//! The thread that owns one session: takes commands, connects when it has to, probes while idle.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use crate::pool::hosts::Hosts;
use crate::pool::queue::{Job, Next, Queue};
use crate::session::connect::connect;
use crate::session::exec::{Executed, execute};
use crate::session::link::Link;
use crate::session::readiness::{Interest, WakeUps};
use crate::{Doubt, Effect, HostPort, Output, SshConfig, SshError, keys::auth};

/// How long the other side may take to answer a probe.
const PROBE_BOUND: Duration = Duration::from_secs(5);
/// A repetition with less time than this is not worth a try.
const LEAST_TIME: Duration = Duration::from_secs(1);

/// What the threads of a pool share.
pub(crate) struct Shared {
    pub(crate) config: SshConfig,
    pub(crate) hosts: Hosts,
    pub(crate) queue: Queue,
    pub(crate) commands_total: AtomicU64,
    pub(crate) failures_total: AtomicU64,
    /// Set once the pool closes: the moment by which running commands are given up.
    pub(crate) closing: OnceLock<Instant>,
}

/// What a command depends on besides the link.
pub(crate) struct Surroundings<'a> {
    pub(crate) wake_ups: &'a WakeUps,
    pub(crate) closing: &'a OnceLock<Instant>,
    pub(crate) keepalive: Duration,
}

pub(crate) struct Worker {
    shared: Arc<Shared>,
    index: usize,
    wake_ups: WakeUps,
    link: Option<Link>,
    next_probe: Instant,
}

/// What came of sending a command once.
struct Attempted {
    result: Result<Output, SshError>,
    /// To be closed once the caller has the answer.
    channel: Option<ssh2::Channel>,
    /// The host whose link was dropped.
    lost: Option<HostPort>,
}

impl Worker {
    pub(crate) fn new(shared: Arc<Shared>, index: usize, wake_ups: WakeUps) -> Self {
        Self { shared, index, wake_ups, link: None, next_probe: Instant::now() }
    }

    /// Serves until the pool is closed.
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
            link.say_goodbye();
            self.shared.hosts.disconnected();
        }
    }

    /// Sleeps until woken. Whatever the server sends meanwhile is taken in, and answered if it asks: some
    /// servers hang up on clients that do not.
    fn idle(&mut self, until: Option<Instant>) {
        let socket = self.link.as_ref().map(|link| (&link.socket, Interest::Read));
        let until = if socket.is_some() { until.into_iter().chain([self.next_probe]).min() } else { until };
        let Ok(awake) = self.wake_ups.sleep(socket, until) else {
            return self.drop_link("its socket is unusable");
        };
        if self.link.is_some() && (awake.socket || Instant::now() >= self.next_probe) {
            self.probe();
        }
    }

    fn probe(&mut self) {
        // A dead link costs the whole bound; a command that comes meanwhile goes to another thread.
        self.shared.queue.set_busy(self.index);
        let bound = PROBE_BOUND.min(self.shared.config.keepalive);
        if self.link.as_ref().is_some_and(|link| link.answers(&self.wake_ups, Instant::now() + bound)) {
            self.next_probe = Instant::now() + self.shared.config.keepalive;
        } else {
            self.drop_link("it does not answer");
        }
    }

    fn serve(&mut self, job: Job) {
        let Attempted { result, channel, .. } = self.attempts(&job);
        self.shared.commands_total.fetch_add(1, Ordering::Relaxed);
        if result.is_err() {
            self.shared.failures_total.fetch_add(1, Ordering::Relaxed);
        }
        log(&job, &result);
        // The caller may be gone.
        let _ = job.reply.send(result);
        if let (Some(mut channel), Some(link)) = (channel, &self.link)
            && !link.close_channel(&mut channel, &self.wake_ups)
        {
            drop(channel);
            self.drop_link("a channel does not close");
        }
    }

    /// Runs the command, and a second time where that is certainly harmless.
    fn attempts(&mut self, job: &Job) -> Attempted {
        let begun = Instant::now();
        let first = self.attempt(job, job.command.deadline, None);
        // A repetition gets what is left of the time, so that the caller's bound holds for both together.
        let left = job.command.deadline.saturating_sub(begun.elapsed());
        let (Err(error), Some(host)) = (&first.result, &first.lost) else { return first };
        if left < LEAST_TIME || self.shared.closing.get().is_some() || !may_repeat(error, job) {
            return first;
        }
        tracing::debug!(%host, %error, "trying the command again");
        let second = self.attempt(job, left, Some(host));
        let second_did_nothing = second.result.as_ref().is_err_and(|error| error.effect() == Effect::None);
        if error.effect() == Effect::Unknown && second_did_nothing {
            // The failure to repeat it says nothing about what the first try did.
            return first;
        }
        second
    }

    fn attempt(&mut self, job: &Job, deadline: Duration, avoided: Option<&HostPort>) -> Attempted {
        if let Err(error) = self.ensure_link(avoided) {
            return Attempted { result: Err(error), channel: None, lost: None };
        }
        let Some(link) = &self.link else {
            return Attempted { result: Err(SshError::Closed), channel: None, lost: None };
        };
        let host = link.host.clone();
        let around = Surroundings {
            wake_ups: &self.wake_ups,
            closing: &self.shared.closing,
            keepalive: self.shared.config.keepalive,
        };
        let Executed { result, channel } = execute(link, &job.command, deadline, &around, || {
            job.is_wanted(self.shared.config.connect_timeout) && job.ticket.claim(&host)
        });
        self.next_probe = Instant::now() + self.shared.config.keepalive;
        let lost = channel.is_none().then_some(host);
        if lost.is_some() {
            self.drop_link("the command could not be completed");
        }
        Attempted { result, channel, lost }
    }

    /// Connects unless there is a link that has shown no sign of trouble.
    fn ensure_link(&mut self, avoided: Option<&HostPort>) -> Result<(), SshError> {
        if let Some(link) = &self.link {
            let now = Instant::now();
            let has_news = self
                .wake_ups
                .sleep(Some((&link.socket, Interest::Read)), Some(now))
                .is_ok_and(|awake| awake.socket);
            if has_news {
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
                Err(error) => shared.hosts.refused(index, error, &shared.config),
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

/// Nothing ran, or it may run twice and no time is lost by it.
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
