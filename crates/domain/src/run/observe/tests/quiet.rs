use proptest::prelude::*;

use super::*;

fn alone(row: &QueueRow) -> Observation<'_> {
    Observation { queue: Some(row), queue_answered: true, ..Observation::default() }
}

/// A job that waits, as a poll has left it, and the row that the poll saw.
fn waiting(reason: &str) -> (Job, QueueRow) {
    let job = submitted_job();
    let row = QueueRow { start: None, nodes: String::new(), ..row(&job, SlurmState::Pending, reason) };
    (see(&job, &alone(&row), 0).unwrap().job, row)
}

proptest! {
    /// In seconds: an estimate as it was kept, as it is told later, when it is told, and how long after that it is told again.
    #[test]
    fn what_is_quiet_is_no_news_until_then(
        first in 1_i64..20_000, moved in -1_000_i64..1_000, seen in 0_i64..20_000, later in 0.0_f64..1.0,
    ) {
        let job = submitted_job();
        let mut row = QueueRow { start: Some(first), ..row(&job, SlurmState::Pending, "Priority") };
        let job = see(&job, &alone(&row), 0).unwrap().job;
        row.start = Some(first + moved);
        prop_assume!(see(&job, &alone(&row), seen).is_none());
        let now = T0 + TimeDelta::seconds(seen);
        let until = unchanged_until(&job, &row, now).unwrap();
        // At the edge of what is tolerated it holds just now.
        prop_assert!(until >= now);
        let left = (until - now).num_milliseconds().min(40_000_000);
        #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "any time in between will do")]
        let then = now + TimeDelta::milliseconds((left as f64 * later) as i64);
        prop_assert!(observe(&job, &alone(&row), &Graces::default(), then).is_none(), "{then}, {until}");
    }
}

#[test]
fn a_job_without_an_estimate_is_quiet_for_good() {
    let (job, row) = waiting("Priority");
    assert_eq!(unchanged_until(&job, &row, T0), Some(Timestamp::MAX_UTC));
}

#[test]
fn what_time_alone_can_change_is_not_quiet() {
    let (job, row) = waiting("Resources");
    let quiet = |job: &Job, row: &QueueRow| unchanged_until(job, row, T0).is_some();
    assert!(quiet(&job, &row));
    let anothers = QueueRow { name: "somebody's".to_owned(), ..row.clone() };
    assert!(!quiet(&job, &anothers), "an id that was given anew: the job is missing");
    let unknown = QueueRow { state: SlurmState::Unknown("EXOTIC".to_owned()), ..row.clone() };
    assert!(!quiet(&job, &unknown));
    assert!(!quiet(&Job { phase: Phase::Running, ..job.clone() }, &row), "it may be silent for too long");
    let mut excluding = job.clone();
    excluding.attempt.as_mut().unwrap().excluded = vec!["node01".parse().unwrap()];
    assert!(!quiet(&excluding, &row), "an exclusion expires");
}

#[test]
fn what_is_seen_beside_the_queue_is_looked_at() {
    let (job, row) = waiting("Resources");
    let seen = alone(&row);
    assert_eq!(seen.queue_alone(), Some(&row));
    let (markers, record) = (Markers::default(), launches::record(&job, SlurmState::Pending));
    let beside = [
        Observation { markers: Some(&markers), ..seen },
        Observation { accounting: Some(&record), ..seen },
        Observation { queue: None, ..seen },
    ];
    assert!(beside.iter().all(|seen| seen.queue_alone().is_none()));
}
