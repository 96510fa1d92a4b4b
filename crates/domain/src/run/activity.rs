//! Whether a running job is alive: what it has written so far, and since when nothing was added.

use chrono::TimeDelta;
use remote::SignsOfLife;
use serde::{Deserialize, Serialize};

use crate::{
    clock::Timestamp,
    job::{
        active_job::ActiveJob,
        status::Phase,
        stored::{DesiredState, Job},
    },
};

/// The last sign of life of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Activity {
    /// Everything that the job has written.
    signs: Signs,
    /// When that was first seen.
    since: Timestamp,
    /// How long the cluster could not be heard until then, in all, in milliseconds.
    unreachable_ms: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Signs {
    files: u64,
    bytes: u64,
    newest: i64,
}

/// Evidence that is not needed for minutes is not asked for at each poll: about ten times within the limit.
pub fn wants_signs_of_life(job: &ActiveJob, last_poll: Option<Timestamp>, now: Timestamp) -> bool {
    let Some(limit) = job.timeout_minutes else { return false };
    if job.phase != Phase::Running || job.desired != DesiredState::Run || job.is_doomed {
        return false;
    }
    let every = (i64::from(limit.get()) * 6).clamp(10, 60);
    let slice = |at: Timestamp| at.timestamp().div_euclid(every);
    !job.was_alive || last_poll.is_none_or(|last| slice(last) != slice(now))
}

/// Takes in what a poll saw of everything that the job has written, and decides whether it is dead.
///
/// `unreachable` is how long in all the cluster could not be heard so far: nobody knows what happened in that time, and what
/// kept us from hearing may have kept the job from writing.
pub(crate) fn watch(job: &mut Job, seen: Option<&SignsOfLife>, unreachable_for: TimeDelta, now: Timestamp) {
    let (Some(limit), Some(seen)) = (job.spec.timeout_minutes, seen) else { return };
    if job.phase != Phase::Running || job.desired != DesiredState::Run || job.kill_reason.is_some() {
        return;
    }
    let signs = Signs { files: seen.files, bytes: seen.bytes, newest: seen.newest };
    let known = job.activity.as_ref().filter(|known| known.signs == signs);
    let Some(known) = known else {
        job.activity =
            Some(Activity { signs, since: now, unreachable_ms: unreachable_for.num_milliseconds() });
        return;
    };
    let silent = now - known.since - (unreachable_for - TimeDelta::milliseconds(known.unreachable_ms));
    let minutes = i64::from(limit.get());
    if silent >= TimeDelta::minutes(minutes) {
        let since = known.since.format("%Y-%m-%d %H:%M:%S UTC");
        let plural = if minutes == 1 { "" } else { "s" };
        job.kill_reason = Some(format!(
            "No sign of life for {minutes} minute{plural}: no new status line, log byte or result file since {since}."
        ));
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use chrono::DateTime;

    use super::*;
    use crate::fixtures::submitted_job;

    fn at(minutes: i64) -> Timestamp {
        DateTime::UNIX_EPOCH + TimeDelta::minutes(minutes)
    }

    fn running() -> Job {
        let mut job = submitted_job();
        job.phase = Phase::Running;
        job.spec.timeout_minutes = NonZeroU32::new(30);
        job
    }

    fn wants(job: &Job, last_poll: Option<Timestamp>, now: Timestamp) -> bool {
        wants_signs_of_life(&ActiveJob::of(job).unwrap(), last_poll, now)
    }

    fn signs(bytes: u64) -> SignsOfLife {
        SignsOfLife { files: 3, bytes, newest: 17 }
    }

    #[test]
    fn a_job_that_adds_nothing_for_so_long_is_ended() {
        let mut job = running();
        watch(&mut job, Some(&signs(1)), TimeDelta::zero(), at(0));
        watch(&mut job, Some(&signs(2)), TimeDelta::zero(), at(29));
        watch(&mut job, Some(&signs(2)), TimeDelta::zero(), at(58));
        assert_eq!(job.kill_reason, None, "each new byte counts");
        watch(&mut job, Some(&signs(2)), TimeDelta::zero(), at(59));
        let why = job.kill_reason.unwrap();
        assert!(
            why.starts_with("No sign of life for 30 minutes: ") && why.contains("1970-01-01 00:29:00"),
            "{why}"
        );
    }

    #[test]
    fn what_could_not_be_looked_at_is_no_silence() {
        let mut job = running();
        watch(&mut job, Some(&signs(1)), TimeDelta::zero(), at(0));
        watch(&mut job, None, TimeDelta::zero(), at(1000));
        assert_eq!(job.kill_reason, None);
        // The cluster was not heard from minute 5 to minute 55.
        watch(&mut job, Some(&signs(1)), TimeDelta::minutes(50), at(55));
        watch(&mut job, Some(&signs(1)), TimeDelta::minutes(50), at(79));
        assert_eq!(job.kill_reason, None);
        watch(&mut job, Some(&signs(1)), TimeDelta::minutes(50), at(80));
        assert!(job.kill_reason.is_some());
    }

    #[test]
    fn only_a_running_job_with_a_limit_is_watched() {
        let unlimited = Job { spec: submitted_job().spec, ..running() };
        for mut job in [
            unlimited,
            Job { phase: Phase::Suspended, ..running() },
            Job { desired: DesiredState::Cancel, ..running() },
        ] {
            watch(&mut job, Some(&signs(1)), TimeDelta::zero(), at(0));
            assert_eq!(job.activity, None);
            assert!(!wants(&job, None, at(0)));
        }
    }

    #[test]
    fn the_evidence_is_asked_for_once_a_minute_at_most() {
        let mut job = running();
        assert!(wants(&job, Some(at(1)), at(1)), "at first sight");
        watch(&mut job, Some(&signs(1)), TimeDelta::zero(), at(0));
        let asked = (0..600).filter(|second| {
            let now = at(0) + TimeDelta::seconds(*second);
            wants(&job, Some(now - TimeDelta::seconds(1)), now)
        });
        assert_eq!(asked.count(), 10);
    }
}
