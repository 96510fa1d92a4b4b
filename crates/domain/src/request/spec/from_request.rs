//! From a request to a job: every field checked, every default filled in.

use std::num::NonZeroU32;

use serde_json::Value;

use super::{
    DEFAULT_MASTER_PORT, JobSpec, Work,
    cloud::{self, Cloud},
    environment::environment,
    faults::Faults,
    inputs::{inputs, required_paths},
    labels::labels,
    work::work,
};
use crate::{
    cluster::{
        mount::Mount,
        policy::ImagePolicy,
        resources::Resources,
        target::{Cluster, ClusterChoice, choose_cluster},
    },
    request::{
        body::{ContainerRequest, JobRequest},
        cosmos::{self, Asked},
        secret::Secrets,
    },
    violation::Violation,
};

const MOST_RETRIES: u32 = 100;
/// A year.
const MOST_MINUTES: u32 = 365 * 24 * 60;

impl JobSpec {
    /// Validates a whole request against the configured clusters and parts it from its secrets.
    ///
    /// All faults are found in one go, so that a caller mends them in one go.
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
        let image = request.image.as_deref().and_then(|text| faults.parse("/image", text));
        let partitions = match request.backend_details.partition.as_deref() {
            Some(text) => faults.parse("/backend_details/partition", text),
            None => cluster.partitions.clone(),
        };
        let mounts = mounts(request.container.mounts.as_deref(), cluster, &mut faults);
        if request.image.is_none() && request.container.says_something() {
            faults.add(
                "/container",
                "contradiction",
                "says how a container is set up, and there is no image: name one, or leave the container out",
            );
        }
        let image_policy = image_policy(&request.container, cluster.images.policy, &mut faults);
        let resources = resources(&request, cluster, &mut faults);
        let master_port = master_port(request.resources.master_port, &mut faults);
        let max_retries = max_retries(request.retry.max_retries, cluster, &mut faults);
        let use_requeue = request.use_requeue.unwrap_or(cluster.retries.use_requeue);
        let timeout_minutes = timeout_minutes(request.timeout_minutes, &mut faults);
        let inputs = inputs(&request.inputs, &mut faults);
        let (env, secret_env) = environment(&request, &mut faults);
        let Cloud { plain: cloud_plain, secret: cloud_metadata, secret_keys: cloud_secret_keys } =
            cloud::part(std::mem::take(&mut request.cloud_metadata));
        let image_named = request.image.is_some();
        let asked = Asked {
            nodes: request.resources.num_nodes,
            gpus: request.resources.num_gpus.or(request.num_gpu),
            gpus_per_node: request.resources.gpus_per_node,
        };
        let mut work = work(request, image_named, &mut faults);
        let required_paths = required_paths(&inputs, &mut work, &mounts, cluster, &mut faults);
        let resources = fitted(resources, work.as_ref(), asked, &mut faults);

        match (work, resources) {
            (Some(work), Some(resources)) if faults.0.is_empty() => {
                let spec = Self {
                    name,
                    labels,
                    work,
                    image,
                    image_policy,
                    env,
                    secret_env: secret_env.keys().cloned().collect(),
                    cloud_plain,
                    cloud_secret_keys,
                    inputs,
                    required_paths,
                    resources,
                    master_port,
                    max_retries,
                    use_requeue,
                    timeout_minutes,
                    mounts,
                    partitions,
                    trace: None,
                };
                Ok((spec, Secrets { env: secret_env, cloud_metadata }, cluster))
            }
            _ => Err(faults.0),
        }
    }
}

fn cluster_of<'c>(request: &JobRequest, clusters: &'c [Cluster]) -> Result<&'c Cluster, Violation> {
    // TAO sends a list; its older services sent the comma list of SLURM_HOSTNAME.
    let hosts: Vec<String> = match request.cloud_metadata.get("slurm_hostname") {
        Some(Value::Array(hosts)) => hosts.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        Some(Value::String(hosts)) => hosts.split(',').map(|host| host.trim().to_owned()).collect(),
        _ => Vec::new(),
    };
    let choice = ClusterChoice {
        cluster_name: request.backend_details.cluster_name.as_deref(),
        slurm_user: request.cloud_metadata.get("slurm_user").and_then(Value::as_str),
        slurm_hostnames: &hosts,
    };
    choose_cluster(clusters, choice)
}

