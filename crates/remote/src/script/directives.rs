//! The `#SBATCH` lines.

use std::fmt::Write;

use crate::script::{ScriptError, warning_before};
use slurm::{
    GpuRequest, Gres, JobName, MailAddress, MemoryRequest, NodeName, NodeSet, OptionValue, PartitionList,
    RemotePath, SbatchTime, SubmitOptions, TaskSet, TraceParent, WallTime,
};

/// The options of sbatch. Every field is a type without newlines; texts of callers are quoted.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a line of its own, there or not")]
pub struct Directives {
    /// The attempt's name in Slurm.
    pub job_name: JobName,
    /// The partitions; the cluster's default if absent.
    pub partitions: Option<PartitionList>,
    /// The indices of its tasks, and how many of them run at once; none without an array.
    pub array: Option<(TaskSet, Option<u32>)>,
    /// How many nodes.
    pub nodes: u32,
    /// Tasks of each node.
    pub tasks_per_node: u32,
    /// GPUs of each node; none for 0.
    pub gpus_per_node: u32,
    /// The option that asks for GPUs.
    pub gpu_request: GpuRequest,
    /// CPUs of each task.
    pub cpus_per_task: u32,
    /// The time limit.
    pub time: WallTime,
    /// Whether Slurm may start the job again by itself after a node failure or preemption.
    pub requeue: bool,
    /// Whether its nodes are exclusive.
    pub exclusive: bool,
    /// Whether the job gets all memory of its nodes instead of the partition's default, unless its options say how much.
    pub all_memory: bool,
    /// Excluded nodes, beside those of its options.
    pub exclude: Vec<NodeName>,
    /// The earliest start.
    pub begin: Option<SbatchTime>,
    /// The latest end.
    pub deadline: Option<SbatchTime>,
    /// Everything that the job or its cluster asks for beyond this.
    pub options: SubmitOptions,
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
        let counts = [
            ("nodes", self.nodes),
            ("tasks per node", self.tasks_per_node),
            ("cpus per task", self.cpus_per_task),
        ];
        if let Some((what, _)) = counts.into_iter().find(|(_, count)| *count == 0) {
            return Err(ScriptError::Zero { what });
        }
        let mut lines = Lines::default();
        self.queue(&mut lines);
        self.size(&mut lines);
        lines.some("constraint", self.options.constraint.as_ref());
        lines.some("nodelist", self.options.nodelist.as_ref());
        lines.some("switches", self.options.switches.as_ref());
        self.run(state_dir, &mut lines)?;
        self.exclude(&mut lines);
        lines.flag(if self.requeue { "requeue" } else { "no-requeue" });
        if self.exclusive {
            lines.flag("exclusive");
        }
        for (name, value) in &self.options.others {
            lines.0.retain(|(known, _)| *known != name.as_str());
            match value {
                OptionValue::Drop => {}
                OptionValue::Flag => lines.flag(name.as_str()),
                OptionValue::Text(text) => lines.add(name.as_str(), &quoted_for_sbatch(text.as_str())),
            }
        }
        for (option, value) in lines.0 {
            let value = value.map(|value| format!("={value}")).unwrap_or_default();
            // Writing to a String cannot fail.
            let _ = writeln!(out, "#SBATCH --{option}{value}");
        }
        Ok(())
    }

    /// Whose job it is, and where it waits.
    fn queue<'a>(&'a self, lines: &mut Lines<'a>) {
        let options = &self.options;
        lines.add("job-name", &self.job_name);
        match &self.array {
            Some((tasks, Some(most))) => lines.add("array", &format_args!("{tasks}%{most}")),
            Some((tasks, None)) => lines.add("array", tasks),
            None => {}
        }
        lines.some("account", options.account.as_ref());
        lines.some("partition", self.partitions.as_ref());
        lines.some("qos", options.qos.as_ref());
        lines.some("reservation", options.reservation.as_ref());
        lines.some("nice", options.nice.as_ref());
        lines.some("begin", self.begin.as_ref());
        lines.some("deadline", self.deadline.as_ref());
    }

    /// How much it needs.
    fn size<'a>(&'a self, lines: &mut Lines<'a>) {
        let options = &self.options;
        lines.add("nodes", &self.nodes);
        lines.add("ntasks-per-node", &self.tasks_per_node);
        if self.nodes > 1 || self.tasks_per_node > 1 {
            lines.add("ntasks", &self.nodes.saturating_mul(self.tasks_per_node));
        }
        let (gpus, others) = self.gres();
        match self.gpu_request {
            GpuRequest::Gres => {
                let all = gpus.iter().map(|gpus| format!("gpu:{gpus}")).chain(others);
                lines.list("gres", all);
            }
            GpuRequest::GpusPerNode => {
                lines.list("gpus-per-node", gpus.into_iter());
                lines.list("gres", others.into_iter());
            }
        }
        lines.add("cpus-per-task", &self.cpus_per_task);
        match options.memory.map(MemoryRequest::option) {
            Some((option, memory)) => lines.add(option, &memory),
            None if self.all_memory => lines.add("mem", &0),
            None => {}
        }
        lines.some("licenses", options.licenses.as_ref());
        lines.add("time", &self.time);
    }

    /// The GPUs as `TYPE:COUNT` or `COUNT`, and the other generic resources.
    fn gres(&self) -> (Vec<String>, Vec<String>) {
        let (gpus, others): (Vec<&Gres>, Vec<&Gres>) =
            self.options.gres.iter().partition(|gres| gres.is_gpu());
        let words = |list: Vec<&Gres>| list.iter().map(ToString::to_string).collect();
        if !gpus.is_empty() {
            let typed = |gres: &&Gres| gres.to_string().trim_start_matches("gpu:").to_owned();
            return (gpus.iter().map(typed).collect(), words(others));
        }
        let gpus = match (&self.options.gpu_type, self.gpus_per_node) {
            (_, 0) => Vec::new(),
            (Some(kind), count) => vec![format!("{kind}:{count}")],
            (None, count) => vec![count.to_string()],
        };
        (gpus, words(others))
    }

    /// Which nodes it may not get.
    fn exclude<'a>(&'a self, lines: &mut Lines<'a>) {
        // Slurm never starts a job that needs a node and excludes it.
        let needed = self.options.nodelist.as_ref().map(NodeSet::nodes).unwrap_or_default();
        let own = self.exclude.iter().filter(|node| !needed.contains(node)).map(ToString::to_string);
        lines.list("exclude", self.options.exclude.iter().map(ToString::to_string).chain(own));
    }

    /// How the script runs.
    fn run<'a>(&'a self, state_dir: &RemotePath, lines: &mut Lines<'a>) -> Result<(), ScriptError> {
        // %a: the index. The directory of a task does not exist yet.
        let name = if self.array.is_some() { "%a" } else { "main" };
        lines.add("output", &path_word(state_dir, &format!("{name}.out"))?);
        lines.add("error", &path_word(state_dir, &format!("{name}.err"))?);
        lines.add("open-mode", &"append");
        lines.add("wait-all-nodes", &1);
        lines.add("export", &if self.login_environment { "ALL" } else { "NIL" });
        let warning = warning_before(self.time.seconds(), self.warning_seconds);
        if warning > 0 {
            // B: to the batch script alone, which records it and passes it on.
            lines.add("signal", &format_args!("B:USR1@{warning}"));
        }
        if let Some(mail) = &self.mail {
            lines.add("mail-type", &"ALL");
            lines.add("mail-user", mail);
        }
        if let Some(comment) = self.comment() {
            lines.add("comment", &quoted_for_sbatch(&comment));
        }
        Ok(())
    }

    /// The caller's comment with the trace. Sites read JSON from comments, so in an object the trace is one more key.
    fn comment(&self) -> Option<String> {
        let Some(trace) = &self.trace else { return Some(self.options.comment.as_ref()?.to_string()) };
        let trace_alone = format!("traceparent={trace}");
        let Some(comment) = &self.options.comment else { return Some(trace_alone) };
        let object = comment.as_str().trim().strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        Some(match object.map(str::trim) {
            Some("") => format!("{{\"traceparent\":\"{trace}\"}}"),
            Some(keys) => format!("{{{keys},\"traceparent\":\"{trace}\"}}"),
            None => format!("{comment} {trace_alone}"),
        })
    }
}

