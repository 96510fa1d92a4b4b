//! Validates a request: it checks every field and fills in every default.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroU32,
};

use serde_json::Value;
use slurm::{Gres, RemotePath, SubmitOptions};

use super::{
    JobSpec, Work,
    inputs::{inputs, required_paths},
};
use crate::{
    cluster::{
        mount::Mount,
        resources::Resources,
        target::{Cluster, choose_cluster},
    },
    image::ImageRef,
    request::{
        array::JobArray,
        body::JobRequest,
        component_body::ComponentRequest,
        components::{components, place},
        container::{image, image_policy, mounts},
        cosmos::{self, Requested},
        environment::{Cloud, environment},
        idle,
        needs::needs,
        options::{contradictions, leaves_time, moments, options},
        program::ProgramSettings,
        progress::ProgressFile,
        restart::Restart,
        results::{check_logs, result_rules},
        secret::Secrets,
        text::{Label, is_blank},
    },
    violation::{Faults, Violation, pointer},
};

const MAX_LABELS: usize = 64;
const MAX_COMMAND: usize = 256 * 1024;
const MOST_RETRIES: u32 = 100;
/// A year.
const MOST_MINUTES: u32 = 365 * 24 * 60;

impl JobSpec {
    /// Validates a whole request against the configured clusters, and separates its secrets.
    ///
    /// It reports all faults at once, so that the caller can fix them at once.
    #[expect(clippy::too_many_lines, reason = "one field after another")]
    pub fn from_request(
        mut request: JobRequest,
        clusters: &[Cluster],
    ) -> Result<(Self, Secrets, &Cluster), Vec<Violation>> {
        let mut faults = Faults::default();
        let cluster = match cluster_of(&request, clusters) {
            Ok(cluster) => cluster,
            Err(fault) => return Err(vec![fault]),
        };

        let name = request.name.as_deref().and_then(|text| faults.parse("/name", text));
        let labels = labels(&request.labels, &mut faults);
        let image = request.image.as_deref().and_then(|text| image(text, "/image", &mut faults));
        let partitions = match request.backend_details.partition.as_deref() {
            Some(text) => faults.parse("/backend_details/partition", text),
            None => cluster.partitions.clone(),
        };
        let mounts = mounts(request.container.mounts.as_deref(), cluster, &mut faults);
        let names_image = |part: &ComponentRequest| part.image.is_some();
        let has_image =
            request.image.is_some() || request.services.iter().chain(&request.steps).any(names_image);
        if !has_image && request.container.is_given() {
            faults.add(
                "/container",
                "contradiction",
                "configures a container, but there is no image: name one, or leave the container out",
            );
        }
        let image_policy = image_policy(&request.container, cluster.images.policy, &mut faults);
        let own = options(&request, &mut faults);
        let (begin, deadline) = moments(&request, &mut faults);
        let resources = resources(&request, cluster, &own, &mut faults);
        let master_port = master_port(request.resources.master_port, &mut faults);
        let restart =
            Restart::from_request(request.restart.take(), &mut request.retry.max_retries, &mut faults);
        let max_retries = max_retries(request.retry.max_retries, cluster, &mut faults);
        if request.use_requeue == Some(true) && restart.max_total_seconds.is_some() {
            let detail = "contradicts restart.max_total_hours: Slurm gives a job that it requeues its whole time limit again; leave it out";
            faults.add("/use_requeue", "contradiction", detail);
        }
        let use_requeue =
            request.use_requeue.unwrap_or(cluster.retries.use_requeue && restart.leaves_requeues_to_slurm());
        let timeout_minutes = timeout_minutes(request.timeout_minutes, &mut faults);
        let idle_policy =
            idle::policy(request.idle_policy.as_ref(), cluster.batch.idle.as_ref(), &labels, &mut faults);
        let inputs = inputs(&request.inputs, &mut faults);
        let open = ("/docker_env_vars".to_owned(), &request.docker_env_vars);
        let sealed = ("/secret_env_vars".to_owned(), &request.secret_env_vars);
        let (env, secret_env) = environment(&open, &sealed, &mut faults);
        let mut secrets = Secrets { env: secret_env, ..Secrets::default() };
        let variables = env.keys().chain(secrets.env.keys()).cloned().collect();
        let home = request.id.and_then(|id| cluster.base_dir.join(&format!("results/{id}")).ok());
        let results = result_rules(std::mem::take(&mut request.results), home.as_ref(), &mut faults);
        let progress = request.progress.as_ref();
        let progress =
            progress.and_then(|asked| ProgressFile::from_request(asked, home.as_ref(), &mut faults));
        let needs = needs(&request.needs, request.id, request.array.is_some(), &mut faults);
        let array = request.array.take();
        let array = array.and_then(|array| JobArray::from_request(array, &variables, &mut faults));
        let cloud = Cloud::split(std::mem::take(&mut request.cloud_metadata));
        secrets.cloud_metadata = cloud.secret;
        let mut program = ProgramSettings::from_request(&request, &mut faults);
        let requested = Requested {
            nodes: request.resources.num_nodes,
            gpus: request.resources.num_gpus.or(request.num_gpu),
            gpus_per_node: request.resources.gpus_per_node,
        };
        let mut work = work(&request, &mut secrets, &mut faults);
        let of_components = work.iter_mut().flat_map(|work| match work {
            Work::Components { list } => list.as_mut_slice(),
            Work::Tao { .. } | Work::Command { .. } => &mut [],
        });
        let launchers = of_components.filter_map(|component| component.launcher.as_mut());
        launchers.chain(&mut program.launcher).for_each(|launcher| launcher.use_defaults(&cluster.submit));
        if array.is_some() && matches!(work, Some(Work::Tao { .. })) {
            let detail = "goes with a command or with steps: the specification of a TAO action names one directory for its results; submit \
                          one job for each task";
            faults.add("/array", "unsupported", detail);
        }
        restart.check(array.is_some(), matches!(work, Some(Work::Tao { .. })), &mut faults);
        let programs = work.as_ref().and_then(|work| match work {
            Work::Components { list } => Some(list.as_slice()),
            Work::Tao { .. } | Work::Command { .. } => None,
        });
        check_logs(&results, programs, &mut faults);
        let of_components = programs.into_iter().flatten().flat_map(|component| component.own.required());
        // The service makes what is below its own directory.
        let mounted = mounts.iter().filter(|_| request.container.mounts.is_some()).map(Mount::source);
        let needed = inputs
            .iter()
            .chain(image.as_ref().and_then(ImageRef::file))
            .chain(mounted.filter(|path| !path.is_within(&cluster.base_dir)));
        let is_other = |path: &&RemotePath| !path.is_within(&cluster.base_dir);
        let needed: BTreeSet<_> = needed.chain(of_components.filter(is_other)).cloned().collect();
        let required_paths = required_paths(needed, &mut work, &mounts, cluster, &mut faults);
        let resources = fitted(resources, work.as_ref(), requested, &mut faults);
        let exclusive = request.resources.exclusive.or(cluster.submit.exclusive) == Some(true);
        let resources =
            resources.map(|fitted| Resources { exclusive: fitted.exclusive || exclusive, ..fitted });
        let options = completed(&own, cluster);
        if let Some(resources) = &resources {
            contradictions(&own, &options, (resources.nodes, resources.gpus_per_node), &mut faults);
            leaves_time(begin, deadline, resources.time, &mut faults);
            one_task(resources, work.as_ref(), &mut faults);
            if let Some(Work::Components { list }) = &mut work {
                place(list, resources.nodes, &mut faults);
            }
            let is_tao = matches!(work, Some(Work::Tao { .. }));
            program.check(is_tao, resources, &mut faults);
        }

        match (work, resources) {
            (Some(work), Some(resources)) if faults.0.is_empty() => {
                let differs = |gpus: &u32| *gpus != resources.total_gpus();
                let spec = Self {
                    name,
                    labels,
                    work,
                    array,
                    needs,
                    pipeline: None,
                    results,
                    progress,
                    image,
                    image_policy,
                    env,
                    secret_env: secrets.env.keys().cloned().collect(),
                    cloud_plain: cloud.plain,
                    cloud_secret_keys: cloud.secret_keys,
                    inputs,
                    required_paths,
                    resources,
                    requested_gpus: requested
                        .gpus
                        .filter(|gpus| requested.gpus_per_node.is_none() || differs(gpus)),
                    master_port,
                    program,
                    max_retries,
                    restart,
                    use_requeue,
                    timeout_minutes,
                    idle_policy,
                    mounts,
                    mount_home: request.container.mount_home,
                    partitions,
                    options,
                    begin,
                    deadline,
                    notes: Vec::new(),
                    trace: None,
                };
                Ok((spec, secrets, cluster))
            }
            _ => Err(faults.0),
        }
    }
}

