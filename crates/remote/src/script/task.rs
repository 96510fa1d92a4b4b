//! The entry shell of each task: it sets the task up and runs the program. It runs on the task's node, inside the container if
//! there is one.

use std::fmt::Write;

use super::{BatchScript, EXIT_NO_ENV_FILE, Launch, ScriptError, quoted};
use slurm::{CudaVersion, RemotePath};

/// The setup of a task.
#[derive(Debug, Clone, Default)]
pub struct TaskSetup {
    /// Hides Slurm from `PyTorch Lightning`, which would read the number of Slurm's tasks as that of its processes; without Slurm
    /// it starts one process for each GPU.
    pub lightning_safe: bool,
    /// A CUDA version of the image to use instead of its default.
    pub cuda: Option<CudaVersion>,
    /// The effect of the warning before a time limit.
    pub on_warning: OnWarning,
}

/// The effect of `SIGUSR1` on a program without a handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnWarning {
    /// It kills the program, which is the system's default: a shell cannot trap a signal that was ignored at its start. The
    /// program handles it itself and then runs [`begin_mark`]; without that it gets no warning.
    #[default]
    Default,
    /// None; a program with a handler gets the warning.
    Ignore,
}

/// A shell command, for the task of a job without roles: from now on it can be warned.
pub fn begin_mark(state_dir: &RemotePath) -> Result<String, ScriptError> {
    Ok(format!("{} || :", marks_begin("", state_dir)?))
}

/// Each task has a marker of its own, because tasks on several nodes cannot append to one file. Without room for it there is no
/// warning, and the program runs all the same.
fn marks_begin(role: &str, state_dir: &RemotePath) -> Result<String, ScriptError> {
    let state = quoted("the state directory", state_dir.as_str())?;
    // Not `:`, a special builtin: with POSIXLY_CORRECT its failed redirection would end the shell.
    Ok(format!("true 2>/dev/null >{state}/begun\"{role}.${{SLURM_NODEID-}}\""))
}

/// Variables that show a library that it is one of several tasks.
const RANKS: [&str; 8] = [
    "SLURM_NTASKS",
    "SLURM_NNODES",
    "SLURM_PROCID",
    "SLURM_LOCALID",
    "SLURM_NTASKS_PER_NODE",
    "RANK",
    "LOCAL_RANK",
    "GROUP_RANK",
];
/// Variables about other nodes, useless on a single node.
const NODES: [&str; 7] =
    ["WORLD_SIZE", "NODE_RANK", "NUM_GPU_PER_NODE", "MASTER_ADDR", "MASTER_PORT", "NNODES", "NPROC_PER_NODE"];
/// The suffix of a role's markers. The role is the first argument of the entry shell.
const ROLE: &str = "${1:+_$1}";

impl BatchScript {
    /// The text of the entry shell. Its arguments are the role, which may be empty, and the program with its arguments.
    ///
    /// The job's variables come after those that are hidden, so that a job can set these too.
    pub(super) fn entry(&self) -> Result<String, ScriptError> {
        let (setup, several) = (&self.task, self.directives.nodes > 1);
        let state = quoted("the state directory", self.state_dir.as_str())?;
        let env_file = quoted("the environment file", self.env_file.as_str())?;
        let mut text = String::new();
        let ignored = setup.on_warning == OnWarning::Ignore;
        if ignored {
            text.push_str("trap \"\" USR1\n");
        }
        if several {
            // A signal is for the program, which gets it too: who waits for it must not end before it. The first task that
            // fails leaves its code.
            let heard = if ignored { "" } else { " USR1" };
            let _ = write!(
                text,
                "trap : TERM INT HUP{heard}\n_tao_leave() {{\n  set -C\n  \
                 if (($2)); then echo \"$2\" 2>/dev/null >{state}/failed\"{ROLE}\"; fi\n  exit \"$2\"\n}}\n"
            );
        }
        setup.hide_slurm(self.directives.nodes, &mut text);
        let leave = if several { "_tao_leave \"$1\"" } else { "exit" };
        let _ = write!(
            text,
            "if [ ! -r {env_file} ]; then\n  \
             echo \"tao-slurm: the environment file of this job is not there:\" {env_file} >&2\n  \
             {leave} {EXIT_NO_ENV_FILE}\nfi\n. {env_file}\n"
        );
        if matches!(self.launch, Launch::Host { .. }) {
            let _ = writeln!(text, "export PATH={state}/bin:\"$PATH\"");
        }
        if several {
            // Known on the node only. It counts from 0.
            text.push_str("export NODE_RANK=\"${SLURM_NODEID:?}\"\n");
        }
        setup.choose_cuda(&mut text);
        if ignored {
            let _ = writeln!(text, "{}", marks_begin(ROLE, &self.state_dir)?);
        }
        text.push_str(if several { "\"${@:2}\"\n_tao_leave \"$1\" \"$?\"" } else { "exec \"${@:2}\"" });
        Ok(text)
    }
}

impl TaskSetup {
    fn hide_slurm(&self, nodes: u32, text: &mut String) {
        if self.lightning_safe {
            let hidden: Vec<&str> =
                RANKS.iter().chain(NODES.iter().filter(|_| nodes == 1)).copied().collect();
            let _ = writeln!(text, "export SLURM_JOB_NAME=bash\nunset {}", hidden.join(" "));
        }
    }

    fn choose_cuda(&self, text: &mut String) {
        if let Some(version) = &self.cuda {
            let home = format!("/usr/local/cuda-{version}");
            let _ = writeln!(
                text,
                "export CUDA_HOME={home} CUDA_PATH={home} \
                 LD_LIBRARY_PATH=\"{home}/lib64:{home}/lib${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}\" \
                 LIBRARY_PATH=\"{home}/lib64:{home}/lib${{LIBRARY_PATH:+:$LIBRARY_PATH}}\" \
                 CPATH=\"{home}/include${{CPATH:+:$CPATH}}\""
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hidden variables of a task of a job on so many nodes.
    fn hidden(nodes: u32) -> Vec<String> {
        let mut text = String::new();
        TaskSetup { lightning_safe: true, ..TaskSetup::default() }.hide_slurm(nodes, &mut text);
        let (_, names) = text.split_once("unset ").unwrap();
        names.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn the_number_of_the_node_is_never_hidden() {
        for nodes in [1, 2] {
            assert!(!hidden(nodes).contains(&"SLURM_NODEID".to_owned()));
        }
    }

    #[test]
    fn several_nodes_keep_what_they_meet_by() {
        assert_eq!(hidden(3), RANKS);
    }

    #[test]
    fn a_single_node_hides_all_fifteen() {
        assert_eq!(hidden(1), [&RANKS[..], &NODES[..]].concat());
    }
}
