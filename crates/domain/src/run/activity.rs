//! The activity timeout: whether a running job still writes anything.

use std::num::NonZeroU32;

use chrono::TimeDelta;
use remote::SignsOfLife;

use crate::{
    clock::{Timestamp, comes_round},
    job::{
        run::{Activity, Run, Signs},
        status::Phase,
        stored::{ActiveJob, DesiredState},
    },
    run::task::Task,
};

/// Whether a poll checks the job's activity.
pub fn wants_signs_of_life(job: &ActiveJob, last_poll: Option<Timestamp>, now: Timestamp) -> bool {
    let is_watched = job.phase == Phase::Running && job.desired == DesiredState::Run && !job.is_doomed;
    let is_due = |limit| check_is_due(limit, job.was_alive, last_poll, now);
    is_watched && job.timeout_minutes.is_some_and(is_due)
}

/// The check is costly, so it comes about ten times within the timeout.
pub(crate) fn check_is_due(
    limit: NonZeroU32,
    was_alive: bool,
    last_poll: Option<Timestamp>,
    now: Timestamp,
) -> bool {
    let every = (i64::from(limit.get()) * 6).clamp(10, 60);
    !was_alive || comes_round(every, last_poll, now)
}

/// Takes in how much the run has written, and sets the kill reason once it has been inactive for too long.
///
/// `unreachable_for` is how long the cluster has been unreachable so far, in total. That time does not count: whatever
/// made the cluster unreachable may also have kept the job from writing.
pub(crate) fn watch(
    run: &mut Run,
    task: &Task<'_>,
    seen: Option<&SignsOfLife>,
    unreachable_for: TimeDelta,
    now: Timestamp,
) {
    let (Some(limit), Some(seen)) = (task.timeout_minutes, seen) else { return };
    if run.phase() != Phase::Running || task.desired != DesiredState::Run || run.kill_reason.is_some() {
        return;
    }
    let signs = Signs { files: seen.files, bytes: seen.bytes, newest: seen.newest };
    let known = run.activity.as_ref().filter(|known| known.signs == signs);
    let Some(known) = known else {
        run.activity =
            Some(Activity { signs, since: now, unreachable_ms: unreachable_for.num_milliseconds() });
        return;
    };
    let inactive = now - known.since - (unreachable_for - TimeDelta::milliseconds(known.unreachable_ms));
    let minutes = i64::from(limit.get());
    if inactive >= TimeDelta::minutes(minutes) {
        let since = known.since.format("%Y-%m-%d %H:%M:%S UTC");
        let plural = if minutes == 1 { "" } else { "s" };
        run.kill_reason = Some(format!(
            "No activity for {minutes} minute{plural}: no new status line, log output or result file since {since}."
        ));
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use chrono::DateTime;

    use super::*;
    use crate::{fixtures::submitted_job, job::stored::Job};

    fn at(minutes: i64) -> Timestamp {
        DateTime::UNIX_EPOCH + TimeDelta::minutes(minutes)
    }

    fn running() -> Job {
        let mut job = submitted_job();
        job.phase = Phase::Running;
        job.run.state = Some(slurm::SlurmState::Running);
        job.spec.timeout_minutes = NonZeroU32::new(30);
        job
    }

    fn see(job: &mut Job, seen: Option<&SignsOfLife>, unreachable_for: TimeDelta, now: Timestamp) {
        let mut run = job.run.clone();
        watch(&mut run, &Task::of(job).unwrap(), seen, unreachable_for, now);
        job.run = run;
    }

    fn wants(job: &Job, last_poll: Option<Timestamp>, now: Timestamp) -> bool {
        wants_signs_of_life(&ActiveJob::of(job).unwrap(), last_poll, now)
    }

    fn signs(bytes: u64) -> SignsOfLife {
        SignsOfLife { files: 3, bytes, newest: 17 }
    }

    #[test]
    fn an_inactive_job_is_ended() {
        let mut job = running();
        see(&mut job, Some(&signs(1)), TimeDelta::zero(), at(0));
        see(&mut job, Some(&signs(2)), TimeDelta::zero(), at(29));
        see(&mut job, Some(&signs(2)), TimeDelta::zero(), at(58));
        assert_eq!(job.run.kill_reason, None, "each new byte counts");
        see(&mut job, Some(&signs(2)), TimeDelta::zero(), at(59));
        let why = job.run.kill_reason.unwrap();
        assert!(
            why.starts_with("No activity for 30 minutes: ") && why.contains("1970-01-01 00:29:00"),
            "{why}"
        );
    }

    #[test]
    fn time_without_contact_does_not_count() {
        let mut job = running();
        see(&mut job, Some(&signs(1)), TimeDelta::zero(), at(0));
        see(&mut job, None, TimeDelta::zero(), at(1000));
        assert_eq!(job.run.kill_reason, None);
        // The cluster was unreachable from minute 5 to minute 55.
        see(&mut job, Some(&signs(1)), TimeDelta::minutes(50), at(55));
        see(&mut job, Some(&signs(1)), TimeDelta::minutes(50), at(79));
        assert_eq!(job.run.kill_reason, None);
        see(&mut job, Some(&signs(1)), TimeDelta::minutes(50), at(80));
        assert!(job.run.kill_reason.is_some());
    }

    #[test]
    fn only_a_running_job_with_a_timeout_is_watched() {
        let unlimited = Job { spec: submitted_job().spec, ..running() };
        for mut job in [
            unlimited,
            Job {
                phase: Phase::Suspended,
                run: Run { state: Some(slurm::SlurmState::Suspended), ..Run::default() },
                ..running()
            },
            Job { desired: DesiredState::Cancel, ..running() },
        ] {
            see(&mut job, Some(&signs(1)), TimeDelta::zero(), at(0));
            assert_eq!(job.run.activity, None);
            assert!(!wants(&job, None, at(0)));
        }
    }

    #[test]
    fn activity_is_checked_once_a_minute_at_most() {
        let mut job = running();
        assert!(wants(&job, Some(at(1)), at(1)), "at the first poll");
        see(&mut job, Some(&signs(1)), TimeDelta::zero(), at(0));
        let asked = (0..600).filter(|second| {
            let now = at(0) + TimeDelta::seconds(*second);
            wants(&job, Some(now - TimeDelta::seconds(1)), now)
        });
        assert_eq!(asked.count(), 10);
    }
}
