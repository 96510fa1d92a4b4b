//! The components of a job, and their rows in the script's table.

use std::{fmt::Write, sync::Arc};

use slurm::{ComponentName, CudaVersion, EnvKey, RemotePath, RunTime};

use super::{
    BatchScript, ScriptError,
    launcher::{Launcher, Site, Start},
    parts::{Kind, Nodes, Value},
    place::Place,
    quoted,
    service::ServiceRules,
};

/// The columns of a row, for its readers.
const WIDEST: usize = 120;

/// One program of a job.
#[derive(Debug, Clone)]
pub struct Component {
    /// Its name. Its own logs are in a directory of this name.
    pub name: ComponentName,
    /// When it starts, and what its end means.
    pub kind: Kind,
    /// Its nodes.
    pub nodes: Nodes,
    /// Its tasks on each node.
    pub tasks_per_node: u32,
    /// Where it runs.
    pub place: Place,
    /// How it becomes processes.
    pub launcher: Arc<dyn Launcher>,
    /// The command and its arguments.
    pub argv: Vec<String>,
    /// Variables of the service for its tasks. They override those of the job, of its image and of the launcher.
    pub variables: Vec<(EnvKey, Value)>,
    /// A file with variables that it alone has, read after that of the job; its text is by [`env_text`](super::env_text). It has
    /// secrets: mode 0600.
    pub env_file: Option<RemotePath>,
    /// Variables of it, and those of the batch script that have their values: what the cluster's user has set on the node.
    pub node_env: Vec<(EnvKey, EnvKey)>,
    /// A file with lines for bash, each ended by a NUL, that run before the command of each task, in its container.
    pub setup: Option<RemotePath>,
    /// The directory that it starts in.
    pub workdir: Option<RemotePath>,
    /// Its own time limit.
    pub timeout: Option<RunTime>,
    /// The port that it is going to use on the first of its nodes.
    pub port: Option<Value>,
    /// Of a service: when it is ready, and what becomes of it if it fails.
    pub rules: Option<ServiceRules>,
    /// Of a step: the job goes on if it fails, and ends with its code.
    pub may_fail: bool,
    /// Where its output goes.
    pub log: Log,
    /// Hides Slurm from `PyTorch Lightning`, which would read the number of Slurm's tasks as that of its processes; without Slurm
    /// it starts one process for each GPU.
    pub lightning_safe: bool,
    /// A CUDA version of the image to use instead of its default.
    pub cuda: Option<CudaVersion>,
    /// The effect of the warning before a time limit.
    pub on_warning: OnWarning,
}

/// Where the output of a component goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Log {
    /// To the logs of the job.
    Job,
    /// To files of each of its tasks, such as `policy/0.out`.
    Own,
}

/// The effect of `SIGUSR1` on a program without a handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnWarning {
    /// It kills the program, which is the system's default: a shell cannot trap a signal that was ignored at its start. The
    /// program handles it itself and then runs [`BEGIN_MARK`]; without that it gets no warning.
    #[default]
    Default,
    /// None; a program with a handler gets the warning.
    Ignore,
}

/// A shell command for the program of a component: from now on it can be warned. Without room for the mark there is no warning.
// Not `:`, a special builtin: with POSIXLY_CORRECT its failed redirection would end the shell.
pub const BEGIN_MARK: &str = "true 2>/dev/null >\"${_tao_begun:-/dev/null/}\" || :";

impl Component {
    /// A step on all nodes of a job, one task on each, on the nodes themselves.
    pub fn step(name: ComponentName, nodes: u32, launcher: Arc<dyn Launcher>, argv: Vec<String>) -> Self {
        Self {
            name,
            kind: Kind::Step,
            nodes: Nodes { first: 0, count: nodes },
            tasks_per_node: 1,
            place: Place::Host,
            launcher,
            argv,
            variables: Vec::new(),
            env_file: None,
            node_env: Vec::new(),
            setup: None,
            workdir: None,
            timeout: None,
            port: None,
            rules: None,
            may_fail: false,
            log: Log::Job,
            lightning_safe: false,
            cuda: None,
            on_warning: OnWarning::Default,
        }
    }