fn cluster_of<'c>(request: &JobRequest, clusters: &'c [Cluster]) -> Result<&'c Cluster, Violation> {
    // TAO sends a list; its older services sent the comma-separated list of SLURM_HOSTNAME.
    let hosts: Vec<String> = match request.cloud_metadata.get("slurm_hostname") {
        Some(Value::Array(hosts)) => hosts.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        Some(Value::String(hosts)) => hosts.split(',').map(|host| host.trim().to_owned()).collect(),
        _ => Vec::new(),
    };
    let name = request.backend_details.cluster_name.as_deref();
    let user = request.cloud_metadata.get("slurm_user").and_then(Value::as_str);
    choose_cluster(clusters, name, user, &hosts)
}

fn completed(own: &SubmitOptions, cluster: &Cluster) -> SubmitOptions {
    let options = own.clone().or(&cluster.submit.options);
    SubmitOptions { account: options.account.or_else(|| cluster.account.clone()), ..options }
}

/// TAO's entry point starts the processes of a node itself.
fn one_task(resources: &Resources, work: Option<&Work>, faults: &mut Faults) {
    if matches!(work, Some(Work::Tao { .. })) && resources.tasks_per_node > 1 {
        let detail = "must be 1: the container of a TAO job starts the processes of its node itself";
        faults.add("/resources/tasks_per_node", "contradiction", detail);
    }
}

