use chrono::DateTime;
use proptest::prelude::*;
use test_case::test_case;

use super::*;

const SITE: RpcBudget = RpcBudget { burst: 40, per_minute: 4 };

fn at(millis: i64) -> Timestamp {
    DateTime::from_timestamp_millis(1_800_000_000_000 + millis).unwrap()
}

#[test]
fn the_burst_goes_at_once_and_later_one_request_after_another() {
    let spent = SITE.pay(SITE.at(None, at(0)), 36, Urgency::LatePoll, at(0)).unwrap();
    assert_eq!(SITE.pay(spent, 1, Urgency::LatePoll, at(0)), Err(Duration::from_secs(15)));
    assert_eq!(SITE.at(Some(spent), at(14_999)).left, 0);
    assert_eq!(SITE.at(Some(spent), at(15_000)).left, 1);
    assert_eq!(SITE.at(Some(spent), at(62_000)), RpcTokens { left: 4, refilled_at: at(60_000) });
    assert_eq!(SITE.at(Some(spent), at(3_600_000_000)).left, 36);
}

#[test_case(Urgency::LatePoll, 36)]
#[test_case(Urgency::Cancel, 32)]
#[test_case(Urgency::Poll, 28)]
#[test_case(Urgency::Submit, 24)]
fn the_less_urgent_leaves_tokens_to_the_more_urgent(urgency: Urgency, most: u32) {
    let full = SITE.at(None, at(0));
    assert_eq!(SITE.allows(full, urgency), most);
    let left = SITE.pay(full, most, urgency, at(0)).unwrap();
    assert_eq!(SITE.allows(left, urgency), 0);
    assert!(SITE.pay(left, 1, urgency, at(0)).is_err());
}

#[test]
fn a_command_above_the_whole_budget_goes_when_it_is_full_and_delays_the_next() {
    let site = RpcBudget { burst: 3, per_minute: 3 };
    let full = site.at(None, at(0));
    let debt = site.pay(full, 9, Urgency::Submit, at(0)).unwrap();
    assert_eq!(debt.left, -6);
    assert!(site.pay(debt, 9, Urgency::Submit, at(0)).unwrap_err() > Duration::from_mins(2));
}

#[test]
fn what_was_not_used_is_given_back_and_never_more_than_the_burst() {
    let spent = SITE.pay(SITE.at(None, at(0)), 3, Urgency::Poll, at(0)).unwrap();
    assert_eq!(SITE.settled(spent, 3, 1).left, 35);
    assert_eq!(SITE.settled(spent, 3, 5).left, 31);
    assert_eq!(SITE.settled(spent, 50, 0).left, 36);
}

#[test]
fn a_refusal_by_slurm_empties_the_bucket() {
    let drained = RpcBudget::drained(SITE.at(None, at(0)), at(0));
    assert_eq!(SITE.allows(drained, Urgency::Cancel), 0);
    assert_eq!(SITE.at(Some(drained), at(62_000)).left, 4);
    let debt = RpcTokens { left: -3, ..drained };
    assert_eq!(RpcBudget::drained(debt, at(0)).left, -3);
}

#[test]
fn polls_are_rare_only_while_tokens_are_scarce() {
    let of = |left| SITE.poll_interval(RpcTokens { left, refilled_at: at(0) }, 1);
    assert_eq!(of(18), Duration::ZERO);
    assert_eq!(of(17), Duration::from_secs(30));
}

/// Slurm's own bucket (`rate_limit.c`): it adds tokens when the time has passed a multiple of the period.
struct Slurm {
    tokens: i64,
    period: i64,
    last: i64,
}

impl Slurm {
    fn accepts(&mut self, budget: RpcBudget, second: i64) -> bool {
        let now = second / self.period;
        let added = (now - self.last) * i64::from(budget.per_minute) * self.period / 60;
        self.tokens = (self.tokens + added).min(budget.burst.into());
        self.last = now;
        self.tokens -= 1;
        self.tokens >= 0
    }
}

proptest! {
    /// Whatever is asked and when, Slurm refuses nothing that was paid, although it takes up to a second to arrive.
    #[test]
    fn slurm_never_refuses_what_was_paid(
        start in 0_i64..60_000,
        asked in prop::collection::vec((0_i64..90_000, 1_u32..60, 0_i64..1000, 0_u32..3), 1..60),
        site in prop::sample::select(vec![(40, 4, 60), (40, 4, 15), (30, 120, 1), (10, 60, 1), (100, 20, 30)]),
    ) {
        let (burst, per_minute, period) = site;
        let budget = RpcBudget { burst, per_minute };
        let mut slurm = Slurm { tokens: burst.into(), period, last: at(start).timestamp() / period };
        let (mut known, mut now, mut arrivals) = (None, start, Vec::new());
        for (pause, rpcs, way, urgency) in asked {
            now += pause;
            let urgency = [Urgency::LatePoll, Urgency::Cancel, Urgency::Submit][urgency as usize];
            let tokens = budget.at(known, at(now));
            let rpcs = rpcs.min(budget.allows(tokens, urgency));
            if rpcs > 0 {
                known = Some(budget.pay(tokens, rpcs, urgency, at(now)).unwrap());
                arrivals.extend((0..rpcs).map(|_| at(now + way).timestamp()));
            }
        }
        arrivals.sort_unstable();
        for second in arrivals {
            prop_assert!(slurm.accepts(budget, second), "refused at {second}");
        }
    }

    #[test]
    fn what_waits_as_long_as_it_is_told_can_be_paid(left in -100_i64..40, rpcs in 1_u32..80, urgency in 0_usize..4) {
        let urgency = [Urgency::LatePoll, Urgency::Cancel, Urgency::Poll, Urgency::Submit][urgency];
        let tokens = RpcTokens { left, refilled_at: at(0) };
        if let Err(wait) = SITE.pay(tokens, rpcs, urgency, at(0)) {
            let then = at(0) + wait;
            prop_assert!(SITE.pay(SITE.at(Some(tokens), then), rpcs, urgency, then).is_ok());
        }
    }
}

#[test]
fn polls_leave_half_of_the_refill_when_a_submission_would_wait() {
    let budget = RpcBudget { burst: 20, per_minute: 40 };
    let interval = |left| budget.poll_interval(RpcTokens { left, refilled_at: Timestamp::UNIX_EPOCH }, 3);
    // A submission needs 13 tokens of 15.
    assert_eq!((interval(13), interval(12)), (Duration::ZERO, Duration::from_secs(9)));
}
