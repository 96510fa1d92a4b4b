//! The batch script of an attempt, from typed parts to text.
//!
//! What no newtype guards goes into the script only as a word quoted by `shlex`; the fixed parts are files of their
//! own beside this one. What must hold of a script: it exits with the code of what it ran, it never traces (`-x`
//! would print secrets), and a second copy of an attempt touches nothing.

mod conversion;
mod directives;
mod env_file;
mod launch;

use std::fmt::Write;

use crate::{EnvKey, RemotePath, WallTime};

pub use conversion::ConversionScript;
pub use directives::Directives;
pub use env_file::env_file;
pub use launch::Launch;

/// The exit code of a copy that found the attempt claimed by another job.
pub const EXIT_CLAIMED: u8 = 120;
/// The exit code when the environment file is not there.
pub const EXIT_NO_ENV_FILE: u8 = 121;
/// The exit code when the first host of several cannot be found out.
pub const EXIT_NO_RENDEZVOUS: u8 = 122;

const CLAIM: &str = include_str!("script/claim.sh");
const RENDEZVOUS: &str = include_str!("script/rendezvous.sh");

/// Everything a batch script is made from.
#[derive(Debug, Clone)]
pub struct BatchScript {
    /// What is asked of Slurm.
    pub directives: Directives,
    /// Where claim, marks and logs of this attempt are. Must exist when the job starts: Slurm before 23 does not make
    /// missing directories of `--output`, and then the job fails with its logs nowhere.
    pub state_dir: RemotePath,
    /// Below it the logs get the place where people look for them: `<job name>-<Slurm job id>/main.out` and `main.err`.
    pub log_root: RemotePath,
    /// A file of `KEY=value` lines in shell quoting, read before the job starts. For secrets: mode 0600.
    pub env_file: Option<RemotePath>,
    /// Environment that is no secret: it stands in the script.
    pub exports: Vec<(EnvKey, String)>,
    /// When to end the job from inside, before Slurm does it; the script then exits with 124.
    pub soft_timeout: Option<WallTime>,
    /// What to run.
    pub launch: Launch,
}

/// Parts that do not make a script.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    /// There is nothing to run.
    #[error("the command is empty")]
    EmptyCommand,
    /// A count that must be at least one is zero.
    #[error("{what} must be at least 1")]
    Zero {
        /// Which count.
        what: &'static str,
    },
    /// A text holds characters that cannot be passed on.
    #[error("{what} must not hold {forbidden}")]
    Forbidden {
        /// Which text.
        what: &'static str,
        /// Which characters, in words.
        forbidden: &'static str,
    },
}

impl BatchScript {
    /// The text of the script.
    pub fn render(&self) -> Result<String, ScriptError> {
        let mut out = String::from("#!/bin/bash\n");
        self.directives.render(&self.state_dir, &mut out)?;
        out.push_str("# Written by tao-slurm for one attempt of one job. It is not read again after it was submitted.\n\n");
        let job_name = &self.directives.job_name;
        assign(&mut out, "_tao_state", &quoted("the state directory", self.state_dir.as_str())?);
        let log_root = quoted("the log directory", self.log_root.as_str())?;
        assign(&mut out, "_tao_logs", &format!("{log_root}/{job_name}-\"$SLURM_JOB_ID\""));
        out.push_str(CLAIM);
        self.environment(&mut out)?;
        if self.directives.nodes > 1 {
            let Directives { nodes, gpus_per_node, .. } = &self.directives;
            let _ = writeln!(
                out,
                "\nexport WORLD_SIZE={nodes} NUM_GPU_PER_NODE={gpus_per_node} MASTER_PORT=29500"
            );
            out.push_str(RENDEZVOUS);
        }
        out.push('\n');
        if let Some(limit) = self.soft_timeout {
            let _ = write!(out, "timeout --kill-after=60 {}m ", limit.minutes());
        }
        self.launch.render(self.directives.nodes, &mut out)?;
        out.push_str(" </dev/null\ncode=$?\nexit \"$code\"\n");
        Ok(out)
    }

    fn environment(&self, out: &mut String) -> Result<(), ScriptError> {
        if !self.exports.is_empty() {
            out.push('\n');
        }
        for (key, value) in &self.exports {
            let _ = writeln!(out, "export {key}={}", quoted("the value of an environment variable", value)?);
        }
        if let Some(env_file) = &self.env_file {
            let path = quoted("the environment file", env_file.as_str())?;
            let _ = write!(
                out,
                "\nif [ ! -r {path} ]; then\n  \
                 echo \"tao-slurm: the environment file of this job is not there:\" {path} >&2\n  \
                 exit {EXIT_NO_ENV_FILE}\nfi\nset -a\n. {path}\nset +a\n"
            );
        }
        Ok(())
    }
}

fn assign(out: &mut String, name: &str, value: &str) {
    let _ = writeln!(out, "readonly {name}={value}");
}

/// One word of shell, whatever is in the text.
fn quoted(what: &'static str, text: &str) -> Result<String, ScriptError> {
    match shlex::try_quote(text) {
        Ok(word) => Ok(word.into_owned()),
        Err(_) => Err(ScriptError::Forbidden { what, forbidden: "a NUL character" }),
    }
}

#[cfg(test)]
#[path = "script_tests.rs"]
mod tests;
