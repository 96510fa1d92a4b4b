//! The batch script of an attempt, from typed parts to text.
//!
//! Free text goes into the script only as a word quoted by `shlex`; the fixed parts are `.sh` files beside this one. A script
//! exits with the code of its program, never traces (`-x` would print secrets), and stops at once if another Slurm job holds
//! the attempt.

mod conversion;
mod directives;
mod environment;
mod launch;
mod task;

use std::fmt::Write;

use slurm::{RemotePath, RunTime};

pub use conversion::ConversionScript;
pub use directives::Directives;
pub use environment::{is_of_bash, is_of_hooks};
pub use launch::{Container, CosmosNodes, Launch};
pub use task::{OnWarning, TaskSetup, begin_mark};

/// The exit code of a run whose node has failed: it writes no exit record.
pub const EXIT_NODE_FAILED: u8 = 118;
/// The exit code of a run that could not write its markers, and so did not start its program.
pub const EXIT_NO_MARKS: u8 = 119;
/// The exit code of a job whose attempt is claimed by another job, or whose end is already recorded.
pub const EXIT_CLAIMED: u8 = 120;
/// The exit code if the environment file is missing.
pub const EXIT_NO_ENV_FILE: u8 = 121;
/// The exit code if the first host of several cannot be determined.
pub const EXIT_NO_RENDEZVOUS: u8 = 122;
/// The exit code of a run that Slurm started twice, if its result is unknown or it was ended from outside.
pub const EXIT_BEGUN: u8 = 123;
/// The exit code of a job that reached its own time limit, as of `timeout(1)`.
pub const EXIT_LIMIT: u8 = 124;

const CLAIM: &str = include_str!("script/claim.sh");
const MARKS: &str = include_str!("script/marks.sh");
/// Programs on the node find this `scancel` before the real one: it writes the marker `self_canceled`.
const OWN_SCANCEL: &str = include_str!("script/own_scancel.sh");
const RENDEZVOUS: &str = include_str!("script/rendezvous.sh");
const LIMIT: &str = include_str!("script/limit.sh");
const REQUEUE: &str = include_str!("script/requeue.sh");
const WAIT: &str = include_str!("script/wait.sh");

/// The parts of a batch script.
#[derive(Debug, Clone)]
pub struct BatchScript {
    /// The `#SBATCH` lines.
    pub directives: Directives,
    /// Where claim, markers and logs of this attempt are. Must exist when the job starts: Slurm before 23 does not create
    /// missing directories of `--output`, and then the job fails without logs.
    pub state_dir: RemotePath,
    /// The directory with the logs for users: `<job name>-<Slurm job id>/main.out` and `main.err`.
    pub log_root: RemotePath,
    /// Where the job's status files are. Their sizes at the start of a run are kept in `status_from` in the state directory, a
    /// line `<inode> <size> <path>` for each.
    pub results_dir: RemotePath,
    /// The file with the job's own variables, which each task reads before its program starts; its text is
    /// [`env_text`](Self::env_text). It has secrets: mode 0600.
    pub env_file: RemotePath,
    /// The job's own time limit, before Slurm's. The script then exits with [`EXIT_LIMIT`], or requeues the job if its directives
    /// allow it.
    pub soft_timeout: Option<RunTime>,
    /// How often the job may requeue itself at its own time limit.
    pub max_requeues: u32,
    /// The rendezvous port, on the first node.
    pub master_port: u16,
    /// The setup of each task.
    pub task: TaskSetup,
    /// The program.
    pub launch: Launch,
}

/// Parts that do not form a script.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    /// There is no program.
    #[error("the command is empty")]
    EmptyCommand,
    /// A count that must be at least one is zero.
    #[error("{what} must be at least 1")]
    Zero {
        /// The count.
        what: &'static str,
    },
    /// A text holds forbidden characters.
    #[error("{what} must not hold {forbidden}")]
    Forbidden {
        /// The text.
        what: &'static str,
        /// The characters, in words.
        forbidden: &'static str,
    },
}

