//! The configuration: defaults, then the file, then the environment, checked as a whole.
//!
//! The environment is read here and nowhere else. To add a key: a field with its default in `settings`, a line
//! in `sources::TAKES`, its place in `deploy/config.example.toml`, and, if it has rules, a check below.

mod authorities;
mod cluster;
mod cluster_policies;
mod cluster_settings;
mod database_url;
mod environment;
mod faults;
mod jwt;
mod kept_cluster;
mod key_file;
mod problems;
mod render;
mod settings;
mod sources;
mod tao;
mod telemetry;
mod warnings;
mod webhooks;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use ::webhooks::Authorities;
pub(crate) use cluster::ClusterConfig;
use domain::{ContainerImages, Networks};
pub(crate) use environment::Environment;
use faults::Faults;
pub(crate) use jwt::{JwtConfig, KeyPlace};
pub(crate) use kept_cluster::{KeptRules, key_fault};
pub(crate) use key_file::{existing_key, sealing_key};
use problems::Problems;
pub(crate) use render::render;
use secrecy::SecretString;
pub(crate) use settings::{AuthMode, Log, LogFormat, Server, Settings};
pub(crate) use warnings::warnings;

/// The file that is read when none is named.
const USUAL_FILE: &str = "tao-slurm.toml";

/// So long at least a job stays after its end.
const SHORTEST_KEEP: Duration = Duration::from_hours(1);

/// A configuration without faults.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    /// Every key with the value in use.
    pub(crate) settings: Settings,
    pub(crate) clusters: Vec<ClusterConfig>,
    pub(crate) container_images: ContainerImages,
    pub(crate) webhook_networks: Networks,
    /// Who vouches for the certificates of webhooks.
    pub(crate) webhook_authorities: Authorities,
    /// Signed tokens, when they are accepted.
    pub(crate) jwt: Option<JwtConfig>,
    /// What the collector of traces wants to see.
    pub(crate) otlp_headers: Vec<(String, SecretString)>,
    /// The file it was read from.
    pub(crate) file: Option<PathBuf>,
}

/// What the command line says about the configuration.
#[derive(Debug, Clone, Default)]
pub(crate) struct Overrides {
    pub(crate) file: Option<PathBuf>,
    pub(crate) bind: Option<std::net::SocketAddr>,
    pub(crate) worker_bind: Option<std::net::SocketAddr>,
}

/// Reads and checks the whole configuration.
pub(crate) fn load(overrides: &Overrides, environment: &Environment) -> Result<Config, Problems> {
    let usual = || Some(PathBuf::from(USUAL_FILE)).filter(|path| path.exists());
    let file = overrides.file.clone().or_else(usual);
    let mut settings = sources::read(file.as_deref(), environment)?;
    if let Some(bind) = overrides.bind {
        settings.server.bind = bind;
    }
    settings.worker.bind = overrides.worker_bind.or(settings.worker.bind);
    let mut problems = Problems::default();
    places(&mut settings, environment, &mut problems);
    check_sections(&settings, &mut problems);
    let written = std::mem::take(&mut settings.clusters);
    let written = cluster_settings::with_environment(written, environment, &mut problems);
    settings.clusters =
        written.into_iter().map(|cluster| cluster.complete(environment, &settings.worker)).collect();
    let clusters: Vec<ClusterConfig> = settings
        .clusters
        .iter()
        .enumerate()
        .filter_map(|(index, cluster)| {
            let mut faults = Faults::default();
            let checked = cluster::check(cluster, &mut faults);
            let label = cluster.name.clone().unwrap_or_else(|| format!("[{}]", index + 1));
            faults.tell(&label, &mut problems);
            checked
        })
        .collect();
    names_differ(&clusters, &mut problems);
    let container_images = tao::images(&settings.tao, &mut problems);
    let webhook_networks = webhooks::networks(&settings.webhooks, &mut problems);
    let webhook_authorities =
        authorities::read("webhooks.ca_file", &mut settings.webhooks.ca_file, environment, &mut problems);
    let jwt = settings.auth.jwt.as_mut().and_then(|jwt| jwt::check(jwt, environment, &mut problems));
    let otlp_headers = telemetry::headers(&settings.telemetry, environment, &mut problems);
    problems.or_else(Config {
        settings,
        clusters,
        container_images,
        webhook_networks,
        webhook_authorities,
        jwt,
        otlp_headers,
        file,
    })
}

