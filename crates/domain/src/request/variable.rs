//! The rules for environment variables of a job.

use slurm::EnvKey;

/// TAO's own limit for a name or value is 500 characters. Ours leaves room for long tokens and lists.
pub(crate) const MAX_ENV_VALUE: usize = 32 * 1024;

/// Why a job cannot set this variable.
pub(crate) fn reserved_variable(key: &EnvKey) -> Option<&'static str> {
    // Slurm and the batch script rely on these.
    if key.as_str().starts_with("SLURM_") || key.as_str() == "BASH_ENV" {
        return Some("is reserved: a job cannot set SLURM_* and BASH_ENV; remove it, or use another name");
    }
    remote::script::is_of_bash(key).then_some("is reserved: bash sets it itself; use another name")
}