impl BatchScript {
    /// The text of the script.
    pub fn render(&self) -> Result<String, ScriptError> {
        let mut out = String::from("#!/bin/bash\n");
        self.directives.render(&self.state_dir, &mut out)?;
        out.push_str("# Written by tao-slurm for one attempt of one job. Changes after the submission have no effect.\n\n");
        let job_name = &self.directives.job_name;
        // Its type allows no character with a meaning for a shell.
        assign(&mut out, "_tao_name", job_name.as_str());
        assign(&mut out, "_tao_state", &quoted("the state directory", self.state_dir.as_str())?);
        let log_root = quoted("the log directory", self.log_root.as_str())?;
        assign(&mut out, "_tao_logs", &format!("{log_root}/{job_name}-\"$SLURM_JOB_ID\""));
        assign(&mut out, "_tao_results", &quoted("the results directory", self.results_dir.as_str())?);
        out.push_str(CLAIM);
        out.push_str(MARKS);
        if !self.directives.options.drops("cpus-per-task") {
            // srun of Slurm 22.05 to 23.02 does not take the option from the job (srun(1), `--cpus-per-task`).
            let _ = writeln!(out, "export SRUN_CPUS_PER_TASK={}", self.directives.cpus_per_task);
        }
        // After the markers, which are required: this one is optional, and the room may suffice only for them.
        if matches!(self.launch, Launch::Host { .. }) {
            out.push_str(OWN_SCANCEL);
        }
        if self.directives.nodes > 1 {
            let Directives { nodes, gpus_per_node, .. } = &self.directives;
            let _ = writeln!(
                out,
                "\nexport WORLD_SIZE={nodes} NUM_GPU_PER_NODE={gpus_per_node} MASTER_PORT={}",
                self.master_port
            );
            out.push_str(RENDEZVOUS);
        }
        out.push_str(WAIT);
        if let Some(limit) = self.soft_timeout {
            out.push('\n');
            assign(&mut out, "_tao_limit", &limit.seconds().to_string());
            out.push_str(LIMIT);
        }
        self.launch.render(self, &mut out)?;
        self.ending(&mut out);
        Ok(out)
    }

    /// The part after the start of the programs.
    fn ending(&self, out: &mut String) {
        if let Some(limit) = self.soft_timeout {
            let warning = warning_before(u64::from(limit.seconds()), self.directives.warning_seconds);
            let _ = write!(out, "_tao_run_clock {} {warning} &\n_tao_clock=$!\n", limit.seconds());
        }
        out.push_str("_tao_warnable=1\nif ((_tao_warned)); then _tao_pass_warning_on; fi\n");
        out.push_str(self.launch.waiting(self.directives.nodes));
        out.push_str("_tao_programs=()\nif ((_tao_ended)); then exit \"$_tao_ended\"; fi\n");
        if self.soft_timeout.is_some() {
            if self.directives.requeue {
                out.push_str(REQUEUE);
                let _ = writeln!(out, "if ((_tao_limited)); then _tao_requeue {}; fi", self.max_requeues);
            }
            let _ = writeln!(out, "if ((_tao_limited)); then exit {EXIT_LIMIT}; fi");
        }
        out.push_str("if ((_tao_code == 0)); then _tao_check_success; fi\n");
        out.push_str("exit \"$_tao_code\"\n");
    }
}

/// How long before a limit to warn, in seconds: at most half of the limit.
fn warning_before(limit: u64, asked: u32) -> u64 {
    // Slurm stores the time of `--signal` in 16 bits.
    u64::from(asked.min(65_535)).min(limit / 2)
}

fn assign(out: &mut String, name: &str, value: &str) {
    let _ = writeln!(out, "readonly {name}={value}");
}

/// The text as one word of shell.
fn quoted(what: &'static str, text: &str) -> Result<String, ScriptError> {
    match shlex::try_quote(text) {
        Ok(word) => Ok(word.into_owned()),
        Err(_) => Err(ScriptError::Forbidden { what, forbidden: "a NUL character" }),
    }
}

#[cfg(test)]
#[path = "script_tests.rs"]
mod tests;