fn resources(
    request: &JobRequest,
    cluster: &Cluster,
    own: &SubmitOptions,
    faults: &mut Faults,
) -> Option<Resources> {
    let mut asked = request.resources.clone();
    match (request.num_gpu, asked.num_gpus) {
        (Some(one), Some(other)) if one != other => faults.add(
            "/num_gpu",
            "contradiction",
            "contradicts resources.num_gpus, which is another name for it; give one of them",
        ),
        (Some(gpus), _) => asked.num_gpus = Some(gpus),
        (None, _) => {}
    }
    let instead: Vec<&Gres> = own.gres.iter().filter(|gres| gres.is_gpu() || gres.is_shared_gpu()).collect();
    if let Some(gres) = instead.first() {
        if asked.num_gpus.or(asked.gpus_per_node).is_some_and(|gpus| gpus > 0) || own.gpu_type.is_some() {
            let detail = format_args!(
                "has `{}`, which takes the place of num_gpus, gpus_per_node and gpu_type; leave these out",
                gres.name
            );
            faults.add("/resources/gres", "contradiction", detail);
        }
        (asked.num_gpus, asked.gpus_per_node) = (None, Some(0));
    }
    // `limits::check` checks the time against the partitions.
    let resources = Resources::from_request(&asked, &cluster.resources, f64::INFINITY)
        .map_err(|wrong| faults.0.extend(wrong))
        .ok()?;
    let listed = instead.iter().filter(|gres| gres.is_gpu()).map(|gres| gres.count);
    let gpus_per_node =
        if instead.is_empty() { resources.gpus_per_node } else { listed.fold(0, u32::saturating_add) };
    let exclusive = asked.exclusive.or(cluster.submit.exclusive).unwrap_or(resources.exclusive);
    Some(Resources { gpus_per_node, exclusive, ..resources })
}

