//! How long it is tried to remove what deleted jobs have left on a cluster.

use chrono::TimeDelta;

/// With the waits between them, a day: what cannot be removed by then is no use to wait for.
const MOST_TRIES: u32 = 30;
const FIRST_WAIT: TimeDelta = TimeDelta::minutes(1);
const LONGEST_WAIT: TimeDelta = TimeDelta::hours(1);

/// When it is tried again after one more failure; never, once there were enough. Tries are counted and not hours, so that
/// a service that was away for a day still tries.
pub fn purge_again(failed_before: u32) -> Option<TimeDelta> {
    let again = failed_before + 1 < MOST_TRIES;
    again.then(|| (FIRST_WAIT * (1 << failed_before.min(6))).min(LONGEST_WAIT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_waits_grow_to_an_hour_and_end_after_a_day() {
        let waits: Vec<_> = (0..).map_while(purge_again).collect();
        let minutes: Vec<_> = waits.iter().map(TimeDelta::num_minutes).take(8).collect();
        assert_eq!(minutes, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(waits.iter().sum::<TimeDelta>().num_hours(), 24);
    }

    #[test]
    fn what_was_given_up_is_never_tried_again() {
        assert_eq!((purge_again(29), purge_again(u32::MAX - 1)), (None, None));
    }
}
