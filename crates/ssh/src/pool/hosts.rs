//! The login hosts of a cluster: which one to use, which to leave alone, and how fast to connect.
//!
//! A host that works is kept. One that fails is left alone for a while, longer each time. When all are
//! left alone, callers get the last error of each at once instead of waiting.

#[cfg(test)]
mod tests;

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::keys::host_key::FileStamps;
use crate::pool::backoff::pause;
use crate::{HostFailure, HostHealth, HostPort, HostState, SshConfig, SshError};

/// The least time between the starts of two connects to one host. sshd drops connections at random when
/// too many are not yet logged in (`MaxStartups`).
const PACE: Duration = Duration::from_millis(200);

/// The hosts, shared by the threads of a pool.
pub(crate) struct Hosts {
    book: Mutex<Book>,
    /// A connect ended.
    changed: Condvar,
}

struct Book {
    entries: Vec<Entry>,
    /// The host of the last connect that worked.
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
    /// The key files at the last refusal: a change is a reason to try before the pause is over.
    stamps: Option<FileStamps>,
    is_connecting: bool,
    last_start: Option<Instant>,
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
        let book = Book { entries, current: None, sessions_open: 0, connects_total: 0 };
        Self { book: Mutex::new(book), changed: Condvar::new() }
    }

    /// The hosts that may be tried now, the best first; `avoided` comes last.
    ///
    /// While any session is open, new ones join it. When none is, the configured order counts again.
    pub(crate) fn candidates(&self, avoided: Option<&HostPort>, config: &SshConfig) -> Vec<usize> {
        let stamps = FileStamps::of(config.key_material());
        let book = self.lock();
        let now = Instant::now();
        let sticky = book.current.filter(|_| book.sessions_open > 0);
        let may_try =
            |index: &usize| book.entries.get(*index).is_some_and(|entry| entry.may_try(now, &stamps));
        let mut candidates: Vec<usize> = (0..book.entries.len()).filter(may_try).collect();
        candidates.sort_by_key(|index| {
            let is_avoided = book.entries.get(*index).map(|entry| &entry.host) == avoided;
            (avoided.is_some() && is_avoided, sticky != Some(*index))
        });
        candidates
    }

    /// Waits for the turn to connect to a host. `None` when the host has failed in the meantime.
    pub(crate) fn begin_connect(&self, index: usize) -> Option<HostPort> {
        let mut book = self.lock();
        let failures = book.entries.get(index)?.failures;
        loop {
            let entry = book.entries.get_mut(index)?;
            if entry.failures > failures {
                return None;
            }
            let wait = entry.last_start.map_or(Duration::ZERO, |start| PACE.saturating_sub(start.elapsed()));
            if !entry.is_connecting && wait.is_zero() {
                entry.is_connecting = true;
                entry.last_start = Some(Instant::now());
                let host = entry.host.clone();
                book.connects_total += 1;
                return Some(host);
            }
            let wait = if entry.is_connecting { Duration::from_secs(1) } else { wait };
            book = self.changed.wait_timeout(book, wait).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The connect that `begin_connect` allowed has worked.
    pub(crate) fn connected(&self, index: usize) {
        let mut book = self.lock();
        book.current = Some(index);
        book.sessions_open += 1;
        if let Some(entry) = book.entries.get_mut(index) {
            entry.is_connecting = false;
            entry.failures = 0;
            entry.retry_at = None;
            entry.stamps = None;
            if entry.state != HostState::Up && entry.state != HostState::Untried {
                tracing::info!(host = %entry.host, "the login host works again");
            }
            entry.state = HostState::Up;
        }
        self.changed.notify_all();
    }

    /// The connect that `begin_connect` allowed has failed.
    pub(crate) fn refused(&self, index: usize, error: SshError, config: &SshConfig) {
        let stamps = error.needs_operator().then(|| FileStamps::of(config.key_material()));
        let mut book = self.lock();
        if let Some(entry) = book.entries.get_mut(index) {
            entry.is_connecting = false;
            entry.fail(error, stamps);
        }
        self.changed.notify_all();
    }

    /// A session that was counted by `connected` is gone.
    pub(crate) fn disconnected(&self) {
        let mut book = self.lock();
        book.sessions_open = book.sessions_open.saturating_sub(1);
    }

    /// The error for a caller when no host could be used. A refusal that a person has to mend keeps its
    /// kind when there is no other kind.
    pub(crate) fn verdict(&self) -> SshError {
        let book = self.lock();
        let errors: Vec<(&HostPort, &SshError)> =
            book.entries.iter().filter_map(|entry| Some((&entry.host, entry.last_error.as_ref()?))).collect();
        if let Some((_, first)) =
            errors.first().filter(|_| errors.iter().all(|(_, error)| error.needs_operator()))
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

    pub(crate) fn sessions_open(&self) -> usize {
        self.lock().sessions_open
    }

    pub(crate) fn connects_total(&self) -> u64 {
        self.lock().connects_total
    }

    pub(crate) fn health(&self) -> Vec<HostHealth> {
        let now = Instant::now();
        let health = |entry: &Entry| HostHealth {
            host: entry.host.clone(),
            state: entry.state.clone(),
            last_error: entry.last_error.as_ref().map(ToString::to_string),
            next_try: entry.retry_at.filter(|retry_at| *retry_at > now),
        };
        self.lock().entries.iter().map(health).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Book> {
        // Every change of the book is complete before anything can panic.
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
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
        let text = error.to_string();
        let state = self.state_after(&error, text.clone());
        let is_news = self.last_error.as_ref() != Some(&error) || !self.state.is_same_kind(&state);
        if is_news {
            tracing::warn!(host = %self.host, error = text, advice = error.advice(), retry_in = ?pause, "the login host cannot be used");
        } else {
            tracing::debug!(host = %self.host, retry_in = ?pause, "the login host still cannot be used");
        }
        self.state = state;
        self.last_error = Some(error);
    }

    fn state_after(&self, cause: &SshError, error: String) -> HostState {
        let first = Instant::now();
        let make: fn(Instant, String) -> HostState = match cause {
            SshError::AuthRefused { .. } | SshError::KeyUnreadable { .. } | SshError::NoKey => {
                |since, error| HostState::AuthRefused { since, error }
            }
            SshError::HostKeyUnknown { .. } | SshError::HostKeyChanged { .. } => {
                |since, error| HostState::HostKeyRefused { since, error }
            }
            _ => |since, error| HostState::Down { since, error },
        };
        let fresh = make(first, error.clone());
        let since = self.state.since().filter(|_| self.state.is_same_kind(&fresh)).unwrap_or(first);
        make(since, error)
    }
}

impl HostState {
    fn since(&self) -> Option<Instant> {
        match self {
            Self::Untried | Self::Up => None,
            Self::Down { since, .. }
            | Self::AuthRefused { since, .. }
            | Self::HostKeyRefused { since, .. } => Some(*since),
        }
    }

    fn is_same_kind(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}
