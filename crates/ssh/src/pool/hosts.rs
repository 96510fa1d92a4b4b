//! The login hosts of a cluster: which one to use, which to leave alone, and how fast to connect.
//!
//! The pool stays with a host that works. It leaves a failed host alone for a while, longer after each
//! failure. If all hosts are left alone, callers get the last error of each host at once and do not wait.

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use parking_lot::{Condvar, Mutex};

use crate::{HostFailure, HostPort, SshConfig, SshError};

/// The least time between the starts of two connects to one host. sshd drops connections at random if too
/// many are not logged in yet (`MaxStartups`).
const PACE: Duration = Duration::from_millis(200);
/// The first pause after a network failure.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause after network failures.
const LONGEST_PAUSE: Duration = Duration::from_mins(1);
/// The pause after a failure that only a person can fix. OpenSSH 9.8 and later penalise an address after
/// repeated login failures, and sites block accounts.
const OPERATOR_PAUSE: Duration = Duration::from_mins(5);

/// What is known about one login host.
#[derive(Debug, Clone)]
pub struct HostHealth {
    /// The host.
    pub host: HostPort,
    /// Its state at the last attempt.
    pub state: HostState,
    /// The last error, kept after a recovery.
    pub last_error: Option<String>,
    /// When the next attempt is due; `None` if it may start at once.
    pub next_try: Option<Instant>,
}

/// The state of a login host at the last attempt to use it. `since` is the first of the failures in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostState {
    /// Never tried.
    Untried,
    /// The last connect succeeded.
    Up,
    /// The last connect failed for a reason that may go away by itself.
    Down { since: Instant },
    /// It accepted none of our keys.
    AuthRefused { since: Instant },
    /// We rejected its host key.
    HostKeyRefused { since: Instant },
}

/// The hosts, shared by the threads of a pool.
pub(crate) struct Hosts {
    state: Mutex<State>,
    /// A connect ended.
    changed: Condvar,
}

struct State {
    entries: Vec<Entry>,
    /// The host of the last successful connect.
    current: Option<usize>,
    sessions_open: usize,
    connects_total: u64,
}

struct Entry {
    host: HostPort,
    state: HostState,
    last_error: Option<SshError>,
    failures: u32,
    retry_at: Option<Instant>,
    /// The key files at the last failure: a changed file allows a retry before the pause is over.
    stamps: Option<FileStamps>,
    is_connecting: bool,
    last_start: Option<Instant>,
}

/// Modification time and size of the files whose change may turn a refusal into a success.
type FileStamps = Vec<Option<(SystemTime, u64)>>;

fn file_stamps(config: &SshConfig) -> FileStamps {
    let stamp = |path: &PathBuf| {
        let metadata = path.metadata().ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    };
    config.known_hosts.iter().chain(&config.key_path).map(stamp).collect()
}