    /// The steps of Slurm that it needs. `place`: its number among the components.
    pub(super) fn starts(&self, place: u32, script: &BatchScript) -> Result<Vec<Start>, ScriptError> {
        if self.argv.is_empty() {
            return Err(ScriptError::EmptyCommand);
        }
        Ok(self.launcher.starts(&Site {
            argv: &self.argv,
            nodes: self.nodes,
            tasks_per_node: self.tasks_per_node,
            gpus_per_node: script.directives.gpus_per_node,
            job_nodes: script.directives.nodes,
            port: Value::Port(place),
            more_ports: Value::Port(48 + place % 5 * 10),
            run: script.directives.job_name.as_str(),
        }))
    }

    /// The row of the table for one of these steps. `is_first`: no other one of them is before it.
    pub(super) fn row(
        &self,
        (start, is_first): (&Start, bool),
        table: Table,
        script: &BatchScript,
        out: &mut String,
    ) -> Result<(), ScriptError> {
        let kind = match (self.kind, start.aids, is_first) {
            (Kind::Service, ..) => "service",
            (Kind::Proxy, ..) => "proxy",
            (Kind::Step, true, true) => "aid",
            (_, true, _) => "aid-with",
            (Kind::Step, false, true) => "step",
            (_, false, _) => "with",
        };
        let (name, nodes) = (format!("{}{}", self.name, start.suffix), start.nodes.count);
        if nodes == 0 || start.tasks_per_node == 0 {
            return Err(ScriptError::Zero { what: "nodes and tasks of a component" });
        }
        let tasks = nodes * start.tasks_per_node;
        let seconds = self.timeout.filter(|_| !start.aids).map_or(0, RunTime::seconds);
        let own_log = self.log == Log::Own || start.aids;
        if own_log {
            let _ = writeln!(out, "  _tao_make_logs {name}");
        }
        let (outside, entry) = self.place.options()?;
        let mut lines = vec![step_options(start, table, script)?, outside, vec!["--".to_owned()]];
        if let Place::Pyxis(container) = &self.place {
            // Enroot's hooks read them before the container starts.
            container.set(&mut lines[0])?;
        }
        if own_log {
            let log = format!("\"$_tao_logs\"/{name}/%t");
            lines[0].extend([format!("--output={log}.out"), format!("--error={log}.err")]);
            lines[0].push("--open-mode=append".to_owned());
        }
        let several = script.directives.nodes > 1 || tasks > 1;
        let enter = format!("bash -c \"$_tao_task\" task \"$_tao_state\" {name}");
        let waits_outside = several && !entry.is_empty();
        if waits_outside {
            // Once a signal has ended a task, srun drops what it has not read of any (step_launch.c of Slurm), such as why the first
            // one failed. So no task is a program that is still making its container.
            lines[2].extend([enter.clone(), "--several --run".to_owned()]);
        }
        lines[2].extend(entry);
        lines[2].push(enter);
        lines.extend(self.setup(start, table, script)?);
        let mut program = vec![if several && !waits_outside { "--run" } else { "--exec" }.to_owned()];
        for word in &start.program {
            program.push(quoted("the command", word)?);
        }
        lines.push(vec![program.join(" ")]);
        let _ = write!(out, "  _tao_component {name} {kind} {tasks} {seconds}");
        for line in lines {
            let mut columns = WIDEST;
            for word in line {
                let begins = columns + word.len() >= WIDEST;
                out.push_str(if begins { " \\\n    " } else { " " });
                out.push_str(&word);
                columns = if begins { word.len() } else { columns + word.len() + 1 };
            }
        }
        out.push('\n');
        if let Some(rules) = self.rules.as_ref().filter(|_| !start.aids) {
            rules.line(out)?;
        }
        if self.may_fail && !start.aids {
            out.push_str("  _tao_tolerate\n");
        }
        Ok(())
    }

