//! The configuration: defaults, the file, then environment variables. All checks run, so that one start shows every problem.
//!
//! The program reads its environment only here. To add a setting, declare it in `settings` or `cluster_settings`, run
//! `make config-example`, and add its check, if it needs one, below.

mod authorities;
mod cluster;
mod cluster_options;
mod cluster_policies;
mod cluster_settings;
mod database_url;
mod declare;
mod environment;
mod faults;
mod jwt;
mod kept_cluster;
mod key_file;
mod kinds;
mod log_in;
mod problems;
mod render;
mod secure_url;
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
pub(crate) use log_in::{LogInConfig, client_secret};
use problems::Problems;
pub(crate) use render::{example, render};
use secrecy::SecretString;
pub(crate) use secure_url::secure_url;
pub(crate) use settings::{AuthMode, Log, LogFormat, Server, Settings, TokenKind};
pub(crate) use warnings::warnings;

/// The file without --config.
const DEFAULT_FILE: &str = "tao-slurm.toml";

const SHORTEST_KEEP: Duration = Duration::from_hours(1);

/// A checked configuration.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    /// The effective value of every key.
    pub(crate) settings: Settings,
    pub(crate) clusters: Vec<ClusterConfig>,
    pub(crate) container_images: ContainerImages,
    pub(crate) webhook_networks: Networks,
    /// Further authorities for the certificates of receivers.
    pub(crate) webhook_authorities: Authorities,
    pub(crate) jwt: Option<JwtConfig>,
    /// Headers for the collector of traces.
    pub(crate) otlp_headers: Vec<(String, SecretString)>,
    pub(crate) file: Option<PathBuf>,
}

/// Command line options that override the configuration.
#[derive(Debug, Clone, Default)]
pub(crate) struct Overrides {
    pub(crate) file: Option<PathBuf>,
    pub(crate) bind: Option<std::net::SocketAddr>,
    pub(crate) worker_bind: Option<std::net::SocketAddr>,
}

