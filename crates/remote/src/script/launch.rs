//! The programs of a batch script.

use std::{collections::BTreeMap, fmt::Write};

use slurm::EnvKey;

use super::{BatchScript, ScriptError, assign, is_of_hooks, quoted};

/// Variables of the batch script for several nodes.
const RENDEZVOUS_ENV: [&str; 4] = ["WORLD_SIZE", "NUM_GPU_PER_NODE", "MASTER_ADDR", "MASTER_PORT"];
/// Variables of the batch script and Slurm for roles.
const ROLE_ENV: [&str; 7] = [
    "COSMOS_NODE_ROLE",
    "COSMOS_CONTROLLER_HOST",
    "CONTROLLER_NODE",
    "POLICY_NODES",
    "ROLLOUT_NODES",
    "SLURM_NODEID",
    "SLURMD_NODENAME",
];

/// The hosts of the roles, and the wait for the roles.
pub(super) const ROLES: &str = include_str!("roles.sh");

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
    /// Variables that [Enroot's hooks read](super::is_of_hooks), none of them secret: they are in the script's text. They
    /// override those of the image.
    pub hook_env: BTreeMap<EnvKey, String>,
    /// The command and its arguments.
    pub argv: Vec<String>,
}

impl Launch {
    /// Starts the programs of a script.
    pub(super) fn render(&self, script: &BatchScript, out: &mut String) -> Result<(), ScriptError> {
        out.push('\n');
        assign(out, "_tao_task", &quoted("the task", &script.entry()?)?);
        let nodes = script.directives.nodes;
        let own_env = self.own_env(nodes);
        if let Self::Container(container) | Self::Cosmos { container, .. } = self {
            container.export(out)?;
        }
        let argv = match self {
            Self::Cosmos { container, roles: Some(roles) } => {
                return start_roles(roles, container, &own_env, out);
            }
            Self::Cosmos { container, roles: None } => {
                out.push_str("srun");
                container.options(&own_env, out)?;
                out.push_str(" --no-container-mount-home");
                &container.argv
            }
            Self::Container(container) => {
                out.push_str("srun");
                container.options(&own_env, out)?;
                &container.argv
            }
            Self::Host { argv } => {
                out.push_str("srun");
                argv
            }
        };
        program("''", nodes, argv, out)
    }

    /// Variables that the script sets for the tasks. They override those of the job and its image.
    pub(super) fn own_env(&self, nodes: u32) -> Vec<&'static str> {
        let rendezvous = RENDEZVOUS_ENV.iter().filter(|_| nodes > 1);
        let has_roles = matches!(self, Self::Cosmos { roles: Some(_), .. });
        rendezvous.chain(ROLE_ENV.iter().filter(|_| has_roles)).copied().collect()
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
    /// The variables for Enroot's hooks, in the environment that srun passes on.
    fn export(&self, out: &mut String) -> Result<(), ScriptError> {
        for (key, value) in &self.hook_env {
            if !is_of_hooks(key, value) {
                let forbidden = "control characters, nor be for another program";
                return Err(ScriptError::Forbidden { what: "a variable of Enroot's hooks", forbidden });
            }
            let _ = writeln!(out, "export {key}={}", quoted("a variable of Enroot's hooks", value)?);
        }
        Ok(())
    }

    /// The options of Pyxis. `env`: variables of the service that override those of the image. None has a newline or a meaning for
    /// Enroot, which it would split or follow.
    fn options(&self, env: &[&str], out: &mut String) -> Result<(), ScriptError> {
        let Self { image, mounts, hook_env, .. } = self;
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
        let listed: Vec<&str> = env.iter().copied().chain(hook_env.keys().map(EnvKey::as_str)).collect();
        if !listed.is_empty() {
            let _ = write!(out, " --container-env={}", listed.join(","));
        }
        Ok(())
    }
}

/// The last options of srun, then the entry shell with the program. It starts in the background, so that the script handles
/// signals. `role`: a word of shell.
fn program(role: &str, tasks: u32, argv: &[String], out: &mut String) -> Result<(), ScriptError> {
    if argv.is_empty() {
        return Err(ScriptError::EmptyCommand);
    }
    // Without --kill-on-bad-exit the other nodes would wait for a failed one until the time limit.
    let _ = write!(out, " --export=ALL --kill-on-bad-exit=1 -- bash -c \"$_tao_task\" task {role}");
    for word in argv {
        let _ = write!(out, " {}", quoted("the command", word)?);
    }
    let _ =
        write!(out, " </dev/null &\n_tao_programs+=(\"$!\") _tao_roles+=({role}) _tao_tasks+=({tasks})\n");
    Ok(())
}

/// Starts the roles of Cosmos-RL: each is a step of its own, with its own logs.
fn start_roles(
    nodes: &CosmosNodes,
    container: &Container,
    own_env: &[&str],
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
    out.push('\n');
    // The steps of controller and policy share the first node, and all that it has.
    let policy_hosts = "\"$(_tao_slice 0 \"$_tao_policy_nodes\" ,)\"";
    let mut role = |name: &str, count: u32, hosts: &str, shared: bool| {
        let overlap = if shared { " --overlap" } else { "" };
        let _ = write!(
            out,
            "COSMOS_NODE_ROLE={name} srun{overlap} --nodes={count} --ntasks={count} --nodelist={hosts} \
             --output=\"$_tao_logs\"/{name}/%t.out --error=\"$_tao_logs\"/{name}/%t.err --open-mode=append"
        );
        container.options(own_env, out)?;
        out.push_str(" --no-container-mount-home");
        program(name, count, &container.argv, out)
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
