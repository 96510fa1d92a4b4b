//! The components of a job, and their rows in the script's table.

use std::{collections::BTreeMap, fmt::Write, sync::Arc};

use slurm::{ComponentName, CudaVersion, EnvKey, RemotePath, RunTime};

use super::{
    BatchScript, ScriptError, is_of_hooks,
    launcher::{Launcher, Site, Start},
    parts::{Kind, Nodes, Value},
    quoted,
};

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
    /// Its own time limit.
    pub timeout: Option<RunTime>,
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

/// Where a component runs.
#[derive(Debug, Clone)]
pub enum Place {
    /// On the node itself.
    Host,
    /// In a container, by the Pyxis plugin of srun.
    Pyxis(Container),
}

/// A container.
#[derive(Debug, Clone)]
pub struct Container {
    /// As Pyxis spells it: `registry#image:tag` or the path of a SquashFS file.
    pub image: String,
    /// As Pyxis spells them: `/from:/to:ro`, none with a comma.
    pub mounts: Vec<String>,
    /// Variables that [Enroot's hooks read](super::is_of_hooks), none of them secret: they are in the script's text. They
    /// override those of the image.
    pub hook_env: BTreeMap<EnvKey, String>,
    /// Whether it never has the user's home directory. Otherwise the cluster's configuration decides.
    pub without_home: bool,
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
    /// program handles it itself and then runs [`begin_mark`]; without that it gets no warning.
    #[default]
    Default,
    /// None; a program with a handler gets the warning.
    Ignore,
}

/// A shell command for the program of a component: from now on it can be warned. Without room for the mark there is no warning.
pub fn begin_mark(component: &ComponentName, state_dir: &RemotePath) -> Result<String, ScriptError> {
    let state = quoted("the state directory", state_dir.as_str())?;
    // Not `:`, a special builtin: with POSIXLY_CORRECT its failed redirection would end the shell.
    Ok(format!("true 2>/dev/null >{state}/begun.{component}.\"${{SLURM_NODEID-}}\" || :"))
}

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
            timeout: None,
            log: Log::Job,
            lightning_safe: false,
            cuda: None,
            on_warning: OnWarning::Default,
        }
    }

    pub(super) fn container(&self) -> Option<&Container> {
        match &self.place {
            Place::Host => None,
            Place::Pyxis(container) => Some(container),
        }
    }

    /// Its rows of the table: one for each srun.
    pub(super) fn rows(&self, script: &BatchScript, out: &mut String) -> Result<(), ScriptError> {
        if self.argv.is_empty() {
            return Err(ScriptError::EmptyCommand);
        }
        let site = Site {
            nodes: self.nodes,
            tasks_per_node: self.tasks_per_node,
            gpus_per_node: script.directives.gpus_per_node,
            job_nodes: script.directives.nodes,
            port: script.master_port,
            run: script.directives.job_name.as_str(),
        };
        for start in self.launcher.starts(&site) {
            self.row(&start, script, out)?;
        }
        Ok(())
    }

    fn row(&self, start: &Start, script: &BatchScript, out: &mut String) -> Result<(), ScriptError> {
        let kind = match start.kind.unwrap_or(self.kind) {
            Kind::Step => "step",
            Kind::With => "with",
            Kind::Service => "service",
        };
        let (name, nodes) = (&self.name, start.nodes.count);
        if nodes == 0 || start.tasks_per_node == 0 {
            return Err(ScriptError::Zero { what: "nodes and tasks of a component" });
        }
        if self.log == Log::Own {
            let _ = writeln!(out, "  mkdir -p -- \"$_tao_logs\"/{name}");
        }
        let seconds = self.timeout.map_or(0, RunTime::seconds);
        let _ = write!(out, "  _tao_component {name}{} {kind} {nodes} {seconds} \\\n    srun", start.suffix);
        self.step_options(start, script, out);
        for option in &start.options {
            let _ = write!(out, " {}", quoted("an option of srun", option)?);
        }
        if let Place::Pyxis(container) = &self.place {
            container.options(script.directives.nodes > 1, out)?;
        }
        // Without --kill-on-bad-exit the other nodes would wait for a failed one until the time limit.
        out.push_str(
            " --export=ALL --kill-on-bad-exit=1 \\\n    -- bash -c \"$_tao_task\" task \"$_tao_state\"",
        );
        let _ = write!(out, " {name}{}", start.suffix);
        self.setup(start, script, out)?;
        for word in start.program.iter().chain(&self.argv) {
            let _ = write!(out, " {}", quoted("the command", word)?);
        }
        out.push('\n');
        Ok(())
    }

    /// The options of srun that make the tasks.
    fn step_options(&self, start: &Start, script: &BatchScript, out: &mut String) {
        let (job, several) = (&script.directives, script.components.len() > 1);
        if several {
            // Components may share nodes, and all that these have. Later ones must not wait for what earlier ones release.
            out.push_str(" --overlap");
        }
        let Nodes { first, count } = start.nodes;
        let is_whole = count == job.nodes && start.tasks_per_node == job.tasks_per_node;
        if several || !is_whole {
            let _ = write!(out, " --nodes={count} --ntasks={}", count * start.tasks_per_node);
        }
        if start.tasks_per_node != job.tasks_per_node {
            let _ = write!(out, " --ntasks-per-node={}", start.tasks_per_node);
        }
        if count < job.nodes {
            let _ = write!(out, " --nodelist=\"$(_tao_slice {first} {count} ,)\"");
        }
        if self.log == Log::Own {
            let log = format!("\"$_tao_logs\"/{}/%t", self.name);
            let _ = write!(out, " --output={log}.out --error={log}.err --open-mode=append");
        }
    }

    /// The words that set a task up, in the order in which the entry shell acts on them. The job's variables come after those
    /// that are hidden, so that a job can set these too.
    fn setup(&self, start: &Start, script: &BatchScript, out: &mut String) -> Result<(), ScriptError> {
        let several = script.directives.nodes > 1 || start.nodes.count * start.tasks_per_node > 1;
        let ignored = self.on_warning == OnWarning::Ignore;
        let words = [
            ("--several", several),
            ("--ignore-warning", ignored),
            ("--hide-tasks", self.lightning_safe),
            // Variables about other nodes are useless on a single node.
            ("--hide-nodes", self.lightning_safe && script.directives.nodes == 1),
        ];
        for (word, _) in words.into_iter().filter(|(_, given)| *given) {
            let _ = write!(out, " {word}");
        }
        if let Some(file) = &script.env_file {
            let _ = write!(out, " --read={}", quoted("the environment file", file.as_str())?);
        }
        if matches!(self.place, Place::Host) {
            out.push_str(" --path=\"$_tao_state\"/bin");
        }
        for word in &start.ranks {
            let _ = write!(out, " {word}");
        }
        for (key, value) in start.variables.iter().chain(&script.variables).chain(&self.variables) {
            let _ = write!(out, " {key}={}", value.word()?);
        }
        if let Some(version) = &self.cuda {
            let _ = write!(out, " --cuda=/usr/local/cuda-{version}");
        }
        if ignored {
            out.push_str(" --begun");
        }
        out.push_str(if several { " \\\n    --run" } else { " \\\n    --exec" });
        Ok(())
    }
}

