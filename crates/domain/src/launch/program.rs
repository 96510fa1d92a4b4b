//! The program that a job's batch script starts.

use std::{collections::BTreeMap, sync::Arc};

use remote::{
    Component, Container, Kind, Log, Nodes, OnWarning, Place, StagedFile, Value,
    launcher::PerNode,
    script::{BEGIN_MARK, is_of_hooks},
};
use slurm::{ComponentName, EnvKey, InvalidName, RemotePath, RunTime};

use crate::{
    cluster::policy::ContainerRuntime,
    job::{attempt::Attempt, paths::JobPaths, stored::Job},
    launch::StagingError,
    request::{
        components::{JobComponent, variable},
        cosmos::Program,
        launcher::Launcher,
        program::ProgramSettings,
        spec::{CUDA_OVERRIDE, JobSpec, Work},
    },
};

/// The name of the program of a job that has only one.
pub(super) const MAIN: &str = "main";

/// TAO's container entry point with its arguments.
pub(super) fn tao_command(job: &Job, paths: &JobPaths, network_arch: &str, action: &str) -> Vec<String> {
    let id = job.id.to_string();
    let words = [
        "python",
        "-m",
        "nvidia_tao_core.microservices.handlers.container_handler",
        "--neural-network-name",
        network_arch,
        "--action-name",
        action,
        "--job-id",
        &id,
        "--specs-file",
        paths.specs.as_str(),
        "--docker-env-vars-file",
        paths.env_json.as_str(),
        "--cloud-metadata-file",
        paths.meta.as_str(),
    ];
    words.map(str::to_owned).to_vec()
}

/// The name of the file with the lines of setup, in the state directory.
pub(super) const SETUP: &str = "setup";

/// The program of a job: one step, in the job's container or on the nodes themselves. `open`: the plain variables.
pub(super) fn component(
    spec: &JobSpec,
    attempt: &Attempt,
    state_dir: &RemotePath,
    argv: Vec<String>,
    open: &BTreeMap<EnvKey, String>,
) -> Result<Component, InvalidName> {
    let place = place(spec, attempt, open);
    let ProgramSettings { launcher, setup, workdir, .. } = &spec.program;
    let launcher = launcher.as_ref().map_or_else(|| Arc::new(PerNode) as _, Launcher::of_script);
    let cuda = open.iter().find(|(key, value)| key.as_str() == CUDA_OVERRIDE && !value.is_empty());
    Ok(Component {
        tasks_per_node: spec.resources.tasks_per_node,
        // A command on the node itself may use Slurm's variables.
        lightning_safe: !matches!(place, Place::Host),
        place,
        cuda: cuda.map(|(_, version)| version.parse()).transpose()?,
        on_warning: match spec.work {
            Work::Tao { .. } => OnWarning::Ignore,
            // The command's shell ignores the warning, unless the command's text traps it.
            Work::Command { .. } | Work::Components { .. } => OnWarning::Default,
        },
        setup: (!setup.is_empty()).then(|| state_dir.join(SETUP)).transpose()?,
        workdir: workdir.clone(),
        ..Component::step(MAIN.parse()?, spec.resources.nodes, launcher, argv)
    })
}

/// The programs of a job that has several, each like `base` with a script of its own. The scripts are staged.
pub(super) fn several(
    list: &[JobComponent],
    base: &Component,
    state_dir: &RemotePath,
    files: &mut Vec<StagedFile>,
) -> Result<Program, StagingError> {
    let mut program =
        Program { components: Vec::new(), variables: Vec::new(), env: BTreeMap::new(), all_memory: false };
    for job in list {
        let nodes = Nodes { first: job.first_node, count: job.nodes };
        if job.is_service {
            let name = variable(&job.name);
            let first = Nodes { count: 1, ..nodes };
            program.variables.push((format!("{name}_HOST").parse()?, Value::Hosts(first)));
            program.variables.push((format!("{name}_NODES").parse()?, Value::Hosts(nodes)));
        }
        let kind = match (job.is_service, job.with_previous) {
            (true, _) => Kind::Service,
            (false, true) => Kind::With,
            (false, false) => Kind::Step,
        };
        let (file, argv) = command(&job.name, &job.text, state_dir)?;
        files.push(file);
        program.components.push(Component {
            name: job.name.clone(),
            kind,
            nodes,
            launcher: job.launcher.as_ref().map_or_else(|| Arc::clone(&base.launcher), Launcher::of_script),
            argv,
            timeout: job
                .timeout_minutes
                .and_then(|minutes| RunTime::from_seconds(minutes.saturating_mul(60))),
            log: Log::Own,
            ..base.clone()
        });
    }
    Ok(program)
}

/// A shell script of a component as a staged file, and the words that run it.
pub(super) fn command(
    component: &ComponentName,
    text: &str,
    state_dir: &RemotePath,
) -> Result<(StagedFile, Vec<String>), StagingError> {
    let path = state_dir.join(&if component.as_str() == MAIN {
        "command.sh".to_owned()
    } else {
        format!("command-{component}.sh")
    })?;
    let argv = ["bash", "-euo", "pipefail", path.as_str()].map(str::to_owned).to_vec();
    // The warning signal before a time limit must not end a command that does not handle it. The trap is on the first line, so
    // that the shell's messages have the line numbers of the command's text.
    let bytes = format!("trap '' USR1; {BEGIN_MARK}; {text}").into_bytes();
    Ok((StagedFile { path, mode: 0o644, bytes }, argv))
}

fn place(spec: &JobSpec, attempt: &Attempt, open: &BTreeMap<EnvKey, String>) -> Place {
    let launched = attempt.image.as_ref().map(|launched| &launched.image);
    let Some(image) = launched.or(spec.image.as_ref()) else { return Place::Host };
    let mut mounts: Vec<String> = spec.mounts.iter().map(ToString::to_string).collect();
    // The job's own files are below the base directory, so the container always mounts it.
    let base = attempt.job_dir.as_str();
    if !mounts.iter().any(|mount| base == mount || base.starts_with(&format!("{mount}/"))) {
        mounts.push(base.to_owned());
    }
    let hook_env = open.iter().filter(|(key, value)| is_of_hooks(key, value));
    let hook_env = hook_env.map(|(key, value)| (key.clone(), value.clone())).collect();
    let container = |image| Container { image, mounts, hook_env, without_home: false };
    match spec.image_policy.runtime {
        ContainerRuntime::Pyxis => Place::Pyxis(container(image.pyxis())),
        ContainerRuntime::Apptainer => Place::Apptainer(container(image.apptainer())),
    }
}
