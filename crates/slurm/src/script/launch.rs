//! What a batch script runs.

use std::fmt::Write;

use crate::{
    EnvKey,
    script::{ScriptError, quoted},
};

/// Run by each task: the rank of a node is known only on the node. `$SLURM_NODEID` counts from 0.
const NODE_RANK: &str = r#"export NODE_RANK=$SLURM_NODEID; exec "$@""#;
/// What every node must see as the batch script set it, even if the image sets it too.
const RENDEZVOUS_ENV: &str = "WORLD_SIZE,NUM_GPU_PER_NODE,MASTER_ADDR,MASTER_PORT";

/// What to run, one task on each node.
#[derive(Debug, Clone)]
pub enum Launch {
    /// In a container, by the Pyxis plugin of srun.
    Container {
        /// As Pyxis spells it: `registry#image:tag` or the path of a SquashFS file.
        image: String,
        /// As Pyxis spells them: `/from:/to:ro`, none with a comma.
        mounts: Vec<String>,
        /// Variables that shall win over those the image sets.
        forward_env: Vec<EnvKey>,
        /// The command and its arguments.
        argv: Vec<String>,
    },
    /// On the node itself.
    Host {
        /// The command and its arguments.
        argv: Vec<String>,
    },
}

impl Launch {
    /// The srun command, without a newline at its end.
    pub(super) fn render(&self, nodes: u32, out: &mut String) -> Result<(), ScriptError> {
        out.push_str("srun");
        let argv = match self {
            Self::Host { argv } => argv,
            Self::Container { image, mounts, forward_env, argv } => {
                container(image, mounts, forward_env, nodes, out)?;
                argv
            }
        };
        if argv.is_empty() {
            return Err(ScriptError::EmptyCommand);
        }
        // Without --kill-on-bad-exit the other nodes would wait for the dead one until the time limit.
        out.push_str(" --export=ALL --kill-on-bad-exit=1 --");
        if nodes > 1 {
            let _ = write!(out, " bash -c {} node-rank", quoted("the wrapper", NODE_RANK)?);
        }
        for word in argv {
            let _ = write!(out, " {}", quoted("the command", word)?);
        }
        Ok(())
    }
}

fn container(
    image: &str,
    mounts: &[String],
    forward_env: &[EnvKey],
    nodes: u32,
    out: &mut String,
) -> Result<(), ScriptError> {
    if image.is_empty() || image.contains(char::is_control) {
        return Err(ScriptError::Forbidden {
            what: "the image",
            forbidden: "control characters, nor be empty",
        });
    }
    if mounts.iter().any(|mount| mount.is_empty() || mount.contains(|c: char| c.is_control() || c == ',')) {
        let forbidden = "commas or control characters, nor be empty";
        return Err(ScriptError::Forbidden { what: "a mount", forbidden });
    }
    let _ = write!(out, " --container-image={}", quoted("the image", image)?);
    if !mounts.is_empty() {
        let _ = write!(out, " --container-mounts={}", quoted("a mount", &mounts.join(","))?);
    }
    let mut env: Vec<&str> = forward_env.iter().map(EnvKey::as_str).collect();
    if nodes > 1 {
        env.push(RENDEZVOUS_ENV);
    }
    if !env.is_empty() {
        let _ = write!(out, " --container-env={}", env.join(","));
    }
    Ok(())
}
