//! The RPC budget of a cluster: how many requests the service makes of Slurm's daemons.
//!
//! It is a bucket of tokens, as Slurm's own limit is (`rl_enable`). Slurm adds tokens only at the end of whole periods and does not tell
//! their length, so a bucket of the same size would be ahead of Slurm's for a part of each period. This one is smaller.

use std::time::Duration;

use chrono::TimeDelta;

use crate::clock::Timestamp;

/// How many requests a site allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RpcBudget {
    /// The most requests at once.
    pub burst: u32,
    /// The requests per minute after that.
    pub per_minute: u32,
}

/// What is left of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RpcTokens {
    /// Negative after a command that made more requests than were left.
    pub left: i64,
    /// When the last token was added.
    pub refilled_at: Timestamp,
}

/// Which commands leave tokens for others, the most urgent first. A limit on what is left needs no queue and holds between
/// processes: a cancellation finds the tokens that submissions must leave, however many jobs wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Urgency {
    /// The data is about to become stale. Polls confirm cancellations, so even those leave something for this.
    LatePoll,
    Cancel,
    Poll,
    Submit,
}

/// The requests of squeue and sacct, and of the cancellation of a job.
const ONE_POLL: u32 = 4;
/// Polls take at most one in so many tokens of the refill, while less than half of the bucket is left.
const SHARE_OF_POLLS: u32 = 2;
const SHARE_OF_BACKGROUND: u32 = 10;

impl RpcBudget {
    /// The largest value of each setting.
    pub const MOST: u32 = 60_000;

    /// The tokens of a full bucket: the burst without the refill of one period, which may be a minute.
    pub fn size(self) -> u32 {
        self.burst - self.per_minute.min(self.burst / 4)
    }

    /// The milliseconds until another token.
    fn step(self) -> i64 {
        60_000_i64.div_euclid(self.per_minute.max(1).into()) + i64::from(60_000 % self.per_minute.max(1) > 0)
    }

    /// What a command has to leave for more urgent ones.
    fn reserve(self, urgency: Urgency) -> u32 {
        let wanted = match urgency {
            Urgency::LatePoll => 0,
            Urgency::Cancel => ONE_POLL,
            Urgency::Poll => 2 * ONE_POLL,
            Urgency::Submit => 3 * ONE_POLL,
        };
        wanted.min(self.size().saturating_sub(1))
    }

    /// The tokens at a time; a budget that was never used is full.
    pub fn at(self, known: Option<RpcTokens>, now: Timestamp) -> RpcTokens {
        let full = RpcTokens { left: self.size().into(), refilled_at: now };
        let Some(known) = known else { return full };
        let added = (now - known.refilled_at).num_milliseconds().max(0) / self.step();
        let left = known.left.saturating_add(added);
        if left >= full.left {
            return full;
        }
        RpcTokens { left, refilled_at: known.refilled_at + TimeDelta::milliseconds(self.step() * added) }
    }

    /// How many requests a command of this urgency may make now.
    pub fn allows(self, tokens: RpcTokens, urgency: Urgency) -> u32 {
        u32::try_from(tokens.left - i64::from(self.reserve(urgency))).unwrap_or(0)
    }

    /// The tokens after a command that may make so many requests, or the wait until it can be paid. A command that makes more
    /// than the whole budget allows goes when the budget is full, and later ones wait for longer.
    pub fn pay(
        self,
        tokens: RpcTokens,
        rpcs: u32,
        urgency: Urgency,
        now: Timestamp,
    ) -> Result<RpcTokens, Duration> {
        let reserve = self.reserve(urgency);
        let needed = rpcs.min(self.size().saturating_sub(reserve).max(1));
        let lacking = i64::from(needed + reserve) - tokens.left;
        if rpcs == 0 || lacking <= 0 {
            return Ok(RpcTokens { left: tokens.left - i64::from(rpcs), ..tokens });
        }
        let due = tokens.refilled_at + TimeDelta::milliseconds(self.step().saturating_mul(lacking));
        Err((due - now).to_std().unwrap_or_default().max(Duration::from_millis(1)))
    }

    /// The tokens after a command that made fewer or more requests than were paid.
    pub fn settled(self, tokens: RpcTokens, paid: u32, made: u32) -> RpcTokens {
        let left = tokens.left + i64::from(paid) - i64::from(made);
        RpcTokens { left: left.min(self.size().into()), ..tokens }
    }

    /// The tokens after Slurm has answered that there are too many requests: another program uses the same account, or the
    /// budget is larger than the site's.
    pub fn drained(tokens: RpcTokens, now: Timestamp) -> RpcTokens {
        RpcTokens { left: tokens.left.min(0), refilled_at: now }
    }

    /// The shortest time between two polls. While half of the bucket is left, and enough for a submission, polls keep the pace of the
    /// cluster; otherwise they leave half of the refill to submissions.
    pub fn poll_interval(self, tokens: RpcTokens, rpcs: u32) -> Duration {
        let half = self.size().div_ceil(2);
        if tokens.left >= i64::from(half.max(self.reserve(Urgency::Submit) + 1)) {
            return Duration::ZERO;
        }
        self.interval(rpcs, SHARE_OF_POLLS)
    }

    /// The shortest time between two rounds of a command that nothing waits for.
    pub fn background_interval(self, rpcs: u32) -> Duration {
        self.interval(rpcs, SHARE_OF_BACKGROUND)
    }

    /// The time in which so many tokens are added.
    pub fn refill_time(self, rpcs: u32) -> Duration {
        self.interval(rpcs, 1)
    }

    /// How often a command can run with one in so many tokens of the refill.
    fn interval(self, rpcs: u32, share: u32) -> Duration {
        Duration::from_mins(1) * rpcs.max(1) * share / self.per_minute.max(1)
    }
}

#[cfg(test)]
mod tests;
