//! The RPC budgets of clusters.

use std::time::Duration;

use domain::{ClusterName, RpcBudget, RpcTokens, Urgency};
use persistence::{RpcBudgets, RpcState, StoreError};

use super::MemoryStore;

impl RpcBudgets for MemoryStore {
    async fn pay_rpcs(
        &self,
        cluster: &ClusterName,
        budget: RpcBudget,
        rpcs: u32,
        urgency: Urgency,
    ) -> Result<Result<RpcTokens, Duration>, StoreError> {
        let now = self.now();
        let mut tables = self.tables();
        let known = tables.budgets.get(cluster).copied();
        let tokens = budget.at(known.map(|(tokens, _)| tokens), now);
        let paid = budget.pay(tokens, rpcs, urgency, now);
        if let Ok(paid) = paid {
            let spent = known.map_or(0, |(_, spent)| spent) + i64::from(rpcs);
            tables.budgets.insert(cluster.clone(), (paid, spent));
        }
        Ok(paid)
    }

    async fn settle_rpcs(
        &self,
        cluster: &ClusterName,
        budget: RpcBudget,
        paid: u32,
        made: u32,
        is_rate_limited: bool,
    ) -> Result<(), StoreError> {
        let now = self.now();
        let mut tables = self.tables();
        let known = tables.budgets.get(cluster).copied();
        let tokens = budget.settled(budget.at(known.map(|(tokens, _)| tokens), now), paid, made);
        let tokens = if is_rate_limited { RpcBudget::drained(tokens, now) } else { tokens };
        let spent = known.map_or(0, |(_, spent)| spent) + i64::from(made) - i64::from(paid);
        tables.budgets.insert(cluster.clone(), (tokens, spent));
        Ok(())
    }

    async fn rpc_state(&self, cluster: &ClusterName, budget: RpcBudget) -> Result<RpcState, StoreError> {
        let now = self.now();
        let known = self.tables().budgets.get(cluster).copied();
        let tokens = known.map(|(tokens, _)| budget.at(Some(tokens), now));
        let spent = known.and_then(|(_, spent)| u64::try_from(spent).ok()).unwrap_or(0);
        Ok(RpcState { tokens, spent, now })
    }
}
