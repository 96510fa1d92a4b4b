//! The environment of a job's program.
//!
//! It reaches the program by a file that only the entry shell of each task reads: values arrive exactly, and srun, Pyxis and
//! Enroot, which have meanings of their own for `HOME`, `TMPDIR` and others, do not see them. Enroot's hooks have to see the few
//! that choose a container's devices.

use std::fmt::Write;

use slurm::EnvKey;

use super::{ScriptError, quoted};

/// Variables that bash computes itself or does not let anyone set, so no job can pass them on.
const OF_BASH: [&str; 33] = [
    "_",
    "BASHOPTS",
    "BASHPID",
    "BASH_ALIASES",
    "BASH_ARGC",
    "BASH_ARGV",
    "BASH_ARGV0",
    "BASH_CMDS",
    "BASH_COMMAND",
    "BASH_LINENO",
    "BASH_MONOSECONDS",
    "BASH_REMATCH",
    "BASH_SOURCE",
    "BASH_SUBSHELL",
    "BASH_VERSINFO",
    "COMP_WORDBREAKS",
    "DIRSTACK",
    "EPOCHREALTIME",
    "EPOCHSECONDS",
    "EUID",
    "FUNCNAME",
    "GROUPS",
    "HISTCMD",
    "LINENO",
    "OPTIND",
    "PIPESTATUS",
    "PPID",
    "RANDOM",
    "SECONDS",
    "SHELLOPTS",
    "SHLVL",
    "SRANDOM",
    "UID",
];

/// Whether a variable is one of bash's own, which a job cannot set.
pub fn is_of_bash(key: &EnvKey) -> bool {
    OF_BASH.contains(&key.as_str())
}

/// The variables of Enroot's hooks `98-nvidia.sh` and `99-mellanox.sh`, which mount devices and drivers into a container.
const OF_HOOKS: [&str; 2] = ["NVIDIA_", "MELLANOX_"];

/// Whether Enroot's hooks read a variable when they set a container up. Enroot keeps a line for each variable, so a value with a
/// control character is for the program alone.
pub fn is_of_hooks(key: &EnvKey, value: &str) -> bool {
    OF_HOOKS.iter().any(|prefix| key.as_str().starts_with(prefix)) && !value.contains(char::is_control)
}

/// The text of an [environment file](super::BatchScript::env_file).
pub fn env_text<'a>(vars: impl IntoIterator<Item = (&'a EnvKey, &'a str)>) -> Result<String, ScriptError> {
    let mut out = String::new();
    for (key, value) in vars {
        let _ = writeln!(out, "export {key}={}", quoted("the value of an environment variable", value)?);
    }
    Ok(out)
}
