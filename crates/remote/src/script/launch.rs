//! The programs of a batch script.

use std::fmt::Write;

use super::{ScriptError, TaskSetup, quoted};
use slurm::{EnvKey, RemotePath};

/// Variables of the batch script that override those of the image.
const RENDEZVOUS_ENV: &str = "WORLD_SIZE,NUM_GPU_PER_NODE,MASTER_ADDR,MASTER_PORT";
/// Starts the program in the background, so that the script handles signals.
const STARTED: &str = " </dev/null &\n_tao_programs=(\"$!\")\n";
/// A warning may have arrived before the program was started.
const LATE_WARNING: &str = "if ((_tao_warned)); then _tao_pass_warning_on; fi\n";

/// The hosts of the roles, and the wait for the roles.
pub(super) const ROLES: &str = include_str!("roles.sh");
/// Variables of the batch script and Slurm that override those of a role's image.
const ROLE_ENV: &str = "COSMOS_NODE_ROLE,COSMOS_CONTROLLER_HOST,CONTROLLER_NODE,POLICY_NODES,ROLLOUT_NODES,\
                        SLURM_NODEID,SLURMD_NODENAME";

/// The program, one task on each node.
#[derive(Debug, Clone)]
pub enum Launch {
    /// In a container.
    Container(Container),
    /// Cosmos-RL, in a container without the home directory: one step on one node, or several roles.
    Cosmos {
        /// The container of every role, which reads its role from `COSMOS_NODE_ROLE`.
        container: Container,
        /// The nodes of the roles, if there is more than one node.
        roles: Option<CosmosNodes>,
    },
    /// On the node itself.
    Host {
        /// The command and its arguments.
        argv: Vec<String>,
    },
}

/// The nodes of the roles: the first belong to the policy, the rest to the rollout. The controller shares the first node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CosmosNodes {
    /// Nodes of the policy, at least 1.
    pub policy: u32,
    /// Nodes of the rollout; 0 for a training without one.
    pub rollout: u32,
    /// Where the controller listens, on the first node.
    pub controller_port: u16,
}

/// A command in a container, by the Pyxis plugin of srun.
#[derive(Debug, Clone)]
pub struct Container {
    /// As Pyxis spells it: `registry#image:tag` or the path of a SquashFS file.
    pub image: String,
    /// As Pyxis spells them: `/from:/to:ro`, none with a comma.
    pub mounts: Vec<String>,
    /// Variables that override those of the image.
    pub forward_env: Vec<EnvKey>,
    /// The command and its arguments.
    pub argv: Vec<String>,
}

impl Launch {
    /// Starts the programs.
    pub(super) fn render(
        &self,
        nodes: u32,
        state_dir: &RemotePath,
        task: &TaskSetup,
        out: &mut String,
    ) -> Result<(), ScriptError> {
        let failed = if nodes > 1 { Some(join(state_dir, "failed")?) } else { None };
        let failed = failed.as_ref();
        let rendezvous: &[&str] = if nodes > 1 { &[RENDEZVOUS_ENV] } else { &[] };
        match self {
            Self::Cosmos { container, roles: Some(roles) } => {
                return start_roles(roles, container, state_dir, task, out);
            }
            Self::Cosmos { container, roles: None } => {
                out.push_str("\n\"$_tao_srun\"");
                container.options(rendezvous, out)?;
                out.push_str(" --no-container-mount-home");
                program(&container.argv, nodes, task, failed, out)?;
            }
            Self::Container(container) => {
                out.push_str("\n\"$_tao_srun\"");
                container.options(rendezvous, out)?;
                program(&container.argv, nodes, task, failed, out)?;
            }
            Self::Host { argv } => {
                out.push_str("\n\"$_tao_srun\"");
                program(argv, nodes, task, failed, out)?;
            }
        }
        out.push_str(STARTED);
        out.push_str(LATE_WARNING);
        Ok(())
    }

    /// Waits for the programs.
    pub(super) fn waiting(&self, nodes: u32) -> &'static str {
        match (self, nodes) {
            (Self::Cosmos { roles: Some(_), .. }, _) => "_tao_wait_roles\n",
            (_, 0 | 1) => "_tao_wait \"${_tao_programs[0]}\"\n",
            _ => "_tao_wait \"${_tao_programs[0]}\"\n_tao_first_code \"$_tao_state/failed\"\n",
        }
    }
}

impl Container {
    /// The options of Pyxis. `also_env`: lists of more variables that override those of the image.
    fn options(&self, also_env: &[&str], out: &mut String) -> Result<(), ScriptError> {
        let Self { image, mounts, forward_env, .. } = self;
        if image.is_empty() || image.contains(char::is_control) {
            return Err(ScriptError::Forbidden {
                what: "the image",
                forbidden: "control characters, nor be empty",
            });
        }
        if mounts.iter().any(|mount| mount.is_empty() || mount.contains(|c: char| c.is_control() || c == ','))
        {
            let forbidden = "commas or control characters, nor be empty";
            return Err(ScriptError::Forbidden { what: "a mount", forbidden });
        }
        let _ = write!(out, " --container-image={}", quoted("the image", image)?);
        if !mounts.is_empty() {
            let _ = write!(out, " --container-mounts={}", quoted("a mount", &mounts.join(","))?);
        }
        let env: Vec<&str> = forward_env.iter().map(EnvKey::as_str).chain(also_env.iter().copied()).collect();
        if !env.is_empty() {
            let _ = write!(out, " --container-env={}", env.join(","));
        }
        Ok(())
    }
}

/// The last options of srun, then the program with its arguments.
fn program(
    argv: &[String],
    nodes: u32,
    task: &TaskSetup,
    failed: Option<&RemotePath>,
    out: &mut String,
) -> Result<(), ScriptError> {
    if argv.is_empty() {
        return Err(ScriptError::EmptyCommand);
    }
    // Without --kill-on-bad-exit the other nodes would wait for a failed one until the time limit.
    out.push_str(" --export=ALL --kill-on-bad-exit=1 --");
    task.render(nodes, failed, out)?;
    for word in argv {
        let _ = write!(out, " {}", quoted("the command", word)?);
    }
    Ok(())
}

/// A file of the state directory.
fn join(state_dir: &RemotePath, name: &str) -> Result<RemotePath, ScriptError> {
    let forbidden = "so many characters";
    state_dir.join(name).map_err(|_| ScriptError::Forbidden { what: "the state directory", forbidden })
}

/// Starts the roles of Cosmos-RL: each is a step of its own, with its own logs.
fn start_roles(
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
    out.push_str(ROLES);
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
        // The job has several nodes, so each task needs its number.
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
