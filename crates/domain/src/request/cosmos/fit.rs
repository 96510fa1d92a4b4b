//! A training's plan against what its request says of nodes and GPUs.

use serde_json::Value;

use super::{CosmosPlan, plan};
use crate::{cluster::resources::Resources, violation::Violation};

/// What a request says itself, defaults aside.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Asked {
    pub(crate) nodes: Option<u32>,
    pub(crate) gpus: Option<u32>,
    pub(crate) gpus_per_node: Option<u32>,
}

/// The resources of a training: the specification decides, and a request that says otherwise is refused.
///
/// One node if everything fits into it and nothing else is asked for; else whole nodes for each role.
pub(crate) fn fit(specs: &Value, resources: Resources, asked: Asked) -> Result<Resources, Vec<Violation>> {
    let node = asked.gpus_per_node.unwrap_or(resources.max_gpus_per_node);
    if node == 0 {
        let detail = "must be at least 1: a cosmos-rl training needs GPUs";
        return Err(vec![Violation::new("/resources/gpus_per_node", "out_of_range", detail)]);
    }
    let plan = plan(specs, node)?;
    let nodes = if asked.nodes.or(asked.gpus).is_some() { resources.nodes } else { 1 };
    if plan.gpus() > node || nodes > 1 {
        let as_planned = nodes == plan.nodes() || (asked.nodes.is_none() && asked.gpus == Some(plan.gpus()));
        if asked.nodes.or(asked.gpus).is_some() && !as_planned {
            return Err(vec![contradiction(asked, &plan, node)]);
        }
        return Ok(Resources { nodes: plan.nodes(), gpus_per_node: node, exclusive: true, ..resources });
    }
    let gpus = match asked.gpus.or(asked.gpus_per_node) {
        Some(gpus) if gpus < plan.gpus() => return Err(vec![contradiction(asked, &plan, node)]),
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

fn contradiction(asked: Asked, plan: &CosmosPlan, node: u32) -> Violation {
    let field = if asked.nodes.is_some() {
        "num_nodes"
    } else if asked.gpus.is_some() {
        "num_gpus"
    } else {
        "gpus_per_node"
    };
    Violation::new(
        format!("/resources/{field}"),
        "contradiction",
        format_args!(
            "does not fit the parallelism of the specs, which needs {} GPUs: {} node(s) of {node} for the policy, \
             {} for the rollout; ask for that, or leave it out",
            plan.gpus(),
            plan.policy.nodes,
            plan.rollout.map_or(0, |rollout| rollout.nodes)
        ),
    )
}
