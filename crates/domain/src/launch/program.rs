//! The program that a job's batch script starts.

use std::{collections::BTreeMap, sync::Arc};

use remote::{
    Component, Container, Kind, Log, Nodes, OnWarning, Place, StagedFile, Value,
    launcher::PerNode,
    script::{BEGIN_MARK, env_text, is_of_hooks},
};
use secrecy::ExposeSecret;
use slurm::{ComponentName, CudaVersion, EnvKey, InvalidName, RemotePath, RunTime};

use crate::{
    cluster::{mount::Mount, policy::ContainerRuntime},
    image::ImageRef,
    job::{attempt::Attempt, paths::JobPaths, stored::Job},
    launch::{PRIVATE, StagingError},
    request::{
        component::{JobComponent, variable},
        cosmos::Program,
        environment::CUDA_OVERRIDE,
        launcher::Launcher,
        program::ProgramSettings,
        secret::Secrets,
        service::ServicePort,
        spec::{JobSpec, Work},
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
    let place = place_of(spec, attempt, (spec.image.as_ref(), &spec.mounts, spec.mount_home), open);
    let ProgramSettings { launcher, setup, workdir, .. } = &spec.program;
    let launcher = launcher.as_ref().map_or_else(|| Arc::new(PerNode) as _, Launcher::of_script);
    Ok(Component {
        tasks_per_node: spec.resources.tasks_per_node,
        // A command on the node itself may use Slurm's variables.
        lightning_safe: !matches!(place, Place::Host),
        place,
        cuda: cuda(open)?,
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

fn cuda(open: &BTreeMap<EnvKey, String>) -> Result<Option<CudaVersion>, InvalidName> {
    let asked = open.iter().find(|(key, value)| key.as_str() == CUDA_OVERRIDE && !value.is_empty());
    asked.map(|(_, version)| version.parse()).transpose()
}

/// What the components of a job have in common.
pub(super) struct Site<'a> {
    pub(super) job: &'a Job,
    pub(super) attempt: &'a Attempt,
    pub(super) paths: &'a JobPaths,
    pub(super) state_dir: &'a RemotePath,
    /// The job's plain variables.
    pub(super) open: &'a BTreeMap<EnvKey, String>,
    pub(super) secrets: &'a Secrets,
}

/// The programs of a job that has several, each like `base` with a script of its own. The scripts are staged, and so are the
/// variables that only one of them has.
pub(super) fn several(
    list: &[JobComponent],
    base: &Component,
    site: &Site<'_>,
    files: &mut Vec<StagedFile>,
) -> Result<Program, StagingError> {
    let mut program =
        Program { components: Vec::new(), variables: Vec::new(), env: BTreeMap::new(), all_memory: false };
    program.variables = addresses(list)?;
    for (component, place) in list.iter().zip(0..) {
        let nodes = Nodes { first: component.first_node, count: component.nodes };
        let port = port(component, place);
        let kind = match (component.is_service, component.with_previous) {
            (true, _) if component.balances.is_some() => Kind::Proxy,
            (true, _) => Kind::Service,
            (false, true) => Kind::With,
            (false, false) => Kind::Step,
        };
        let (file, argv) = command(&component.name, &component.text, site.state_dir)?;
        files.push(file);
        let (spec, own) = (&site.job.spec, &component.own);
        let open: BTreeMap<_, _> =
            site.open.iter().chain(&own.env).map(|(key, value)| (key.clone(), value.clone())).collect();
        let mounts = own.mounts.as_ref().unwrap_or(&spec.mounts);
        let home = own.mount_home.or(spec.mount_home).or(Some(false));
        let where_it_runs =
            place_of(spec, site.attempt, (component.image(spec.image.as_ref()), mounts, home), &open);
        let launcher = component.launcher.as_ref();
        program.components.push(Component {
            name: component.name.clone(),
            kind,
            nodes,
            launcher: launcher.map_or_else(|| Arc::clone(&base.launcher), Launcher::of_script),
            argv,
            timeout: component
                .timeout_minutes
                .and_then(|minutes| RunTime::from_seconds(minutes.saturating_mul(60))),
            log: Log::Own,
            lightning_safe: !matches!(where_it_runs, Place::Host),
            place: where_it_runs,
            cuda: cuda(&open)?,
            variables: port
                .iter()
                .map(|port| Ok(("PORT".parse()?, port.clone())))
                .collect::<Result<_, InvalidName>>()?,
            rules: component.service.rules(nodes.first, port.as_ref()),
            port,
            may_fail: component.continue_on_error,
            env_file: env_file(component, site, files)?,
            node_env: own.node_env.clone().into_iter().collect(),
            // The job's are not for HAProxy.
            workdir: own
                .workdir
                .as_ref()
                .or(base.workdir.as_ref().filter(|_| component.balances.is_none()))
                .cloned(),
            setup: base.setup.clone().filter(|_| component.balances.is_none()),
            ..base.clone()
        });
    }
    Ok(program)
}

/// The variables that tell all programs where the services are. Of those of one name the last counts: copies of a service have together
/// the address of the first one, and then that of HAProxy in front of them.
fn addresses(list: &[JobComponent]) -> Result<Vec<(EnvKey, Value)>, InvalidName> {
    let mut variables: Vec<(EnvKey, Value)> = Vec::new();
    let mut urls: BTreeMap<&ComponentName, Vec<Value>> = BTreeMap::new();
    for (component, place) in list.iter().zip(0..).filter(|(component, _)| component.is_service) {
        let nodes = Nodes { first: component.first_node, count: component.nodes };
        let port = port(component, place);
        let url = port.clone().map(|port| Value::Url { node: nodes.first, port: Box::new(port) });
        let all = component.copy_of.as_ref().unwrap_or(&component.name);
        let is_first = !urls.contains_key(all);
        for name in
            [Some(&component.name), component.copy_of.as_ref().filter(|_| is_first)].into_iter().flatten()
        {
            let mut set = |what, value| {
                variables.push((format!("{}_{what}", variable(name)).parse()?, value));
                Ok::<_, InvalidName>(())
            };
            set("HOST", Value::Hosts(Nodes { count: 1, ..nodes }))?;
            set("NODES", Value::Hosts(nodes))?;
            if let Some((port, url)) = port.clone().zip(url.clone()) {
                set("PORT", port)?;
                set("URL", url)?;
            }
        }
        if component.balances.is_none() {
            urls.entry(all).or_default().extend(url);
        }
    }
    for (name, urls) in urls.into_iter().filter(|(_, urls)| !urls.is_empty()) {
        variables.push((format!("{}_URLS", variable(name)).parse()?, Value::List(urls)));
    }
    Ok(variables)
}

/// The port of a service. `place`: its number among the components.
fn port(component: &JobComponent, place: u32) -> Option<Value> {
    Some(match component.service.port? {
        ServicePort::Fixed(port) => Value::Text(port.to_string()),
        ServicePort::Own => Value::service_port(place),
    })
}

/// Stages the variables that only this component has.
fn env_file(
    component: &JobComponent,
    site: &Site<'_>,
    files: &mut Vec<StagedFile>,
) -> Result<Option<RemotePath>, StagingError> {
    if !component.own.has_variables() {
        return Ok(None);
    }
    let path = site.paths.component_env(&component.name)?;
    let secret = site.secrets.components.get(&component.name).into_iter().flatten();
    let secret = secret.map(|(key, value)| (key, value.expose_secret()));
    let open = component.own.env.iter().map(|(key, value)| (key, value.as_str()));
    let bytes = env_text(open.chain(secret))?.into_bytes();
    files.push(StagedFile { path: path.clone(), mode: PRIVATE, bytes });
    Ok(Some(path))
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

/// Where a program with this image and these mounts runs, with or without a home directory. `open`: its plain variables.
fn place_of(
    spec: &JobSpec,
    attempt: &Attempt,
    (image, mounts, home): (Option<&ImageRef>, &[Mount], Option<bool>),
    open: &BTreeMap<EnvKey, String>,
) -> Place {
    let Some(requested) = image else { return Place::Host };
    let image = attempt.launched(requested).unwrap_or(requested);
    let mut mounts: Vec<String> = mounts.iter().map(ToString::to_string).collect();
    // The job's own files are below the base directory, so the container always mounts it.
    let base = attempt.job_dir.as_str();
    if !mounts.iter().any(|mount| base == mount || base.starts_with(&format!("{mount}/"))) {
        mounts.push(base.to_owned());
    }
    let hook_env = open.iter().filter(|(key, value)| is_of_hooks(key, value));
    let hook_env = hook_env.map(|(key, value)| (key.clone(), value.clone())).collect();
    let container = |image| Container { image, mounts, hook_env, home };
    match spec.image_policy.runtime {
        ContainerRuntime::Pyxis => Place::Pyxis(container(image.pyxis())),
        ContainerRuntime::Apptainer => Place::Apptainer(container(image.apptainer())),
    }
}