/// The lines in order, each with its option and its value.
#[derive(Default)]
struct Lines<'a>(Vec<(&'a str, Option<String>)>);

impl<'a> Lines<'a> {
    fn add(&mut self, option: &'a str, value: &dyn std::fmt::Display) {
        self.0.push((option, Some(value.to_string())));
    }

    fn some<T: std::fmt::Display>(&mut self, option: &'a str, value: Option<&T>) {
        if let Some(value) = value {
            self.add(option, value);
        }
    }

    fn list(&mut self, option: &'a str, values: impl Iterator<Item = String>) {
        let values: Vec<String> = values.collect();
        if !values.is_empty() {
            self.add(option, &values.join(","));
        }
    }

    fn flag(&mut self, option: &'a str) {
        self.0.push((option, None));
    }
}

/// A text as sbatch reads it from an `#SBATCH` line: inside double quotes it takes everything as it is, but a backslash and
/// the quotes themselves, which a backslash escapes (`_get_argument` in `sbatch/opt.c`).
fn quoted_for_sbatch(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@%".contains(c);
    if text.chars().all(plain) {
        return text.to_owned();
    }
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// A path as sbatch reads it from an `#SBATCH` line: its own reader knows quotes, takes a bare `#` for a comment and
/// splits at spaces (`sbatch/opt.c`), but it expands nothing but `%`, which a `RemotePath` cannot hold.
pub(super) fn path_word(dir: &RemotePath, name: &str) -> Result<String, ScriptError> {
    let path = format!("{dir}/{name}");
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@%".contains(c);
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
#[path = "directives_tests.rs"]
mod tests;
