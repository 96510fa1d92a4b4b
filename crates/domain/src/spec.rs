//! What a job is, once its request is believed.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    str::FromStr,
};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::{DeserializeFromStr, SerializeDisplay};
use slurm::{EnvKey, PartitionList, RemotePath};

use crate::{
    cluster::{Cluster, ClusterChoice, choose_cluster},
    image::ImageRef,
    request::JobRequest,
    resources::Resources,
    secret::{Secrets, is_secret_key},
    text::{Label, Word},
    uri,
    violation::Violation,
};

/// A validated job. Holds no secret.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct JobSpec {
    pub name: Option<Label>,
    pub labels: BTreeMap<Label, String>,
    pub work: Work,
    pub image: Option<ImageRef>,
    pub env: BTreeMap<EnvKey, String>,
    /// The names of the secret variables; their values are sealed apart.
    pub secret_env: BTreeSet<EnvKey>,
    pub resources: Resources,
    pub mounts: Vec<Mount>,
    pub partitions: Option<PartitionList>,
    /// How many attempts that the infrastructure failed are made again.
    #[serde(default = "packaged_retries")]
    pub max_retries: u32,
}

/// TAO's own budget.
const fn packaged_retries() -> u32 {
    10
}

/// What is run.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Work {
    /// The TAO container's own entry point.
    Tao { network_arch: Word, action: Word, specs: Value },
    /// A shell text, run by `bash -euo pipefail`.
    Command { text: String },
}

/// A bind mount of the container: `/source`, `/source:/inside` or `/source:/inside:ro`.
#[derive(Debug, Clone, PartialEq, Eq, SerializeDisplay, DeserializeFromStr)]
pub struct Mount {
    source: RemotePath,
    inside: Option<RemotePath>,
    read_only: bool,
}

/// A text that is no mount.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("must be `/source`, `/source:/inside` or `/source:/inside:ro`, with absolute paths and no comma")]
pub struct InvalidMount;

impl FromStr for Mount {
    type Err = InvalidMount;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let path = |text: &str| text.parse::<RemotePath>().map_err(|_| InvalidMount);
        // Pyxis parts its mounts by commas, so a path with one cannot be said to it.
        if text.contains(',') {
            return Err(InvalidMount);
        }
        let parts: Vec<&str> = text.split(':').collect();
        match parts[..] {
            [source] => Ok(Self { source: path(source)?, inside: None, read_only: false }),
            [source, inside] => {
                Ok(Self { source: path(source)?, inside: Some(path(inside)?), read_only: false })
            }
            [source, inside, "ro"] => {
                Ok(Self { source: path(source)?, inside: Some(path(inside)?), read_only: true })
            }
            _ => Err(InvalidMount),
        }
    }
}

impl fmt::Display for Mount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.source)?;
        if let Some(inside) = &self.inside {
            write!(f, ":{inside}")?;
        }
        if self.read_only { f.write_str(":ro") } else { Ok(()) }
    }
}

/// TAO's own bound on a name or value is 500 characters; ours leaves room for long tokens and lists.
pub(crate) const MAX_ENV_VALUE: usize = 32 * 1024;
const MAX_COMMAND: usize = 256 * 1024;
const MAX_LABELS: usize = 64;
const MAX_ENV: usize = 1000;

/// Everything that is wrong so far, and the means to note one more fault.
#[derive(Default)]
struct Faults(Vec<Violation>);

impl Faults {
    fn add(&mut self, pointer: impl Into<String>, code: &'static str, detail: impl fmt::Display) {
        self.0.push(Violation::new(pointer, code, detail));
    }

    fn parse<T: FromStr<Err: fmt::Display>>(&mut self, pointer: &str, text: &str) -> Option<T> {
        text.parse().map_err(|error| self.add(pointer, "invalid", error)).ok()
    }
}

/// RFC 6901 §3: `~` and `/` in a key are escaped.
fn pointer(parent: &str, key: &str) -> String {
    format!("{parent}/{}", key.replace('~', "~0").replace('/', "~1"))
}