/// Reads and checks the whole configuration.
pub(crate) fn load(overrides: &Overrides, environment: &Environment) -> Result<Config, Problems> {
    let default = || Some(PathBuf::from(DEFAULT_FILE)).filter(|path| path.exists());
    let file = overrides.file.clone().or_else(default);
    let mut settings = sources::read(file.as_deref(), environment)?;
    if let Some(bind) = overrides.bind {
        settings.server.bind = bind;
    }
    settings.worker.bind = overrides.worker_bind.or(settings.worker.bind);
    let mut problems = Problems::default();
    complete_paths(&mut settings, environment, &mut problems);
    check_sections(&settings, &mut problems);
    cluster_settings::with_environment(&mut settings.clusters, environment, &mut problems);
    settings.clusters.iter_mut().for_each(|cluster| cluster.complete(environment, &settings.worker));
    let clusters: Vec<ClusterConfig> = settings
        .clusters
        .iter()
        .enumerate()
        .filter_map(|(index, cluster)| {
            let mut faults = Faults::default();
            let checked = cluster::check(cluster, &mut faults);
            let label = cluster.name.clone().unwrap_or_else(|| format!("[{}]", index + 1));
            faults.report(&label, &mut problems);
            checked
        })
        .collect();
    check_names(&clusters, &mut problems);
    let container_images = tao::images(&settings.tao, &mut problems);
    let webhook_networks = webhooks::networks(&settings.webhooks, &mut problems);
    let webhook_authorities =
        authorities::read("webhooks.ca_file", &mut settings.webhooks.ca_file, environment, &mut problems);
    let jwt = settings.auth.jwt.as_mut().and_then(|jwt| jwt::check(jwt, environment, &mut problems));
    let otlp_headers = telemetry::headers(&settings.telemetry, environment, &mut problems);
    problems.with_variables(settings::variables_of).or_else(Config {
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

/// Sets the paths that depend on this machine.
fn complete_paths(settings: &mut Settings, environment: &Environment, problems: &mut Problems) {
    let named = Some(&settings.data_dir).filter(|path| !path.as_os_str().is_empty());
    let dir = named.map(|path| environment.expand(path.clone())).or_else(|| environment.default_data_dir());
    match dir.map(std::path::absolute) {
        Some(Ok(dir)) => settings.data_dir = dir,
        _ => problems.add(
            "data_dir",
            "has no default, because HOME is not set; set data_dir to a directory for this service",
        ),
    }
    for (path, default) in
        [(&mut settings.ssh.key_directory, "ssh-keys"), (&mut settings.secrets.key_file, "secrets.key")]
    {
        let is_set = !path.as_os_str().is_empty();
        *path = if is_set { environment.expand(path.clone()) } else { settings.data_dir.join(default) };
    }
}

fn check_sections(settings: &Settings, problems: &mut Problems) {
    let Settings { server, database, worker, .. } = settings;
    if settings.auth.mode == AuthMode::Disabled && !server.bind.ip().is_loopback() {
        let advice = format_args!(
            "is \"disabled\" while server.bind is {}, so anybody who reaches it could run jobs as your cluster user; set \
             server.bind to a loopback address, such as 127.0.0.1:8080, or auth.mode to \"tokens\"",
            server.bind
        );
        problems.add("auth.mode", advice);
    }
    let has_login = settings.auth.jwt.as_ref().is_some_and(|jwt| jwt.login.is_some());
    if settings.auth.mode == AuthMode::Disabled && has_login {
        let advice = "is for callers with tokens, but auth.mode is \"disabled\"; leave this section out, or set auth.mode to \"tokens\"";
        problems.add("auth.jwt.login", advice);
    }
    if let Some(url) = &database.url {
        database_url::check(url, problems);
    }
    for (key, is_zero, example) in [
        ("server.body_limit_bytes", server.body_limit_bytes == 0, "10485760"),
        ("server.header_timeout", server.header_timeout.is_zero(), "\"30s\""),
        ("server.body_timeout", server.body_timeout.is_zero(), "\"30s\""),
        ("server.request_timeout", server.request_timeout.is_zero(), "\"40s\""),
        ("server.write_timeout", server.write_timeout.is_zero(), "\"30s\""),
        ("server.buffer_bytes", server.buffer_bytes == 0, "134217728"),
        ("server.max_connections", server.max_connections == 0, "4096"),
        ("server.max_connections_per_address", server.max_connections_per_address == 0, "2048"),
        ("server.rate_burst", server.rate_limit > 0 && server.rate_burst == 0, "2000"),
        ("database.max_connections", database.max_connections == 0, "16"),
        ("worker.batch_size", worker.batch_size == 0, "128"),
    ] {
        if is_zero {
            problems.add(key, format_args!("is 0; write for example {example}"));
        }
    }
    for origin in server.cors_origins.iter().filter(|origin| !api::is_origin(origin)) {
        let advice = format_args!(
            "{origin:?} is not an origin; write for example \"https://dashboard.example.org\", or \"*\" for all"
        );
        problems.add("server.cors_origins", advice);
    }
    let bytes = server.header_limit_bytes;
    if !(1024..=1024 * 1024).contains(&bytes) {
        let advice = format_args!("is {bytes}; write a number from 1024 to 1048576");
        problems.add("server.header_limit_bytes", advice);
    }
    if database.keep_ended_jobs.is_some_and(|keep| keep < SHORTEST_KEEP) {
        let advice = "is less than 1h, so callers could miss how their jobs ended; write for example \"90d\", or leave it out to \
                      keep the jobs";
        problems.add("database.keep_ended_jobs", advice);
    }
    if worker.partitions_every < Duration::from_secs(1) {
        let advice = "is less than 1s, which overloads the scheduler; write for example \"5m\"";
        problems.add("worker.partitions_every", advice);
    }
    if worker.lease < Duration::from_secs(10) {
        let advice = "is less than 10s, and a remote command can take longer; write at least \"10s\"";
        problems.add("worker.lease", advice);
    }
    if let Err(error) = tracing_subscriber::EnvFilter::builder().parse(&settings.log.filter) {
        problems.add("log.filter", format_args!("{error}; write for example \"info\""));
    }
}

fn check_names(clusters: &[ClusterConfig], problems: &mut Problems) {
    for (index, one) in clusters.iter().enumerate() {
        if clusters[..index].iter().any(|other| other.cluster.name == one.cluster.name) {
            let key = format_args!("clusters.{}.name", one.cluster.name);
            problems.add(key, "is the name of two clusters; give each cluster its own name");
        }
    }
}

/// Creates the data directory for the account of the service.
pub(crate) fn make_data_dir(dir: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::DirBuilderExt;

    use anyhow::Context;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).with_context(|| {
        let dir = dir.display();
        format!(
            "cannot create the data directory {dir}; set data_dir (TAO_SLURM_DATA_DIR) to another directory"
        )
    })
}

#[cfg(test)]
mod tests;