fn mounts(asked: Option<&[String]>, cluster: &Cluster, faults: &mut Faults) -> Vec<Mount> {
    let Some(asked) = asked else { return cluster.mounts.clone() };
    let parse = |(at, text): (usize, &String)| faults.parse(&format!("/container/mounts/{at}"), text);
    asked.iter().enumerate().filter_map(parse).collect()
}

fn resources(request: &JobRequest, cluster: &Cluster, faults: &mut Faults) -> Option<Resources> {
    let mut asked = request.resources.clone();
    match (request.num_gpu, asked.num_gpus) {
        (Some(one), Some(other)) if one != other => faults.add(
            "/num_gpu",
            "contradiction",
            "says another number than resources.num_gpus, of which it is another spelling; give one of them",
        ),
        (Some(gpus), _) => asked.num_gpus = Some(gpus),
        (None, _) => {}
    }
    // How long a job may run is for its partitions to say: `limits::check`.
    Resources::from_request(&asked, &cluster.resources, f64::INFINITY)
        .map_err(|wrong| faults.0.extend(wrong))
        .ok()
}

/// A training of several roles gets the nodes that its specification asks for.
fn fitted(
    resources: Option<Resources>,
    work: Option<&Work>,
    asked: Asked,
    faults: &mut Faults,
) -> Option<Resources> {
    match work {
        Some(Work::Tao { network_arch, action, specs })
            if cosmos::is_training(network_arch.as_str(), action.as_str()) =>
        {
            cosmos::fit(specs, resources?, asked).map_err(|wrong| faults.0.extend(wrong)).ok()
        }
        Some(Work::Tao { .. } | Work::Command { .. }) | None => resources,
    }
}

fn image_policy(asked: &ContainerRequest, default: ImagePolicy, faults: &mut Faults) -> ImagePolicy {
    let use_sqsh = asked.use_sqsh.unwrap_or(default.use_sqsh || asked.require_sqsh == Some(true));
    if asked.use_sqsh == Some(false) && asked.force_reconvert_latest == Some(true) {
        faults.add(
            "/container/force_reconvert_latest",
            "contradiction",
            "asks to convert what use_sqsh leaves unconverted; leave one of them out",
        );
    }
    if asked.use_sqsh == Some(false) && asked.require_sqsh == Some(true) {
        faults.add(
            "/container/require_sqsh",
            "contradiction",
            "requires what use_sqsh switches off; leave one of them out",
        );
    }
    ImagePolicy {
        use_sqsh,
        // A job that wants no converted image has nothing that could be required.
        require_sqsh: asked.require_sqsh.unwrap_or(default.require_sqsh) && use_sqsh,
        force_reconvert_latest: asked.force_reconvert_latest.unwrap_or(default.force_reconvert_latest),
    }
}

fn master_port(asked: Option<u32>, faults: &mut Faults) -> u16 {
    let port = asked.unwrap_or(u32::from(DEFAULT_MASTER_PORT));
    match u16::try_from(port) {
        Ok(port) if port >= 1024 => port,
        _ => {
            faults.add("/resources/master_port", "out_of_range", "must be from 1024 to 65535");
            DEFAULT_MASTER_PORT
        }
    }
}

fn max_retries(asked: Option<u32>, cluster: &Cluster, faults: &mut Faults) -> u32 {
    let retries = asked.unwrap_or(cluster.retries.max_retries);
    if asked.is_some_and(|asked| asked > MOST_RETRIES) {
        faults.add("/retry/max_retries", "out_of_range", format_args!("must be from 0 to {MOST_RETRIES}"));
    }
    retries
}

fn timeout_minutes(asked: Option<u32>, faults: &mut Faults) -> Option<NonZeroU32> {
    let minutes = asked?;
    let within = NonZeroU32::new(minutes).filter(|minutes| minutes.get() <= MOST_MINUTES);
    if within.is_none() {
        faults.add("/timeout_minutes", "out_of_range", format_args!("must be from 1 to {MOST_MINUTES}"));
    }
    within
}
