//! The batch script of an attempt, from typed parts to text.
//!
//! Free text goes into the script only as a word quoted by `shlex`; the fixed parts are `.sh` files beside this one. A script
//! exits with the code of its program, never traces (`-x` would print secrets), and stops at once if another Slurm job holds
//! the attempt.

mod chain;
mod component;
mod conversion;
mod directives;
mod env_file;
pub mod launcher;
mod parts;
mod place;
mod service;

use std::{collections::BTreeSet, fmt::Write};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use slurm::{EnvKey, RemotePath, RunTime};

use component::Table;
use launcher::Start;

pub use chain::Chain;
pub use component::{BEGIN_MARK, Component, Log, OnWarning};
pub use conversion::conversion;
pub use directives::Directives;
pub use env_file::{env_text, is_of_bash, is_of_hooks};
pub use parts::{Kind, Nodes, Value};
pub use place::{Container, Place};
pub use service::{Probe, ServiceRules};

/// The exit code of a component whose port is taken on its node.
pub const EXIT_PORT: u8 = 111;
/// The exit code of a job that needs a variable of the node that is not set there.
pub const EXIT_NO_VARIABLE: u8 = 112;
/// The exit code of an attempt that was queued ahead and has nothing to do. It makes no claim and leaves no exit record.
pub const EXIT_NOT_NEEDED: u8 = 113;
/// The exit code of a job that ended with a service of it, although that returned 0.
pub const EXIT_SERVICE: u8 = 114;
/// The exit code of a job that ended because a component reached its own time limit.
pub const EXIT_COMPONENT_LIMIT: u8 = 115;
/// The exit code of a task whose setup failed.
pub const EXIT_SETUP: u8 = 116;
/// The exit code of a task whose working directory cannot be entered.
pub const EXIT_WORKDIR: u8 = 117;
/// The exit code of a run whose node has failed, or that could not start all steps and tasks: it writes no exit record.
pub const EXIT_NODE_FAILED: u8 = 118;
/// The exit code of a run that could not write its markers or logs, and so did not start its program.
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
/// The exit code of a job that ended because a service of it failed its probes.
pub const EXIT_PROBES: u8 = 125;
/// The exit code of a job that ended because a service of it was not ready in time.
pub const EXIT_NOT_READY: u8 = 126;

/// The supervisor is the same text for every job: it claims the attempt, runs the components of the table, and leaves the exit record.
const CLAIM: &str = include_str!("script/supervisor/claim.sh");
const MARKS: &str = include_str!("script/supervisor/marks.sh");
/// The rest of the supervisor.
const RUN: &str = include_str!("script/supervisor/run.sh");
const USAGE: &str = include_str!("script/supervisor/usage.sh");
/// Parts for scripts whose table calls them.
const PARTS: [(&str, &str); 2] = [
    ("\n  _tao_make_logs ", include_str!("script/supervisor/own_logs.sh")),
    ("\n  _tao_watch_it ", include_str!("script/supervisor/services.sh")),
];
/// What each task of a component runs first.
const TASK: &str = include_str!("script/supervisor/task.sh");
/// A program on a node finds the cluster's `scancel`; one in a container has none.
const SCANCEL: &str = include_str!("script/supervisor/scancel.sh");

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
    /// The file with the job's own variables, which each task reads before its program starts; its text is by [`env_text`]. It
    /// has secrets: mode 0600.
    pub env_file: RemotePath,
    /// The job's own time limit, before Slurm's. The script then exits with [`EXIT_LIMIT`], or requeues the job if its directives
    /// allow it.
    pub soft_timeout: Option<RunTime>,
    /// How often the job may requeue itself at its own time limit.
    pub max_requeues: u32,
    /// The first port for the components on the first node. Without one the job finds a block that no other job uses.
    pub port: Option<u16>,
    /// Every so many seconds the job measures what it uses, for the marker `usage` in the state directory. 0: never.
    pub usage_seconds: u32,
    /// How the tasks of an array are numbered, if the directives ask for one.
    pub array: Option<ArrayNumbers>,
    /// Queues the next attempt ahead, with this script.
    pub chain: Option<Chain>,
    /// Variables of the service for the tasks of all components.
    pub variables: Vec<(EnvKey, Value)>,
    /// The programs, in the order of their starts.
    pub components: Vec<Component>,
}

/// The numbers of the tasks of an attempt.
#[derive(Debug, Clone, Copy)]
pub struct ArrayNumbers {
    /// The task that index 0 stands for.
    pub base: u32,
    /// The number of all tasks of the job.
    pub count: u32,
}

