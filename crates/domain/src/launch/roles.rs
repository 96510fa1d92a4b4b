//! The variables for the programs of a Cosmos-RL training on several nodes.

use serde::Serialize;
use slurm::{EnvKey, InvalidName};

use crate::request::cosmos::{CONTROLLER_PORT, CosmosPlan, RolePlan};

/// The first rendezvous port of replicas. Each replica on a node has its own.
const RENDEZVOUS_PORT: u32 = 29345;

/// The replicas on one node, in the format of cosmos-rl's launcher.
#[derive(Debug, Serialize)]
struct Node {
    colocation: Vec<Replica>,
}

#[derive(Debug, Serialize)]
struct Replica {
    nnode: u32,
    role: &'static str,
    /// The index among the nodes of the role.
    rendezvous_node: u32,
    rendezvous_port: u32,
    visible_gpus: Vec<u32>,
}

/// The variables that make TAO's entry point run one of several roles.
pub(crate) fn environment(plan: &CosmosPlan) -> Result<Vec<(EnvKey, String)>, InvalidName> {
    let rollout_nodes = plan.rollout.map_or(0, |rollout| rollout.nodes);
    let list = |nodes: Vec<Node>| serde_json::json!(nodes).to_string();
    let vars = [
        ("COSMOS_RL_MULTINODE", "1".to_owned()),
        ("NUM_POLICY_NODES", plan.policy.nodes.to_string()),
        ("NUM_ROLLOUT_NODES", rollout_nodes.to_string()),
        ("TOTAL_NODES", plan.nodes().to_string()),
        ("CONTROLLER_PORT", CONTROLLER_PORT.to_string()),
        ("NODE_LAUNCH_METADATA_POLICY", list(nodes("policy", plan.policy))),
        (
            "NODE_LAUNCH_METADATA_ROLLOUT",
            list(plan.rollout.map(|rollout| nodes("rollout", rollout)).unwrap_or_default()),
        ),
    ];
    vars.into_iter().map(|(key, value)| Ok((key.parse()?, value))).collect()
}

fn nodes(role: &'static str, plan: RolePlan) -> Vec<Node> {
    let share = plan.gpus_per_replica / plan.span;
    let replica = |node: u32, place: u32| Replica {
        nnode: plan.span,
        role,
        rendezvous_node: node - node % plan.span,
        rendezvous_port: RENDEZVOUS_PORT + place,
        visible_gpus: (place * share..(place + 1) * share).collect(),
    };
    (0..plan.nodes)
        .map(|node| {
            let here = if plan.span > 1 { 1 } else { plan.packed.min(plan.replicas - node * plan.packed) };
            Node { colocation: (0..here).map(|place| replica(node, place)).collect() }
        })
        .collect()
}
