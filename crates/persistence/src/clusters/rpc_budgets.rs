//! The RPC budgets of clusters: one row for each, so that all processes together stay within it.

use std::{collections::HashMap, time::Duration};

use domain::{ClusterName, RpcBudget, RpcTokens, Timestamp, Urgency};
use sqlx::PgConnection;

use crate::{
    error::Result,
    store::{Call, Store},
    values::{count, signed},
};

/// What is left of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RpcState {
    /// At the time of the answer; none if no process has used the budget yet.
    pub tokens: Option<RpcTokens>,
    /// All requests so far.
    pub spent: u64,
    /// The time by the server clock.
    pub now: Timestamp,
}

/// Pays for the requests of commands.
pub trait RpcBudgets {
    /// Takes the tokens for a command that may make so many requests, or returns the wait until there are enough.
    fn pay_rpcs(
        &self,
        cluster: &ClusterName,
        budget: RpcBudget,
        rpcs: u32,
        urgency: Urgency,
    ) -> impl Call<Result<RpcTokens, Duration>>;

    /// Corrects what was paid for a command to what it made. After an answer of Slurm that there were too many, nothing is left.
    fn settle_rpcs(
        &self,
        cluster: &ClusterName,
        budget: RpcBudget,
        paid: u32,
        made: u32,
        is_rate_limited: bool,
    ) -> impl Call<()>;

    /// What is left of a budget.
    fn rpc_state(&self, cluster: &ClusterName, budget: RpcBudget) -> impl Call<RpcState>;
}

impl RpcBudgets for Store {
    async fn pay_rpcs(
        &self,
        cluster: &ClusterName,
        budget: RpcBudget,
        rpcs: u32,
        urgency: Urgency,
    ) -> Result<Result<RpcTokens, Duration>> {
        let mut tx = self.begin().await?;
        let (tokens, now) = held(&mut tx, cluster, budget).await?;
        let paid = match budget.pay(tokens, rpcs, urgency, now) {
            Ok(paid) => paid,
            Err(wait) => return Ok(Err(wait)),
        };
        write(&mut tx, cluster, paid, i64::from(rpcs)).await?;
        tx.commit().await?;
        Ok(Ok(paid))
    }

    async fn settle_rpcs(
        &self,
        cluster: &ClusterName,
        budget: RpcBudget,
        paid: u32,
        made: u32,
        is_rate_limited: bool,
    ) -> Result<()> {
        let mut tx = self.begin().await?;
        let (tokens, now) = held(&mut tx, cluster, budget).await?;
        let settled = budget.settled(tokens, paid, made);
        let settled = if is_rate_limited { RpcBudget::drained(settled, now) } else { settled };
        write(&mut tx, cluster, settled, i64::from(made) - i64::from(paid)).await?;
        tx.commit().await?;
        Ok(())
    }

    async fn rpc_state(&self, cluster: &ClusterName, budget: RpcBudget) -> Result<RpcState> {
        let row = sqlx::query!(
            r#"-- clusters::rpc_budgets::rpc_state
               select b.tokens as "tokens?", b.refilled_at as "refilled_at?", b.spent as "spent?", clock_timestamp() as "now!"
               from (select 1) one left join rpc_budgets b on b.cluster = $1"#,
            cluster.as_str(),
        )
        .fetch_one(&self.pool)
        .await?;
        let known = row.tokens.zip(row.refilled_at);
        let known = known.map(|(left, refilled_at)| RpcTokens { left, refilled_at });
        let tokens = known.map(|known| budget.at(Some(known), row.now));
        Ok(RpcState { tokens, spent: count(row.spent.unwrap_or(0)), now: row.now })
    }
}

impl Store {
    /// How many requests each cluster with a budget has made so far, and what was left after the last one.
    pub async fn rpcs_spent(&self) -> Result<HashMap<ClusterName, (RpcTokens, u64)>> {
        let rows = sqlx::query!(
            "-- clusters::rpc_budgets::rpcs_spent
             select cluster, tokens, refilled_at, spent from rpc_budgets"
        )
        .fetch_all(&self.pool)
        .await?;
        let spent = rows.into_iter().filter_map(|row| {
            let tokens = RpcTokens { left: row.tokens, refilled_at: row.refilled_at };
            Some((row.cluster.parse().ok()?, (tokens, count(row.spent))))
        });
        Ok(spent.collect())
    }
}

/// Locks the row of a cluster, and returns its tokens now.
async fn held(
    connection: &mut PgConnection,
    cluster: &ClusterName,
    budget: RpcBudget,
) -> Result<(RpcTokens, Timestamp)> {
    let row = sqlx::query!(
        r#"-- clusters::rpc_budgets::held
           insert into rpc_budgets as b (cluster, tokens, refilled_at) values ($1, $2, clock_timestamp())
           on conflict (cluster) do update set tokens = b.tokens
           returning tokens, refilled_at"#,
        cluster.as_str(),
        signed(budget.size().into()),
    )
    .fetch_one(&mut *connection)
    .await?;
    // After the wait for the lock.
    let now = sqlx::query_scalar!(
        r#"-- clusters::rpc_budgets::held now
           select clock_timestamp() as "now!""#
    )
    .fetch_one(connection)
    .await?;
    let known = RpcTokens { left: row.tokens, refilled_at: row.refilled_at };
    Ok((budget.at(Some(known), now), now))
}

async fn write(
    connection: &mut PgConnection,
    cluster: &ClusterName,
    tokens: RpcTokens,
    spent: i64,
) -> Result<()> {
    sqlx::query!(
        "-- clusters::rpc_budgets::write
         update rpc_budgets set tokens = $2, refilled_at = $3, spent = spent + $4 where cluster = $1",
        cluster.as_str(),
        tokens.left,
        tokens.refilled_at,
        spent,
    )
    .execute(connection)
    .await?;
    Ok(())
}

#[cfg(test)]
mod tests;
