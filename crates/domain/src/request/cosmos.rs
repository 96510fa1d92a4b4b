//! Cosmos-RL: the nodes of its policy and rollout, and the GPUs of each replica.

mod components;

pub use components::ProgramError;
pub(crate) use components::{Program, defaults, expand, has_roles};

use serde_json::Value;

use crate::{cluster::resources::Resources, violation::Violation};

/// TAO's name of the network.
pub(crate) const NETWORK: &str = "cosmos-rl";

const MAX_NODES: u64 = 1024;

/// Whether a job is a training with policy and rollout. Other actions of the network are one program.
pub(crate) fn is_training(network_arch: &str, action: &str) -> bool {
    network_arch == NETWORK && action == "train"
}

/// The nodes of a training.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CosmosPlan {
    pub policy: RolePlan,
    /// Absent for supervised fine-tuning.
    pub rollout: Option<RolePlan>,
}

/// The replicas of one role, and their placement on nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RolePlan {
    pub replicas: u32,
    pub gpus_per_replica: u32,
    /// Nodes of one replica.
    pub span: u32,
    /// Replicas on one node; 1 if a replica spans several nodes.
    pub packed: u32,
    pub nodes: u32,
}

impl CosmosPlan {
    pub fn nodes(&self) -> u32 {
        self.policy.nodes + self.rollout.map_or(0, |rollout| rollout.nodes)
    }

    /// The GPUs in use. The nodes may have more.
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
                    "is {gpus} GPUs per replica, which {span} nodes of {node} cannot share evenly; change it to a multiple of \
                     {span}"
                ),
            ));
        }
        let packed = (node / gpus).max(1);
        let nodes = if span > 1 { replicas.saturating_mul(span) } else { replicas.div_ceil(packed) };
        if nodes > MAX_NODES {
            let detail = format_args!("needs {nodes} nodes; at most {MAX_NODES} are allowed");
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

/// Plans the nodes of a training from its specification.
///
/// A replica that is larger than a node gets whole nodes and an equal share of each. Smaller replicas share nodes, and
/// none is split. `gpus_per_node` must be at least 1.
pub fn plan(specs: &Value, gpus_per_node: u32) -> Result<CosmosPlan, Vec<Violation>> {
    let mut wrong = Vec::new();
    let mut role = |role: &str| {
        let at = format!("/specs/{role}/parallelism");
        let planned = parallelism(specs, role).and_then(|parallelism| {
            RolePlan::new(&parallelism, gpus_per_node, &at).map_err(|fault| vec![fault])
        });
        planned.map_err(|faults| wrong.extend(faults)).ok()
    };
    let policy = role("policy");
    // TAO's default is grpo; only supervised fine-tuning has no rollout.
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

/// The number of replicas of a role, and the GPUs of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Parallelism {
    replicas: u64,
    gpus: u64,
}

/// More than any cluster has. Products of such sizes fit into 64 bits.
const MOST: u64 = 8192;

/// The parallelism of the role `policy` or `rollout`. The default of every size is 1.
fn parallelism(specs: &Value, role: &str) -> Result<Parallelism, Vec<Violation>> {
    let mut wrong = Vec::new();
    let mut size = |name: &str| {
        let given = specs.pointer(&format!("/{role}/parallelism/{name}"));
        match given {
            None | Some(Value::Null) => 1,
            // Below 1 cosmos-rl uses all remaining GPUs, and TAO uses 1.
            Some(value) if name == "dp_shard_size" && value.as_i64().is_some_and(|size| size < 1) => 1,
            Some(value) => value.as_u64().filter(|size| (1..=MOST).contains(size)).unwrap_or_else(|| {
                wrong.push(Violation::new(
                    format!("/specs/{role}/parallelism/{name}"),
                    "out_of_range",
                    format_args!("must be a whole number from 1 to {MOST}"),
                ));
                1
            }),
        }
    };
    let replicas = size("n_init_replicas");
    let sizes: &[&str] = if role == "policy" {
        &["tp_size", "pp_size", "cp_size", "dp_replicate_size", "dp_shard_size"]
    } else {
        &["tp_size", "pp_size"]
    };
    let gpus = sizes.iter().map(|name| size(name)).fold(1_u64, u64::saturating_mul);
    if wrong.is_empty() && gpus > MOST {
        let detail = format_args!("is {gpus} GPUs per replica; at most {MOST} are allowed");
        wrong.push(Violation::new(format!("/specs/{role}/parallelism"), "impossible_shape", detail));
    }
    if wrong.is_empty() { Ok(Parallelism { replicas, gpus }) } else { Err(wrong) }
}

/// The resource fields of a request, without defaults.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Requested {
    pub(crate) nodes: Option<u32>,
    pub(crate) gpus: Option<u32>,
    pub(crate) gpus_per_node: Option<u32>,
}

/// The resources of a training. The specification defines them, and a request that contradicts it is rejected.
///
/// The training gets one node if everything fits and the request has no more, otherwise whole nodes for each role.
pub(crate) fn fit(
    specs: &Value,
    resources: Resources,
    requested: Requested,
) -> Result<Resources, Vec<Violation>> {
    let node = requested.gpus_per_node.unwrap_or(resources.max_gpus_per_node);
    if node == 0 {
        let detail = "must be at least 1: a cosmos-rl training needs GPUs";
        return Err(vec![Violation::new("/resources/gpus_per_node", "out_of_range", detail)]);
    }
    let plan = plan(specs, node)?;
    let nodes = if requested.nodes.or(requested.gpus).is_some() { resources.nodes } else { 1 };
    if plan.gpus() > node || nodes > 1 {
        let as_planned =
            nodes == plan.nodes() || (requested.nodes.is_none() && requested.gpus == Some(plan.gpus()));
        if requested.nodes.or(requested.gpus).is_some() && !as_planned {
            return Err(vec![contradiction(requested, &plan, node)]);
        }
        return Ok(Resources { nodes: plan.nodes(), gpus_per_node: node, exclusive: true, ..resources });
    }
    let gpus = match requested.gpus.or(requested.gpus_per_node) {
        Some(gpus) if gpus < plan.gpus() => return Err(vec![contradiction(requested, &plan, node)]),
        Some(gpus) => gpus,
        None => plan.gpus(),
    };
    Ok(Resources {
        nodes: 1,
        gpus_per_node: gpus,
        exclusive: gpus >= resources.max_gpus_per_node,
        ..resources
    })
}

fn contradiction(requested: Requested, plan: &CosmosPlan, node: u32) -> Violation {
    let field = if requested.nodes.is_some() {
        "num_nodes"
    } else if requested.gpus.is_some() {
        "num_gpus"
    } else {
        "gpus_per_node"
    };
    Violation::new(
        format!("/resources/{field}"),
        "contradiction",
        format_args!(
            "contradicts the parallelism of the specs, which needs {} GPUs: {} node(s) of {node} for the policy, {} for the \
             rollout; request that, or leave it out",
            plan.gpus(),
            plan.policy.nodes,
            plan.rollout.map_or(0, |rollout| rollout.nodes)
        ),
    )
}

#[cfg(test)]
mod tests;
