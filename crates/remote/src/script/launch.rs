//! What a batch script runs.

use std::fmt::Write;

use super::{CosmosNodes, ScriptError, TaskSetup, cosmos, quoted};
use slurm::{EnvKey, RemotePath};

/// What every node must see as the batch script set it, even if the image sets it too.
pub(super) const RENDEZVOUS_ENV: &str = "WORLD_SIZE,NUM_GPU_PER_NODE,MASTER_ADDR,MASTER_PORT";
/// The program in the background, so that the script hears signals; its id and the wait for it follow.
const STARTED: &str = " </dev/null &\n_tao_programs=(\"$!\")\n";
/// A signal may have come before the script knew its program.
pub(super) const LATE_WARNING: &str = "if ((_tao_warned)); then _tao_pass_warning_on; fi\n";

/// What to run, one task on each node.
#[derive(Debug, Clone)]
pub enum Launch {
    /// In a container.
    Container(Container),
    /// Cosmos-RL, in a container that does not see the home directory. One step on one node, or several roles.
    Cosmos {
        /// What every role runs; it knows its role by `COSMOS_NODE_ROLE`.
        container: Container,
        /// How the nodes are dealt to the roles, if there is more than one node.
        roles: Option<CosmosNodes>,
    },
    /// On the node itself.
    Host {
        /// The command and its arguments.
        argv: Vec<String>,
    },
}

/// A command in a container, by the Pyxis plugin of srun.
#[derive(Debug, Clone)]
pub struct Container {
    /// As Pyxis spells it: `registry#image:tag` or the path of a SquashFS file.
    pub image: String,
    /// As Pyxis spells them: `/from:/to:ro`, none with a comma.
    pub mounts: Vec<String>,
    /// Variables that shall win over those the image sets.
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
                return cosmos::render(roles, container, state_dir, task, out);
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
    /// The options of Pyxis. `also_env`: lists of further variables that shall win over those of the image.
    pub(super) fn options(&self, also_env: &[&str], out: &mut String) -> Result<(), ScriptError> {
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
pub(super) fn program(
    argv: &[String],
    nodes: u32,
    task: &TaskSetup,
    failed: Option<&RemotePath>,
    out: &mut String,
) -> Result<(), ScriptError> {
    if argv.is_empty() {
        return Err(ScriptError::EmptyCommand);
    }
    // Without --kill-on-bad-exit the other nodes would wait for the dead one until the time limit.
    out.push_str(" --export=ALL --kill-on-bad-exit=1 --");
    task.render(nodes, failed, out)?;
    for word in argv {
        let _ = write!(out, " {}", quoted("the command", word)?);
    }
    Ok(())
}

/// A file of the state directory.
pub(super) fn join(state_dir: &RemotePath, name: &str) -> Result<RemotePath, ScriptError> {
    let forbidden = "so many characters";
    state_dir.join(name).map_err(|_| ScriptError::Forbidden { what: "the state directory", forbidden })
}