impl Container {
    /// The variables for Enroot's hooks, in the environment that srun passes on.
    pub(super) fn export(&self, out: &mut String) -> Result<(), ScriptError> {
        for (key, value) in &self.hook_env {
            if !is_of_hooks(key, value) {
                let forbidden = "control characters, nor be for another program";
                return Err(ScriptError::Forbidden { what: "a variable of Enroot's hooks", forbidden });
            }
            let _ = writeln!(out, "export {key}={}", quoted("a variable of Enroot's hooks", value)?);
        }
        Ok(())
    }

    /// The options of Pyxis.
    fn options(&self, several_nodes: bool, out: &mut String) -> Result<(), ScriptError> {
        let Self { image, mounts, hook_env, without_home } = self;
        if image.is_empty() || image.contains(char::is_control) {
            let forbidden = "control characters, nor be empty";
            return Err(ScriptError::Forbidden { what: "the image", forbidden });
        }
        if mounts.iter().any(|mount| mount.is_empty() || mount.contains(|c: char| c.is_control() || c == ','))
        {
            let forbidden = "commas or control characters, nor be empty";
            return Err(ScriptError::Forbidden { what: "a mount", forbidden });
        }
        let _ = write!(out, " --container-image={}", quoted("the image", image)?);
        if !mounts.is_empty() {
            let _ = write!(out, " --container-mounts={}", quoted("a mount", &mounts.join(","))?);
        }
        if *without_home {
            out.push_str(" --no-container-mount-home");
        }
        // They override those of the image. None has a newline or a meaning for Enroot, which it would split or follow.
        let of_nodes = ["SLURM_NODEID", "SLURMD_NODENAME"].into_iter().filter(|_| several_nodes);
        let listed: Vec<&str> = of_nodes.chain(hook_env.keys().map(EnvKey::as_str)).collect();
        if !listed.is_empty() {
            let _ = write!(out, " --container-env={}", listed.join(","));
        }
        Ok(())
    }
}
