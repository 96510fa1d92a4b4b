//! Expands a job of Cosmos-RL into components.

use std::collections::BTreeMap;

use remote::{Component, Kind, Log, Nodes, Place, Value};
use serde::Serialize;
use slurm::{EnvKey, InvalidName, RemotePath};

use super::{CosmosPlan, NETWORK, RolePlan, is_training, plan};
use crate::request::{
    environment::CUDA_OVERRIDE,
    spec::{JobSpec, Work},
};

/// The CUDA version that TAO uses for Cosmos-RL.
const CUDA: &str = "12.8";
/// The port of the controller on the first node. No other job can use it, since the nodes are exclusive.
const CONTROLLER_PORT: u16 = 8082;
/// The first rendezvous port of replicas. Each replica on a node has its own.
const RENDEZVOUS_PORT: u32 = 29345;

/// The programs of a job.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) components: Vec<Component>,
    /// Variables with the names of nodes.
    pub(crate) variables: Vec<(EnvKey, Value)>,
    /// Variables of the service that override the caller's.
    pub(crate) env: BTreeMap<EnvKey, String>,
    /// Whether it gets all memory of its nodes, unless its request says how much.
    pub(crate) all_memory: bool,
}

/// Why a job has no program.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    #[error("the name of a component or a variable is invalid")]
    Name(#[from] InvalidName),
    #[error("the roles of the job cannot be assigned to its nodes")]
    Roles,
}

/// The specs of a job of this network, and whether it is a training with roles.
fn specs(spec: &JobSpec) -> Option<(&serde_json::Value, bool)> {
    match &spec.work {
        Work::Tao { network_arch, action, specs } if network_arch.as_str() == NETWORK => {
            let roles = spec.resources.nodes > 1 && is_training(NETWORK, action.as_str());
            Some((specs, roles))
        }
        Work::Tao { .. } | Work::Command { .. } | Work::Components { .. } => None,
    }
}

/// Whether a job becomes several components.
pub(crate) fn has_roles(spec: &JobSpec) -> bool {
    specs(spec).is_some_and(|(_, has_roles)| has_roles)
}

/// The network's own variables, which the caller can override.
pub(crate) fn defaults(spec: &JobSpec, base: &RemotePath) -> Result<Vec<(EnvKey, String)>, InvalidName> {
    if specs(spec).is_none() {
        return Ok(Vec::new());
    }
    Ok(vec![
        ("COSMOS_CACHE".parse()?, base.join(".cache/cosmos")?.to_string()),
        (CUDA_OVERRIDE.parse()?, CUDA.to_owned()),
    ])
}

/// The programs of a job with this one component. A training of Cosmos-RL on several nodes becomes three; other jobs stay as they
/// are.
pub(crate) fn expand(spec: &JobSpec, component: Component) -> Result<Program, ProgramError> {
    let mut program = Program {
        components: vec![component],
        variables: Vec::new(),
        env: BTreeMap::new(),
        all_memory: false,
    };
    let Some((specs, has_roles)) = specs(spec) else { return Ok(program) };
    program.all_memory = true;
    for component in &mut program.components {
        component.lightning_safe = false;
        if let Place::Pyxis(container) | Place::Apptainer(container) = &mut component.place {
            container.home = container.home.or(Some(false));
        }
    }
    if !has_roles {
        return Ok(program);
    }
    // Planned as at its validation.
    let plan = plan(specs, spec.resources.gpus_per_node).map_err(|_| ProgramError::Roles)?;
    if plan.nodes() != spec.resources.nodes {
        return Err(ProgramError::Roles);
    }
    let policy = Nodes { first: 0, count: plan.policy.nodes };
    let rollout = Nodes { first: policy.count, count: plan.rollout.map_or(0, |rollout| rollout.nodes) };
    let first = Nodes { first: 0, count: 1 };
    // TAO's container expects those of the whole job, and not of its role.
    let all = Value::Text(plan.nodes().to_string());
    program.variables = vec![
        ("WORLD_SIZE".parse()?, all),
        ("MASTER_ADDR".parse()?, Value::Hosts(first)),
        ("MASTER_PORT".parse()?, Value::Port(0)),
        ("CONTROLLER_NODE".parse()?, Value::Hosts(first)),
        ("COSMOS_CONTROLLER_HOST".parse()?, Value::HostPort(0, CONTROLLER_PORT)),
        ("POLICY_NODES".parse()?, Value::Hosts(policy)),
        ("ROLLOUT_NODES".parse()?, Value::Hosts(rollout)),
    ];
    program.env = environment(&plan)?;
    let roles =
        [("controller", Kind::Step, first), ("policy", Kind::With, policy), ("rollout", Kind::With, rollout)];
    let Some(component) = program.components.pop() else { return Err(ProgramError::Roles) };
    for (name, kind, nodes) in roles.into_iter().filter(|(_, _, nodes)| nodes.count > 0) {
        let variables = vec![("COSMOS_NODE_ROLE".parse()?, Value::Text(name.to_owned()))];
        let name = name.parse()?;
        program.components.push(Component {
            name,
            kind,
            nodes,
            variables,
            log: Log::Own,
            ..component.clone()
        });
    }
    Ok(program)
}

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
pub(super) fn environment(plan: &CosmosPlan) -> Result<BTreeMap<EnvKey, String>, InvalidName> {
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