    /// The words that set a task up, in the order in which the entry shell acts on them. The job's variables come after those
    /// that are hidden, so that a job can set these too.
    fn setup(
        &self,
        start: &Start,
        table: Table,
        script: &BatchScript,
    ) -> Result<[Vec<String>; 3], ScriptError> {
        let several = script.directives.nodes > 1 || start.nodes.count * start.tasks_per_node > 1;
        let hides = self.lightning_safe && self.launcher.hides_slurm();
        let ignored = self.on_warning == OnWarning::Ignore || self.launcher.stands_between();
        let given = |words: &[(&str, bool)]| {
            words.iter().filter(|(_, given)| *given).map(|(word, _)| (*word).to_owned()).collect::<Vec<_>>()
        };
        let mut first = Vec::new();
        if let Some(port) = self.port.as_ref().filter(|_| !start.aids) {
            first.push(format!("--free={}", port.word()?));
        }
        first.extend(given(&[
            ("--several", several),
            ("--ignore-warning", ignored),
            ("--hide-tasks", hides),
            // Variables about other nodes are useless on a single node.
            ("--hide-nodes", hides && script.directives.nodes == 1),
        ]));
        first.push(format!("--read={}", quoted("the environment file", script.env_file.as_str())?));
        if let Some(file) = &self.env_file {
            first.push(format!("--read={}", quoted("the environment file", file.as_str())?));
        }
        first.extend(self.node_env.iter().map(|(key, on_node)| format!("--node={key}={on_node}")));
        if let Some(file) = &self.setup {
            first.push(format!("--setup={}", quoted("the setup file", file.as_str())?));
        }
        if matches!(self.place, Place::Host) {
            first.push("--path=\"$_tao_state\"/bin".to_owned());
        }
        let mut variables: Vec<&(EnvKey, Value)> = Vec::new();
        for variable in start.variables.iter().chain(&script.variables).chain(&self.variables) {
            variables.retain(|(key, _)| *key != variable.0);
            variables.push(variable);
        }
        let mut second: Vec<String> = start.ranks.iter().map(|word| (*word).to_owned()).collect();
        for (key, value) in variables {
            second.push(format!("{key}={}", value.word()?));
        }
        if start.records {
            second.push(format!("_tao_failed=\"$_tao_state\"/failed.{}{}", self.name, start.suffix));
            second.push(format!("_tao_last={}", u8::from(!start.restarts)));
        }
        let mut third = vec!["--mark".to_owned()];
        if let Some(version) = &self.cuda {
            third.push(format!("--cuda=/usr/local/cuda-{version}"));
        }
        if let Some(dir) = &self.workdir {
            third.push(format!("--cd={}", quoted("the working directory", dir.as_str())?));
        }
        third.extend(given(&[
            ("--step", table.has_services || self.may_fail),
            ("--begun", ignored || start.aids),
        ]));
        Ok([first, second, third])
    }
}

/// What the steps of a job have in common.
#[derive(Debug, Clone, Copy)]
pub(super) struct Table {
    /// Whether there are several.
    pub(super) has_several: bool,
    /// Whether some of them are ended after others.
    pub(super) has_services: bool,
}

/// The options of srun that make the tasks.
fn step_options(start: &Start, table: Table, script: &BatchScript) -> Result<Vec<String>, ScriptError> {
    let job = &script.directives;
    // Without --kill-on-bad-exit the other nodes would wait for a failed one until the time limit.
    let mut words = vec!["srun --export=ALL --kill-on-bad-exit=1".to_owned()];
    if table.has_several {
        // Steps may share nodes, and all that these have. Later ones must not wait for what earlier ones release.
        words.push("--overlap".to_owned());
    }
    let Nodes { first, count } = start.nodes;
    let is_whole = count == job.nodes && start.tasks_per_node == job.tasks_per_node;
    if table.has_several || !is_whole {
        words.push(format!("--nodes={count} --ntasks={}", count * start.tasks_per_node));
    }
    if start.tasks_per_node != job.tasks_per_node {
        words.push(format!("--ntasks-per-node={}", start.tasks_per_node));
    }
    if count < job.nodes {
        words.push(format!("--nodelist=\"$(_tao_slice {first} {count} ,)\""));
    }
    for option in &start.options {
        words.push(quoted("an option of srun", option)?);
    }
    Ok(words)
}
