//! Cosmos-RL: how many nodes its policy and its rollout need, and which GPUs each of their replicas gets.

mod fit;
mod launch;
mod parallelism;

use serde_json::Value;

use crate::violation::Violation;
pub(crate) use fit::{Asked, fit};
pub(crate) use launch::environment;
use parallelism::Parallelism;

/// TAO's name of the network.
pub(crate) const NETWORK: &str = "cosmos-rl";
/// Where the controller listens, on the first node. No other job is there: each node is exclusive.
pub(crate) const CONTROLLER_PORT: u16 = 8082;

const MAX_NODES: u64 = 1024;

/// Whether a job is a training of policy and rollout; other actions of the network are one program.
pub(crate) fn is_training(network_arch: &str, action: &str) -> bool {
    network_arch == NETWORK && action == "train"
}

/// The nodes of a training.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CosmosPlan {
    pub policy: RolePlan,
    /// None for supervised fine-tuning.
    pub rollout: Option<RolePlan>,
}

/// The replicas of one role, and how they lie on nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RolePlan {
    pub replicas: u32,
    pub gpus_per_replica: u32,
    /// Nodes that one replica spans; 1 when it fits into one.
    pub span: u32,
    /// Replicas on one node; 1 when one spans several.
    pub packed: u32,
    pub nodes: u32,
}

impl CosmosPlan {
    pub fn nodes(&self) -> u32 {
        self.policy.nodes + self.rollout.map_or(0, |rollout| rollout.nodes)
    }

    /// GPUs that are used, which may be fewer than the nodes have.
    pub fn gpus(&self) -> u32 {
        self.policy.gpus() + self.rollout.map_or(0, RolePlan::gpus)
    }
}

impl RolePlan {
    fn gpus(self) -> u32 {
        self.replicas * self.gpus_per_replica
    }

    fn new(parallelism: &Parallelism, gpus_per_node: u32, at: &str) -> Result<Self, Violation> {
        let Parallelism { replicas, gpus } = *parallelism;
        let node = u64::from(gpus_per_node.max(1));
        let span = gpus.div_ceil(node);
        if !gpus.is_multiple_of(span) {
            return Err(Violation::new(
                at,
                "impossible_shape",
                format_args!(
                    "a replica has {gpus} GPUs, which {span} nodes of {node} cannot share evenly; \
                     change its parallelism to a multiple of {span}"
                ),
            ));
        }
        let packed = (node / gpus).max(1);
        let nodes = if span > 1 { replicas.saturating_mul(span) } else { replicas.div_ceil(packed) };
        if nodes > MAX_NODES {
            let detail = format_args!("needs {nodes} nodes; at most {MAX_NODES} can be asked for");
            return Err(Violation::new(at, "impossible_shape", detail));
        }
        let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        Ok(Self {
            replicas: small(replicas),
            gpus_per_replica: small(gpus),
            span: small(span),
            packed: small(packed),
            nodes: small(nodes),
        })
    }
}

/// The nodes that a training's specification asks for.
///
/// A replica that is larger than a node takes as many whole nodes as it needs, and an equal share of each; smaller ones
/// are packed, and none is cut in two. `gpus_per_node` is what each node gives, at least 1.
pub fn plan(specs: &Value, gpus_per_node: u32) -> Result<CosmosPlan, Vec<Violation>> {
    let mut wrong = Vec::new();
    let mut role = |role: &str| {
        let at = format!("/specs/{role}/parallelism");
        let planned = parallelism::of(specs, role).and_then(|parallelism| {
            RolePlan::new(&parallelism, gpus_per_node, &at).map_err(|fault| vec![fault])
        });
        planned.map_err(|faults| wrong.extend(faults)).ok()
    };
    let policy = role("policy");
    // TAO's default is grpo; only supervised fine-tuning needs nobody to act.
    let supervised = specs.pointer("/train/train_policy/type").and_then(Value::as_str) == Some("sft");
    let rollout = if supervised { None } else { role("rollout") };
    match policy {
        Some(policy) if wrong.is_empty() => {
            let plan = CosmosPlan { policy, rollout };
            if u64::from(plan.nodes()) > MAX_NODES {
                let detail =
                    format_args!("policy and rollout need {} nodes; at most {MAX_NODES}", plan.nodes());
                return Err(vec![Violation::new("/specs/rollout/parallelism", "impossible_shape", detail)]);
            }
            Ok(plan)
        }
        _ => Err(wrong),
    }
}

#[cfg(test)]
mod tests;