/// A training of several roles gets the nodes that its specification defines.
fn fitted(
    resources: Option<Resources>,
    work: Option<&Work>,
    requested: Requested,
    faults: &mut Faults,
) -> Option<Resources> {
    match work {
        Some(Work::Tao { network_arch, action, specs })
            if cosmos::is_training(network_arch.as_str(), action.as_str()) =>
        {
            cosmos::fit(specs, resources?, requested).map_err(|wrong| faults.0.extend(wrong)).ok()
        }
        Some(Work::Tao { .. } | Work::Command { .. } | Work::Components { .. }) | None => resources,
    }
}

fn master_port(asked: Option<u32>, faults: &mut Faults) -> Option<u16> {
    let port = faults.within("/resources/master_port", asked?, 1024..=u32::from(u16::MAX));
    u16::try_from(port).ok()
}

fn max_retries(asked: Option<u32>, cluster: &Cluster, faults: &mut Faults) -> u32 {
    asked.map_or(cluster.retries.max_retries, |asked| {
        faults.within("/retry/max_retries", asked, 0..=MOST_RETRIES)
    })
}

fn timeout_minutes(asked: Option<u32>, faults: &mut Faults) -> Option<NonZeroU32> {
    NonZeroU32::new(faults.within("/timeout_minutes", asked?, 1..=MOST_MINUTES))
}

pub(in crate::request) fn labels(
    asked: &BTreeMap<String, String>,
    faults: &mut Faults,
) -> BTreeMap<Label, String> {
    if asked.len() > MAX_LABELS {
        faults.add("/labels", "too_many", format_args!("must have at most {MAX_LABELS} labels"));
    }
    let mut labels = BTreeMap::new();
    for (key, value) in asked.iter().take(MAX_LABELS) {
        let at = pointer("/labels", key);
        if value.chars().count() > 500 || value.contains('\0') {
            faults.add(at.clone(), "invalid", "must be at most 500 characters without NUL");
        }
        if let Some(key) = faults.parse(&at, key) {
            labels.insert(key, value.clone());
        }
    }
    labels
}

fn work(request: &JobRequest, secrets: &mut Secrets, faults: &mut Faults) -> Option<Work> {
    if !request.steps.is_empty() || !request.services.is_empty() {
        if [&request.network_arch, &request.action, &request.command].into_iter().any(Option::is_some)
            || request.specs.is_some()
        {
            let detail =
                "goes with steps, and not with network_arch, action, specs or command; give one form of work";
            let at = if request.steps.is_empty() { "/services" } else { "/steps" };
            faults.add(at, "contradiction", detail);
        }
        return Some(Work::Components {
            list: components(&request.services, &request.steps, secrets, faults),
        });
    }
    let (at, code, detail) = match (&request.network_arch, &request.action, &request.command) {
        (Some(network_arch), Some(action), None) => {
            if request.image.is_none() {
                faults.add("/image", "required", "is required: a TAO job runs in a container image");
            }
            let specs = Value::Object(request.specs.clone().unwrap_or_default());
            let network_arch = faults.parse("/network_arch", network_arch);
            let action = faults.parse("/action", action);
            return Some(Work::Tao { network_arch: network_arch?, action: action?, specs });
        }
        (None, None, Some(text)) => {
            if request.specs.is_some() {
                faults.add("/specs", "contradiction", "is only for TAO jobs; a command does not read it");
            }
            if is_blank(text) || text.len() > MAX_COMMAND || text.contains('\0') {
                faults.add(
                    "/command",
                    "invalid",
                    format_args!("must be 1 to {MAX_COMMAND} bytes without NUL"),
                );
            }
            return Some(Work::Command { text: text.clone() });
        }
        (Some(_), None, None) => (
            "/action",
            "required",
            "is required with network_arch: a TAO job needs an action such as `train`",
        ),
        (None, Some(_), None) => {
            ("/network_arch", "required", "is required with action: a TAO job needs a network_arch")
        }
        (None, None, None) => {
            ("", "required", "must name the work: network_arch and action, or command, or steps")
        }
        (_, _, Some(_)) => {
            ("/command", "contradiction", "contradicts network_arch and action; give either them or command")
        }
    };
    faults.add(at, code, detail);
    None
}
