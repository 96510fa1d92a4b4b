//! A way to a cluster that stays within its RPC budget: each command is paid before it is sent.
//!
//! What is left stands in the database, because Slurm counts the requests of a user, whichever process makes them. A command costs a
//! statement or two, and only on a cluster with a budget.

use domain::{ClusterName, RpcBudget, Urgency};
use metrics::{counter, gauge};
use persistence::{RpcBudgets, Store, StoreError};
use remote::{Cancel, Locate, Poll, RemoteCommand};

use crate::link::cluster_link::{ClusterLink, LinkError, Meter};

/// Another link with the budget of its cluster.
#[derive(Debug, Clone)]
pub struct Metered<L, S = Store> {
    link: L,
    store: S,
    cluster: ClusterName,
    /// Without one, requests are only counted.
    budget: Option<RpcBudget>,
}

impl<L: ClusterLink, S: RpcBudgets + Clone + Send + Sync + 'static> Metered<L, S> {
    pub fn new(link: L, store: S, cluster: ClusterName, budget: Option<RpcBudget>) -> Self {
        Self { link, store, cluster, budget }
    }

    async fn send<C: RemoteCommand>(&self, command: &C, urgency: Urgency) -> Result<C::Output, LinkError> {
        let rpcs = command.rpcs();
        if rpcs == 0 {
            return self.link.call(command).await;
        }
        if let Some(budget) = self.budget {
            self.pay(C::NAME, budget, rpcs, urgency).await?;
        }
        let answer = self.link.call(command).await;
        let (made, is_limited) = match &answer {
            Ok(answer) => (command.rpcs_made(answer), command.is_rate_limited(answer)),
            Err(
                LinkError::NotSent { .. } | LinkError::AuthRequired { .. } | LinkError::OverBudget { .. },
            ) => (0, false),
            Err(LinkError::NotDone { .. } | LinkError::Lost { .. }) => (rpcs, false),
        };
        self.count(C::NAME, made, is_limited);
        if let Some(budget) = self.budget.filter(|_| made != rpcs || is_limited) {
            let settled = self.store.settle_rpcs(&self.cluster, budget, rpcs, made, is_limited).await;
            if let Err(error) = settled {
                tracing::warn!(cluster.name = %self.cluster, %error, "the RPC budget could not be corrected; it refills by itself");
            }
        }
        answer
    }

    async fn pay(
        &self,
        command: &'static str,
        budget: RpcBudget,
        rpcs: u32,
        urgency: Urgency,
    ) -> Result<(), LinkError> {
        let paid = self.store.pay_rpcs(&self.cluster, budget, rpcs, urgency).await;
        let wait = match paid {
            Ok(Ok(left)) => {
                #[expect(clippy::cast_precision_loss, reason = "a budget is far below 2^53")]
                gauge!("tao_slurm_rpc_tokens", "cluster" => self.cluster.to_string()).set(left.left as f64);
                return Ok(());
            }
            Ok(Err(wait)) => wait,
            Err(error) => {
                return Err(LinkError::NotSent { why: format!("the RPC budget cannot be read: {error}") });
            }
        };
        counter!("tao_slurm_rpc_waits_total", "cluster" => self.cluster.to_string(), "command" => command)
            .increment(1);
        tracing::debug!(cluster.name = %self.cluster, command, rpcs, ?wait, "waits for the RPC budget");
        Err(LinkError::OverBudget { wait })
    }

    fn count(&self, command: &'static str, made: u32, is_limited: bool) {
        counter!("tao_slurm_rpcs_total", "cluster" => self.cluster.to_string(), "command" => command)
            .increment(made.into());
        if is_limited {
            tracing::warn!(
                cluster.name = %self.cluster, command,
                "Slurm answers that there are too many requests; set rpc_budget of the cluster to what the site allows"
            );
            counter!("tao_slurm_rate_limited_total", "cluster" => self.cluster.to_string()).increment(1);
        }
    }
}

/// The urgency of a kind of command.
fn urgency_of(command: &str) -> Urgency {
    match command {
        Cancel::NAME => Urgency::Cancel,
        Poll::NAME | Locate::NAME => Urgency::Poll,
        _ => Urgency::Submit,
    }
}

impl<L: ClusterLink, S: RpcBudgets + Clone + Send + Sync + 'static> ClusterLink for Metered<L, S> {
    async fn call<C: RemoteCommand>(&self, command: &C) -> Result<C::Output, LinkError> {
        self.send(command, urgency_of(C::NAME)).await
    }

    async fn call_late<C: RemoteCommand>(&self, command: &C) -> Result<C::Output, LinkError> {
        self.send(command, Urgency::LatePoll).await
    }

    fn out_of_reach(&self) -> Option<LinkError> {
        self.link.out_of_reach()
    }

    async fn meter(&self) -> Result<Option<Meter>, StoreError> {
        let Some(budget) = self.budget else { return Ok(None) };
        let state = self.store.rpc_state(&self.cluster, budget).await?;
        let tokens = budget.at(state.tokens, state.now);
        Ok(Some(Meter { budget, tokens, now: state.now }))
    }
}