/// A line of the list of an attempt's tasks, `tasks.list` in its state directory: the parameters as JSON, and those that are variables.
pub fn task_line<'a>(
    index: u32,
    json: &[u8],
    variables: impl Iterator<Item = (&'a EnvKey, String)>,
) -> String {
    let mut line = format!("{index} {}", BASE64_STANDARD.encode(json));
    for (key, value) in variables {
        let _ = write!(line, " {key}={}", BASE64_STANDARD.encode(value));
    }
    line.push('\n');
    line
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
        out.push_str(match self.chain {
            None => {
                "# Written by tao-slurm for one attempt of one job. Changes after the submission have no effect.\n\n"
            }
            Some(_) => "# Written by tao-slurm for the attempts of one job. Each attempt submits this file for the next one.\n\n",
        });
        self.parts(&mut out)?;
        let mut table = String::new();
        self.components(&mut table)?;
        out.push_str(&table);
        if self.array.is_some() {
            out.push_str(include_str!("script/supervisor/array.sh"));
        }
        if self.chain.is_some() {
            out.push_str(chain::DECIDE);
        }
        out.push_str(CLAIM);
        if self.array.is_some() {
            out.push_str(include_str!("script/supervisor/parameters.sh"));
        }
        out.push_str(MARKS);
        if self.chain.is_some() {
            out.push_str(chain::QUEUE_NEXT);
        }
        if self.components.iter().any(|component| matches!(component.place, Place::Host)) {
            out.push_str(SCANCEL);
        }
        out.push_str(TASK);
        for (call, part) in PARTS {
            if table.contains(call) {
                out.push_str(part);
            }
        }
        if self.usage_seconds > 0 {
            out.push_str(USAGE);
        }
        if self.directives.requeue {
            out.push_str(include_str!("script/supervisor/requeue.sh"));
        }
        out.push_str(RUN);
        Ok(out)
    }

    /// The table of components: a row for each srun.
    fn components(&self, out: &mut String) -> Result<(), ScriptError> {
        let mut rows = Vec::new();
        for (component, place) in self.components.iter().zip(0..) {
            let starts = component.starts(place, self)?;
            rows.extend(
                starts.into_iter().enumerate().map(|(number, start)| (component, number == 0, start)),
            );
        }
        let serves = |(component, _, start): &(&Component, bool, Start)| {
            matches!(component.kind, Kind::Service | Kind::Proxy) || start.aids
        };
        let table = Table { has_several: rows.len() > 1, has_services: rows.iter().any(serves) };
        let steps = rows.iter().filter(|row| !serves(row)).count();
        let _ = write!(out, "# The steps that have not ended.\n_tao_left={steps}\n_tao_components() {{\n");
        let on_node = self.components.iter().flat_map(|component| &component.node_env);
        for name in on_node.map(|(_, on_node)| on_node).collect::<BTreeSet<_>>() {
            let _ = write!(
                out,
                "  if [ -z \"${{{name}+set}}\" ]; then\n    echo 'tao-slurm: the variable {name} is not set on the node' >&2\n    \
                 exit {EXIT_NO_VARIABLE}\n  fi\n  # No image has this name.\n  export _tao_node_{name}=\"${name}\"\n"
            );
        }
        for (component, is_first, start) in &rows {
            component.row((start, *is_first), table, self, out)?;
        }
        out.push_str("}\n");
        Ok(())
    }

    /// What the supervisor has to know.
    fn parts(&self, out: &mut String) -> Result<(), ScriptError> {
        let Directives { job_name, nodes, requeue, options, .. } = &self.directives;
        let state = quoted("the state directory", self.state_dir.as_str())?;
        // Its type allows no character with a meaning for a shell.
        let (name, state) = match &self.chain {
            Some(chain) => (chain.declare(self, out)?, chain::state(&self.state_dir)?),
            None => (job_name.to_string(), state),
        };
        assign(out, "_tao_name", &name);
        if let Some(ArrayNumbers { base, count }) = self.array {
            let _ = writeln!(out, "export TAO_TASK=$((SLURM_ARRAY_TASK_ID + {base})) TAO_TASK_COUNT={count}");
            assign(out, "_tao_attempt", &state);
        }
        let (state, number, task) = match self.array {
            Some(_) => (
                format!("{state}/tasks/\"$TAO_TASK\""),
                "\"${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID\"",
                "/\"$TAO_TASK\"",
            ),
            None => (state, "\"$SLURM_JOB_ID\"", ""),
        };
        assign(out, "_tao_state", &state);
        let logs = quoted("the log directory", self.log_root.as_str())?;
        assign(out, "_tao_logs", &format!("{logs}/{name}-{number}"));
        let results = quoted("the results directory", self.results_dir.as_str())?;
        assign(out, "_tao_results", &(results + task));
        if self.array.is_some() {
            out.push_str(
                "export TAO_TASK_FILE=$_tao_state/parameters.json TAO_API_RESULTS_DIR=$_tao_results\n",
            );
        }
        assign(out, "_tao_job_nodes", &nodes.to_string());
        let limit = self.soft_timeout.map_or(0, RunTime::seconds);
        let warning = warning_before(u64::from(limit), self.directives.warning_seconds);
        // An attempt that was queued ahead may have less time left.
        let limits = if self.chain.is_some() { "" } else { "readonly " };
        let _ = writeln!(out, "{limits}_tao_limit={limit}\n{limits}_tao_warning={warning}");
        let _ = writeln!(out, "_tao_port={}\n_tao_every={}", self.port.unwrap_or(0), self.usage_seconds);
        let most = if *requeue { self.max_requeues.to_string() } else { "-1".to_owned() };
        assign(out, "_tao_max_requeues", &most);
        if !options.drops("cpus-per-task") {
            // srun of Slurm 22.05 to 23.02 does not take the option from the job (srun(1), `--cpus-per-task`).
            let _ = writeln!(out, "export SRUN_CPUS_PER_TASK={}", self.directives.cpus_per_task);
        }
        Ok(())
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
#[path = "../tests/fixtures/plain.rs"]
mod plain;
#[cfg(test)]
#[path = "script_tests.rs"]
mod tests;