impl JobSpec {
    /// Validates a whole request against the configured clusters and parts it from its secrets.
    ///
    /// All faults are found in one go, so that a caller mends them in one go.
    pub fn from_request(
        request: JobRequest,
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
        let resources = resources(&request, cluster, &mut faults);
        let (env, secret_env) = environment(&request, &mut faults);
        let image_named = request.image.is_some();
        let cloud_metadata = request.cloud_metadata.clone();
        let work = work(request, image_named, &mut faults);

        match (work, resources) {
            (Some(work), Some(resources)) if faults.0.is_empty() => {
                let spec = Self {
                    name,
                    labels,
                    work,
                    image,
                    env,
                    secret_env: secret_env.keys().cloned().collect(),
                    resources,
                    mounts,
                    partitions,
                    max_retries: packaged_retries(),
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

fn labels(asked: &BTreeMap<String, String>, faults: &mut Faults) -> BTreeMap<Label, String> {
    if asked.len() > MAX_LABELS {
        faults.add("/labels", "too_many", format_args!("at most {MAX_LABELS} labels"));
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
    Resources::from_request(&asked, &cluster.resources, cluster.max_time_hours)
        .map_err(|wrong| faults.0.extend(wrong))
        .ok()
}

type Environment = (BTreeMap<EnvKey, String>, BTreeMap<EnvKey, secrecy::SecretString>);

fn environment(request: &JobRequest, faults: &mut Faults) -> Environment {
    let (mut env, mut secret) = (BTreeMap::new(), BTreeMap::new());
    if request.docker_env_vars.len() + request.secret_env_vars.len() > MAX_ENV {
        faults.add("/docker_env_vars", "too_many", format_args!("at most {MAX_ENV} variables"));
        return (env, secret);
    }
    let open = request.docker_env_vars.iter().map(|pair| ("/docker_env_vars", false, pair));
    let sealed = request.secret_env_vars.iter().map(|pair| ("/secret_env_vars", true, pair));
    for (parent, sealed, (key, value)) in open.chain(sealed) {
        let at = pointer(parent, key);
        if value.len() > MAX_ENV_VALUE || value.contains('\0') {
            faults.add(at, "invalid", format_args!("must be at most {MAX_ENV_VALUE} bytes without NUL"));
            continue;
        }
        let Some(key) = faults.parse::<EnvKey>(&at, key) else { continue };
        // Slurm and the batch script rely on theirs; a job that redefines them would be lied about.
        if key.as_str().starts_with("SLURM_") || key.as_str() == "BASH_ENV" {
            faults.add(at, "reserved", "is reserved: SLURM_* and BASH_ENV cannot be set by a job");
        } else if secret.contains_key(&key) || env.contains_key(&key) {
            faults.add(at, "contradiction", "is in docker_env_vars as well; give it once");
        } else if sealed || is_secret_key(&key) {
            secret.insert(key, value.clone().into());
        } else {
            env.insert(key, uri::path_of(value).unwrap_or_else(|| value.clone()));
        }
    }
    (env, secret)
}

fn work(request: JobRequest, image_named: bool, faults: &mut Faults) -> Option<Work> {
    match (request.network_arch, request.action, request.command) {
        (Some(network_arch), Some(action), None) => {
            if !image_named {
                faults.add("/image", "required", "a TAO job needs the container image to run in");
            }
            let mut specs = Value::Object(request.specs.unwrap_or_default());
            uri::localise(&mut specs);
            let network_arch = faults.parse("/network_arch", &network_arch);
            let action = faults.parse("/action", &action);
            Some(Work::Tao { network_arch: network_arch?, action: action?, specs })
        }
        (None, None, Some(text)) => {
            if request.specs.is_some() {
                faults.add("/specs", "contradiction", "belongs to a TAO job; a command does not read it");
            }
            if text.trim().is_empty() || text.len() > MAX_COMMAND || text.contains('\0') {
                faults.add(
                    "/command",
                    "invalid",
                    format_args!("must be 1 to {MAX_COMMAND} bytes without NUL"),
                );
            }
            Some(Work::Command { text })
        }
        (Some(_), None, None) => {
            faults.add(
                "/action",
                "required",
                "network_arch says a TAO job, which needs an action such as `train`",
            );
            None
        }
        (None, Some(_), None) => {
            faults.add("/network_arch", "required", "action says a TAO job, which needs a network_arch");
            None
        }
        (None, None, None) => {
            faults.add("", "required", "say what to run: network_arch and action, or command");
            None
        }
        (_, _, Some(_)) => {
            faults.add("/command", "contradiction", "give network_arch and action, or command, not both");
            None
        }
    }
}

#[cfg(test)]
mod tests;
