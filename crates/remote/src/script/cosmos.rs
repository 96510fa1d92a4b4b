//! Cosmos-RL on several nodes: a controller, the policy and the rollout, each a step of its own with its own logs.

use std::fmt::Write;

use super::{
    ScriptError, TaskSetup,
    launch::{Container, LATE_WARNING, RENDEZVOUS_ENV, join, program},
};
use slurm::RemotePath;

pub(super) const HOSTS: &str = include_str!("cosmos.sh");
pub(super) const WAIT_ROLES: &str = include_str!("wait_roles.sh");

/// What a role must see as the batch script or Slurm set it, even if the image sets it too.
const ROLE_ENV: &str = "COSMOS_NODE_ROLE,COSMOS_CONTROLLER_HOST,CONTROLLER_NODE,POLICY_NODES,ROLLOUT_NODES,\
                        SLURM_NODEID,SLURMD_NODENAME";

/// How the nodes are dealt to the roles: the first to the policy, the rest to the rollout. The controller shares the
/// very first node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CosmosNodes {
    /// Nodes of the policy, at least 1.
    pub policy: u32,
    /// Nodes of the rollout; 0 for a training without one.
    pub rollout: u32,
    /// Where the controller listens, on the first node.
    pub controller_port: u16,
}

pub(super) fn render(
    nodes: &CosmosNodes,
    container: &Container,
    state_dir: &RemotePath,
    task: &TaskSetup,
    out: &mut String,
) -> Result<(), ScriptError> {
    let CosmosNodes { policy, rollout, controller_port } = nodes;
    if *policy == 0 {
        return Err(ScriptError::Zero { what: "nodes of the policy" });
    }
    let _ = writeln!(
        out,
        "\nreadonly _tao_policy_nodes={policy} _tao_rollout_nodes={rollout} _tao_controller_port={controller_port}"
    );
    out.push_str(HOSTS);
    out.push_str(WAIT_ROLES);
    out.push_str("\n_tao_roles=()\n");
    // The steps of controller and policy share the first node, and all that it has.
    let policy_hosts = "\"$(_tao_slice 0 \"$_tao_policy_nodes\" ,)\"";
    let mut role = |name: &str, count: u32, hosts: &str, shared: bool| {
        let overlap = if shared { " --overlap" } else { "" };
        let _ = write!(
            out,
            "COSMOS_NODE_ROLE={name} \"$_tao_srun\"{overlap} --nodes={count} --ntasks={count} --nodelist={hosts} \
             --output=\"$_tao_logs\"/{name}/%t.out --error=\"$_tao_logs\"/{name}/%t.err --open-mode=append"
        );
        container.options(&[RENDEZVOUS_ENV, ROLE_ENV], out)?;
        out.push_str(" --no-container-mount-home");
        // More than one node in the job: each task has to learn its number.
        let failed = join(state_dir, &format!("failed_{name}"))?;
        program(&container.argv, 2, task, Some(&failed), out)?;
        let _ = write!(out, " </dev/null &\n_tao_programs+=(\"$!\") _tao_roles+=({name})\n{LATE_WARNING}");
        Ok::<(), ScriptError>(())
    };
    role("controller", 1, "\"$CONTROLLER_NODE\"", true)?;
    role("policy", *policy, policy_hosts, true)?;
    if *rollout > 0 {
        role(
            "rollout",
            *rollout,
            "\"$(_tao_slice \"$_tao_policy_nodes\" \"$_tao_rollout_nodes\" ,)\"",
            false,
        )?;
    }
    Ok(())
}
