//! An attempt that queues the next one ahead, so that its job goes on while the service is away.

use std::fmt::Write;

use slurm::{JobName, RemotePath};

use super::{BatchScript, ScriptError, assign, quoted};

/// Decides whether an attempt that was queued ahead runs.
pub(super) const DECIDE: &str = include_str!("supervisor/chain.sh");
/// After the claim. Beside the program, because a controller may be slow.
pub(super) const QUEUE_NEXT: &str = "\
# Queues the next attempt.
if echo \"$_tao_used\" | _tao_keep \"$_tao_state/used\"; then
  _tao_queue_next &
  disown \"$!\"
fi
";

/// What an attempt has to know of its chain. Each attempt has the name of the first one, with its number, and a state directory beside
/// that of the others, which its number names.
#[derive(Debug, Clone)]
pub struct Chain {
    /// The number of this attempt.
    pub no: u32,
    /// The name of the first attempt in Slurm.
    pub first_name: JobName,
    /// Where this script is on the cluster.
    pub script_path: RemotePath,
    /// How long the job has run in the attempts before this one, in seconds.
    pub used_seconds: u32,
    /// How long it may run in all its attempts.
    pub most_seconds: u32,
    /// The states of Slurm and the exit codes after which it goes on.
    pub causes: Vec<String>,
}

impl Chain {
    /// Writes what the supervisor has to know of the chain, and returns the name of the attempt in words of shell.
    pub(super) fn declare(&self, script: &BatchScript, out: &mut String) -> Result<String, ScriptError> {
        let number = format!("\"${{1:-{}}}\"", self.no);
        assign(out, "_tao_no", &number);
        assign(out, "_tao_first_name", self.first_name.as_str());
        assign(out, "_tao_script", &quoted("the path of the script", self.script_path.as_str())?);
        assign(out, "_tao_wall", &script.directives.time.seconds().to_string());
        assign(out, "_tao_most", &self.most_seconds.to_string());
        assign(out, "_tao_causes", &quoted("a cause of a restart", &self.causes.join(" "))?);
        let _ = writeln!(out, "_tao_used={}", self.used_seconds);
        // Only an attempt that was queued ahead has an argument, and it is never the first one.
        let name = &self.first_name;
        Ok(if self.no == 1 { format!("{name}\"${{1:+-r$1}}\"") } else { format!("{name}-r\"$_tao_no\"") })
    }
}

/// The state directory of an attempt of a chain in words of shell. `own`: that of the first one that has this script.
pub(super) fn state(own: &RemotePath) -> Result<String, ScriptError> {
    let parent = own.parent().unwrap_or_else(|| own.clone());
    Ok(format!("{}/\"$_tao_no\"", quoted("the state directory", parent.as_str())?))
}
