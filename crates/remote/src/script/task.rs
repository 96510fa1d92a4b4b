//! The setup of each task before its program. It runs on the task's node, inside the container if there is one.

use std::{collections::BTreeSet, fmt::Write};

use super::{ScriptError, quoted};
use slurm::{CudaVersion, EnvKey, RemotePath};

/// The setup of a task.
#[derive(Debug, Clone, Default)]
pub struct TaskSetup {
    /// Hides Slurm from `PyTorch Lightning`, which would read the number of Slurm's tasks as that of its processes; without Slurm
    /// it starts one process for each GPU.
    pub lightning_safe: bool,
    /// Variables that the job has set itself: they are not hidden.
    pub own_env: BTreeSet<EnvKey>,
    /// A CUDA version of the image to use instead of its default.
    pub cuda: Option<CudaVersion>,
    /// The effect of the warning before a time limit.
    pub on_warning: OnWarning,
}

/// The effect of `SIGUSR1` on a program without a handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnWarning {
    /// It kills the program, which is the system's default. For programs that handle it themselves: a shell cannot trap a signal
    /// that was ignored at its start.
    #[default]
    Default,
    /// None; a program with a handler gets the warning.
    Ignore,
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

impl TaskSetup {
    /// The words before the program's own; none when there is nothing to do.
    /// `failed`: where the first task that fails leaves its code, if there are several.
    pub(super) fn render(
        &self,
        nodes: u32,
        failed: Option<&RemotePath>,
        out: &mut String,
    ) -> Result<(), ScriptError> {
        let mut text = self.text(nodes);
        if let Some(failed) = failed {
            let failed = quoted("the state directory", failed.as_str())?;
            // A signal is for the program, which gets it too: who waits for it must not end before it.
            let heard = if self.on_warning == OnWarning::Ignore { "" } else { " USR1" };
            let _ = write!(
                text,
                "trap : TERM INT HUP{heard}; \"$@\"; code=$?; set -C; \
                 if ((code)); then echo \"$code\" 2>/dev/null >{failed}; fi; exit \"$code\""
            );
        } else if !text.is_empty() {
            text.push_str("exec \"$@\"");
        }
        if !text.is_empty() {
            let _ = write!(out, " bash -c {} task", quoted("the task", &text)?);
        }
        Ok(())
    }

    fn text(&self, nodes: u32) -> String {
        let mut text = String::new();
        if self.on_warning == OnWarning::Ignore {
            text.push_str("trap '' USR1; ");
        }
        if self.lightning_safe {
            text.push_str("export SLURM_JOB_NAME=bash; ");
        }
        if nodes > 1 {
            // Known on the node only. It counts from 0.
            text.push_str("export NODE_RANK=\"${SLURM_NODEID:?}\"; ");
        }
        if self.lightning_safe {
            let hidden = RANKS.iter().chain(NODES.iter().filter(|_| nodes == 1));
            let own = |name: &&&str| !self.own_env.iter().any(|key| key.as_str() == **name);
            let hidden: Vec<&str> = hidden.filter(own).copied().collect();
            let _ = write!(text, "unset {}; ", hidden.join(" "));
        }
        if let Some(version) = &self.cuda {
            let home = format!("/usr/local/cuda-{version}");
            let _ = write!(
                text,
                "export CUDA_HOME={home} CUDA_PATH={home} \
                 LD_LIBRARY_PATH=\"{home}/lib64:{home}/lib${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}\" \
                 LIBRARY_PATH=\"{home}/lib64:{home}/lib${{LIBRARY_PATH:+:$LIBRARY_PATH}}\" \
                 CPATH=\"{home}/include${{CPATH:+:$CPATH}}\"; "
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lightning_safe() -> TaskSetup {
        TaskSetup { lightning_safe: true, ..TaskSetup::default() }
    }

    #[test]
    fn the_number_of_the_node_is_never_hidden() {
        for nodes in [1, 2] {
            let text = lightning_safe().text(nodes);
            let (_, unset) = text.split_once("unset ").unwrap();
            assert!(!unset.contains("SLURM_NODEID"), "{text}");
        }
    }

    #[test]
    fn several_nodes_keep_what_they_meet_by() {
        let text = lightning_safe().text(3);
        let (before, unset) = text.split_once("unset ").unwrap();
        assert!(before.contains("export NODE_RANK=\"${SLURM_NODEID:?}\""), "{text}");
        let unset: Vec<&str> = unset.trim_end_matches("; ").split(' ').collect();
        assert_eq!(unset, RANKS);
    }

    #[test]
    fn a_single_node_hides_all_fifteen() {
        let text = lightning_safe().text(1);
        let (_, unset) = text.split_once("unset ").unwrap();
        let unset: Vec<&str> = unset.trim_end_matches("; ").split(' ').collect();
        assert_eq!(unset, [&RANKS[..], &NODES[..]].concat());
    }

    #[test]
    fn what_the_job_set_itself_stays() {
        let own_env = BTreeSet::from(["MASTER_PORT".parse().unwrap()]);
        let text = TaskSetup { own_env, ..lightning_safe() }.text(1);
        assert!(text.contains(" MASTER_ADDR ") && !text.contains("MASTER_PORT"), "{text}");
    }

    #[test]
    fn nothing_to_do_is_no_wrapper() {
        let mut out = String::new();
        TaskSetup::default().render(1, None, &mut out).unwrap();
        assert_eq!(out, "");
    }
}
