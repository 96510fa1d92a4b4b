//! The RPC budgets.

use std::time::Duration;

use domain::{ClusterName, RpcBudget, RpcTokens, Urgency};
use persistence::{RpcBudgets, RpcState, StoreError, WorkStore};

use super::{Gate, GatedStore};

impl<S: WorkStore, G: Gate> RpcBudgets for GatedStore<S, G> {
    async fn pay_rpcs(
        &self,
        cluster: &ClusterName,
        budget: RpcBudget,
        rpcs: u32,
        urgency: Urgency,
    ) -> Result<Result<RpcTokens, Duration>, StoreError> {
        self.gate.pass("pay_rpcs", self.store.pay_rpcs(cluster, budget, rpcs, urgency)).await
    }

    async fn settle_rpcs(
        &self,
        cluster: &ClusterName,
        budget: RpcBudget,
        paid: u32,
        made: u32,
        is_rate_limited: bool,
    ) -> Result<(), StoreError> {
        let settled = self.store.settle_rpcs(cluster, budget, paid, made, is_rate_limited);
        self.gate.pass("settle_rpcs", settled).await
    }

    async fn rpc_state(&self, cluster: &ClusterName, budget: RpcBudget) -> Result<RpcState, StoreError> {
        self.gate.pass("rpc_state", self.store.rpc_state(cluster, budget)).await
    }
}