/// Settles where things lie on this machine.
fn places(settings: &mut Settings, environment: &Environment, problems: &mut Problems) {
    let named = Some(&settings.data_dir).filter(|path| !path.as_os_str().is_empty());
    let dir = named.map(|path| environment.expand(path.clone())).or_else(|| environment.default_data_dir());
    match dir.map(std::path::absolute) {
        Some(Ok(dir)) => settings.data_dir = dir,
        _ => problems.add(
            "data_dir (TAO_SLURM_DATA_DIR)",
            "cannot be guessed, because HOME is not set; set it to a directory of this service's own",
        ),
    }
    settings.ssh.key_directory = if settings.ssh.key_directory.as_os_str().is_empty() {
        settings.data_dir.join("ssh-keys")
    } else {
        environment.expand(settings.ssh.key_directory.clone())
    };
    settings.secrets.key_file = if settings.secrets.key_file.as_os_str().is_empty() {
        settings.data_dir.join("secrets.key")
    } else {
        environment.expand(settings.secrets.key_file.clone())
    };
}

fn check_sections(settings: &Settings, problems: &mut Problems) {
    if settings.auth.mode == AuthMode::Disabled && !settings.server.bind.ip().is_loopback() {
        problems.add(
            "auth.mode (TAO_SLURM_AUTH)",
            format_args!(
                "is \"disabled\" while server.bind is {}: anybody who reaches it could run jobs as your cluster \
                 user; bind to a loopback address, such as 127.0.0.1:8080, or set auth.mode to \"tokens\"",
                settings.server.bind
            ),
        );
    }
    if let Some(url) = &settings.database.url {
        database_url::check(url, problems);
    }
    let positive = |problems: &mut Problems, key: &str, is_zero: bool, example: &str| {
        if is_zero {
            problems.add(key, format_args!("must be above zero; write for example {example}"));
        }
    };
    let (server, worker) = (&settings.server, &settings.worker);
    positive(problems, "server.body_limit_bytes", server.body_limit_bytes == 0, "10485760");
    positive(problems, "server.header_timeout", server.header_timeout.is_zero(), "\"30s\"");
    positive(problems, "server.body_timeout", server.body_timeout.is_zero(), "\"30s\"");
    positive(problems, "server.request_timeout", server.request_timeout.is_zero(), "\"60s\"");
    positive(problems, "server.max_connections", server.max_connections == 0, "4096");
    positive(problems, "server.rate_burst", server.rate_limit > 0 && server.rate_burst == 0, "2000");
    for origin in &server.cors_origins {
        if !api::is_origin(origin) {
            problems.add(
                "server.cors_origins",
                format_args!("has {origin:?}, which is no origin; write for example \"https://dashboard.example.org\", \
                    or \"*\" for all"),
            );
        }
    }
    if !(1024..=1024 * 1024).contains(&server.header_limit_bytes) {
        problems.add("server.header_limit_bytes", "must be from 1024 to 1048576; write for example 32768");
    }
    positive(problems, "database.max_connections", settings.database.max_connections == 0, "16");
    if settings.database.keep_ended_jobs.is_some_and(|keep| keep < SHORTEST_KEEP) {
        problems.add(
            "database.keep_ended_jobs (TAO_SLURM_KEEP_ENDED_JOBS)",
            "is less than 1h, in which callers may not have seen that their jobs have ended; write for example \"90d\", or \
             nothing to keep them for ever",
        );
    }
    positive(problems, "worker.batch_size", worker.batch_size == 0, "128");
    if worker.partitions_every < Duration::from_secs(1) {
        problems.add(
            "worker.partitions_every",
            "is less than 1s, which a scheduler will not thank us for; write for example \"5m\"",
        );
    }
    if worker.lease < Duration::from_secs(10) {
        problems.add("worker.lease", "is shorter than a remote command may take; write at least \"10s\"");
    }
    if let Err(error) = tracing_subscriber::EnvFilter::builder().parse(&settings.log.filter) {
        problems.add("log.filter (TAO_SLURM_LOG)", format_args!("{error}; write for example \"info\""));
    }
}

fn names_differ(clusters: &[ClusterConfig], problems: &mut Problems) {
    for (index, one) in clusters.iter().enumerate() {
        if clusters[..index].iter().any(|other| other.cluster.name == one.cluster.name) {
            problems.add(
                format_args!("clusters.{}.name", one.cluster.name),
                "stands twice; give each cluster its own name",
            );
        }
    }
}

/// The directory of everything the service keeps on this machine, made for its own account when absent.
pub(crate) fn make_data_dir(dir: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::DirBuilderExt;

    use anyhow::Context;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).with_context(|| {
        format!(
            "cannot make the data directory {}; set data_dir (TAO_SLURM_DATA_DIR) to another",
            dir.display()
        )
    })
}

#[cfg(test)]
mod tests;