impl Hosts {
    pub(crate) fn new(hosts: &[HostPort]) -> Self {
        let entry = |host: &HostPort| Entry {
            host: host.clone(),
            state: HostState::Untried,
            last_error: None,
            failures: 0,
            retry_at: None,
            stamps: None,
            is_connecting: false,
            last_start: None,
        };
        let entries = hosts.iter().map(entry).collect();
        let state = State { entries, current: None, sessions_open: 0, connects_total: 0 };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// The hosts that may be tried now, the best first; `avoided` comes last.
    ///
    /// While a session is open, new sessions use its host. Otherwise the configured order counts.
    pub(crate) fn candidates(&self, avoided: Option<&HostPort>, config: &SshConfig) -> Vec<usize> {
        let stamps = file_stamps(config);
        let state = self.state.lock();
        let now = Instant::now();
        let current = state.current.filter(|_| state.sessions_open > 0);
        let mut candidates: Vec<(usize, &Entry)> =
            state.entries.iter().enumerate().filter(|(_, entry)| entry.may_try(now, &stamps)).collect();
        candidates.sort_by_key(|(index, entry)| (Some(&entry.host) == avoided, current != Some(*index)));
        candidates.into_iter().map(|(index, _)| index).collect()
    }

    /// Whether no session is open and none may be opened now.
    pub(crate) fn are_out_of_reach(&self, config: &SshConfig) -> bool {
        self.counts().0 == 0 && self.candidates(None, config).is_empty()
    }

    /// Waits until a connect to the host may start. `None` if the host has failed in the meantime.
    pub(crate) fn begin_connect(&self, index: usize) -> Option<HostPort> {
        let mut state = self.state.lock();
        let failures = state.entries.get(index)?.failures;
        loop {
            let entry = state.entries.get_mut(index)?;
            if entry.failures > failures {
                return None;
            }
            let wait = entry.last_start.map_or(Duration::ZERO, |start| PACE.saturating_sub(start.elapsed()));
            if !entry.is_connecting && wait.is_zero() {
                entry.is_connecting = true;
                entry.last_start = Some(Instant::now());
                let host = entry.host.clone();
                state.connects_total += 1;
                return Some(host);
            }
            let wait = if entry.is_connecting { Duration::from_secs(1) } else { wait };
            self.changed.wait_for(&mut state, wait);
        }
    }

    /// Records that the connect that `begin_connect` allowed succeeded.
    pub(crate) fn connected(&self, index: usize) {
        let mut state = self.state.lock();
        state.current = Some(index);
        state.sessions_open += 1;
        if let Some(entry) = state.entries.get_mut(index) {
            entry.is_connecting = false;
            entry.failures = 0;
            entry.retry_at = None;
            entry.stamps = None;
            if entry.state != HostState::Up && entry.state != HostState::Untried {
                tracing::info!(host = %entry.host, "the login host is usable again");
            }
            entry.state = HostState::Up;
        }
        self.changed.notify_all();
    }

    /// Records that the connect that `begin_connect` allowed failed.
    pub(crate) fn failed(&self, index: usize, error: SshError, config: &SshConfig) {
        let stamps = error.needs_operator().then(|| file_stamps(config));
        let mut state = self.state.lock();
        if let Some(entry) = state.entries.get_mut(index) {
            entry.is_connecting = false;
            entry.fail(error, stamps);
        }
        self.changed.notify_all();
    }

    /// Records that a session counted by `connected` has ended.
    pub(crate) fn disconnected(&self) {
        let mut state = self.state.lock();
        state.sessions_open = state.sessions_open.saturating_sub(1);
    }

    /// The error for a caller if no host is usable. If all failures need a person, it is the first of them;
    /// so it keeps its kind.
    pub(crate) fn verdict(&self) -> SshError {
        let state = self.state.lock();
        let errors: Vec<(&HostPort, &SshError)> = state
            .entries
            .iter()
            .filter_map(|entry| Some((&entry.host, entry.last_error.as_ref()?)))
            .collect();
        if let Some((_, first)) = errors.first()
            && errors.iter().all(|(_, error)| error.needs_operator())
        {
            return (*first).clone();
        }
        let failures = errors.into_iter().flat_map(|(host, error)| match error {
            SshError::Unreachable { failures } => failures.clone(),
            other => {
                vec![HostFailure { host: host.clone(), reason: other.to_string(), advice: other.advice() }]
            }
        });
        SshError::Unreachable { failures: failures.collect() }
    }

    /// The open sessions, and the connects since the start.
    pub(crate) fn counts(&self) -> (usize, u64) {
        let state = self.state.lock();
        (state.sessions_open, state.connects_total)
    }

    pub(crate) fn health(&self) -> Vec<HostHealth> {
        let now = Instant::now();
        let health = |entry: &Entry| HostHealth {
            host: entry.host.clone(),
            state: entry.state,
            last_error: entry.last_error.as_ref().map(ToString::to_string),
            next_try: entry.retry_at.filter(|retry_at| *retry_at > now),
        };
        self.state.lock().entries.iter().map(health).collect()
    }
}

impl Entry {
    fn may_try(&self, now: Instant, stamps: &FileStamps) -> bool {
        self.retry_at.is_none_or(|retry_at| now >= retry_at)
            || self.stamps.as_ref().is_some_and(|old| old != stamps)
    }

    fn fail(&mut self, error: SshError, stamps: Option<FileStamps>) {
        self.failures = self.failures.saturating_add(1);
        let pause = pause(&error, self.failures);
        self.retry_at = Some(Instant::now() + pause);
        self.stamps = stamps;
        let state = failed_state(&error, Instant::now());
        let is_same_kind = std::mem::discriminant(&self.state) == std::mem::discriminant(&state);
        if is_same_kind && self.last_error.as_ref() == Some(&error) {
            tracing::debug!(host = %self.host, retry_in = ?pause, "the login host is still unusable");
        } else {
            tracing::warn!(
                host = %self.host, %error, advice = error.advice(), retry_in = ?pause, "the login host is unusable"
            );
        }
        if !is_same_kind {
            self.state = state;
        }
        self.last_error = Some(error);
    }
}

fn failed_state(error: &SshError, since: Instant) -> HostState {
    match error {
        SshError::HostKeyUnknown { .. } | SshError::HostKeyChanged { .. } => {
            HostState::HostKeyRefused { since }
        }
        error if error.is_login_failure() => HostState::AuthRefused { since },
        _ => HostState::Down { since },
    }
}

/// The pause after `error`, the `failures`-th in a row (from 1), with 20 % of jitter.
fn pause(error: &SshError, failures: u32) -> Duration {
    let pause = if error.needs_operator() { OPERATOR_PAUSE } else { doubled(failures) };
    pause.mul_f64(rand::random_range(0.8..1.2))
}

fn doubled(failures: u32) -> Duration {
    FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1))).min(LONGEST_PAUSE)
}
