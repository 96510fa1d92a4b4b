//! The `#SBATCH` lines.

use std::fmt::Write;

use crate::script::{ScriptError, warning_before};
use slurm::{Account, JobName, MailAddress, NodeName, PartitionList, RemotePath, TraceParent, WallTime};

/// The options of sbatch. Every field is a type without spaces and newlines, so no line needs escaping.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a line of its own, there or not")]
pub struct Directives {
    /// The attempt's name in Slurm.
    pub job_name: JobName,
    /// The partitions; the cluster's default if absent.
    pub partitions: Option<PartitionList>,
    /// The account; the user's default if absent.
    pub account: Option<Account>,
    /// How many nodes, with one task each.
    pub nodes: u32,
    /// GPUs of each node; none for 0.
    pub gpus_per_node: u32,
    /// CPUs of each task, and so of each node.
    pub cpus_per_task: u32,
    /// The time limit.
    pub time: WallTime,
    /// Whether Slurm may start the job again by itself after a node failure or preemption.
    pub requeue: bool,
    /// Whether its nodes are exclusive.
    pub exclusive: bool,
    /// Whether the job gets all memory of its nodes instead of the partition's default.
    pub all_memory: bool,
    /// Excluded nodes.
    pub exclude: Vec<NodeName>,
    /// The recipient of Slurm's mails about the job.
    pub mail: Option<MailAddress>,
    /// The trace that the job belongs to, for Slurm's comment.
    pub trace: Option<TraceParent>,
    /// Whether the job inherits the environment of the login shell that submits it, or only Slurm's own variables.
    pub login_environment: bool,
    /// How long before a time limit the job is warned, in seconds; 0 for no warning.
    pub warning_seconds: u32,
}

impl Directives {
    pub(super) fn render(&self, state_dir: &RemotePath, out: &mut String) -> Result<(), ScriptError> {
        for (what, count) in [("nodes", self.nodes), ("cpus per task", self.cpus_per_task)] {
            if count == 0 {
                return Err(ScriptError::Zero { what });
            }
        }
        let mut line = |option: &str, value: &dyn std::fmt::Display| {
            // Writing to a String cannot fail.
            let _ = writeln!(out, "#SBATCH --{option}={value}");
        };
        line("job-name", &self.job_name);
        if let Some(account) = &self.account {
            line("account", account);
        }
        if let Some(partitions) = &self.partitions {
            line("partition", partitions);
        }
        line("nodes", &self.nodes);
        line("ntasks-per-node", &1);
        if self.nodes > 1 {
            line("ntasks", &self.nodes);
        }
        if self.gpus_per_node > 0 {
            line("gres", &format_args!("gpu:{}", self.gpus_per_node));
        }
        line("cpus-per-task", &self.cpus_per_task);
        if self.all_memory {
            line("mem", &0);
        }
        line("time", &self.time);
        line("output", &path_word(state_dir, "main.out")?);
        line("error", &path_word(state_dir, "main.err")?);
        line("open-mode", &"append");
        line("wait-all-nodes", &1);
        line("export", &if self.login_environment { "ALL" } else { "NIL" });
        let warning = warning_before(self.time.seconds(), self.warning_seconds);
        if warning > 0 {
            // B: to the batch script alone, which records it and passes it on.
            line("signal", &format_args!("B:USR1@{warning}"));
        }
        if let Some(mail) = &self.mail {
            line("mail-type", &"ALL");
            line("mail-user", mail);
        }
        if let Some(trace) = &self.trace {
            line("comment", &format_args!("traceparent={trace}"));
        }
        if !self.exclude.is_empty() {
            let names: Vec<&str> = self.exclude.iter().map(NodeName::as_str).collect();
            line("exclude", &names.join(","));
        }
        out.push_str(if self.requeue { "#SBATCH --requeue\n" } else { "#SBATCH --no-requeue\n" });
        if self.exclusive {
            out.push_str("#SBATCH --exclusive\n");
        }
        Ok(())
    }
}

/// A path as sbatch reads it from an `#SBATCH` line: its own reader knows quotes, takes a bare `#` for a comment and
/// splits at spaces (`sbatch/opt.c`), but it expands nothing but `%`, which a `RemotePath` cannot hold.
pub(super) fn path_word(dir: &RemotePath, name: &str) -> Result<String, ScriptError> {
    let path = format!("{dir}/{name}");
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@".contains(c);
    if path.chars().all(plain) {
        Ok(path)
    } else if !path.contains('"') {
        Ok(format!("\"{path}\""))
    } else if !path.contains('\'') {
        Ok(format!("'{path}'"))
    } else {
        Err(ScriptError::Forbidden { what: "the state directory", forbidden: "both kinds of quotes" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_with_a_space_a_hash_or_a_quote_is_quoted_for_sbatch() {
        let word = |dir: &str| path_word(&dir.parse().unwrap(), "main.out");
        assert_eq!(word("/a-b_c.d/1").unwrap(), "/a-b_c.d/1/main.out");
        assert_eq!(word("/a b").unwrap(), "\"/a b/main.out\"");
        assert_eq!(word("/#a").unwrap(), "\"/#a/main.out\"");
        assert_eq!(word("/a\"").unwrap(), "'/a\"/main.out'");
        assert!(word("/a\"'").is_err());
    }
}
