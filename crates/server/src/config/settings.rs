//! The configuration's sections, with the defaults of every key.
//!
//! `deploy/config.example.toml` shows each of them; a test holds the two together.

use std::{collections::BTreeMap, net::SocketAddr, path::PathBuf, time::Duration};

use secrecy::SecretString;
use serde::{Deserialize, Serialize, Serializer};

use super::cluster_settings::ClusterSettings;

/// The whole configuration, as file and environment give it.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Settings {
    pub(crate) data_dir: PathBuf,
    pub(crate) server: Server,
    pub(crate) database: Database,
    pub(crate) auth: Auth,
    pub(crate) secrets: Secrets,
    pub(crate) ssh: Ssh,
    pub(crate) worker: Worker,
    pub(crate) log: Log,
    pub(crate) telemetry: Telemetry,
    pub(crate) tao: Tao,
    pub(crate) webhooks: Webhooks,
    pub(crate) clusters: Vec<ClusterSettings>,
}

#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Server {
    pub(crate) bind: SocketAddr,
    pub(crate) body_limit_bytes: usize,
    pub(crate) header_limit_bytes: usize,
    #[serde(with = "humantime_serde")]
    pub(crate) header_timeout: Duration,
    #[serde(with = "humantime_serde")]
    pub(crate) body_timeout: Duration,
    #[serde(with = "humantime_serde")]
    pub(crate) request_timeout: Duration,
    pub(crate) max_connections: usize,
    pub(crate) max_clusters: u32,
    pub(crate) rate_limit: u32,
    pub(crate) rate_burst: u32,
    pub(crate) cors_origins: Vec<String>,
    #[serde(with = "humantime_serde")]
    pub(crate) idempotency_keep: Duration,
    #[serde(with = "humantime_serde")]
    pub(crate) drain_timeout: Duration,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            bind: SocketAddr::from(([127, 0, 0, 1], 8080)),
            body_limit_bytes: 10 * 1024 * 1024,
            header_limit_bytes: 32 * 1024,
            header_timeout: Duration::from_secs(30),
            body_timeout: Duration::from_secs(30),
            request_timeout: Duration::from_secs(40),
            max_connections: 4096,
            max_clusters: 64,
            rate_limit: 1000,
            rate_burst: 2000,
            cors_origins: Vec::new(),
            idempotency_keep: Duration::from_hours(24),
            drain_timeout: Duration::from_mins(1),
        }
    }
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Database {
    #[serde(serialize_with = "without_password")]
    pub(crate) url: Option<SecretString>,
    pub(crate) max_connections: u32,
    /// How long a database that does not answer yet is waited for: compose files start it beside us.
    #[serde(with = "humantime_serde")]
    pub(crate) patience: Duration,
    /// How long a job stays after its end; for ever unless it is said.
    #[serde(with = "humantime_serde")]
    pub(crate) keep_ended_jobs: Option<Duration>,
}

impl Default for Database {
    fn default() -> Self {
        Self { url: None, max_connections: 16, patience: Duration::from_secs(30), keep_ended_jobs: None }
    }
}

/// Who may call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AuthMode {
    #[default]
    Tokens,
    Disabled,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Auth {
    pub(crate) mode: AuthMode,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) jwt: Option<Jwt>,
}

/// Tokens that somebody else signs. The section's being there is what switches them on.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Jwt {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) jwks_file: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) jwks_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ca_file: Option<PathBuf>,
    #[serde(with = "humantime_serde")]
    pub(crate) jwks_keep: Duration,
    #[serde(with = "humantime_serde")]
    pub(crate) jwks_pause: Duration,
    pub(crate) issuer: String,
    pub(crate) audience: Vec<String>,
    pub(crate) algorithms: Vec<String>,
    #[serde(with = "humantime_serde")]
    pub(crate) leeway: Duration,
    pub(crate) owner_claim: String,
    pub(crate) owner_prefix: String,
    pub(crate) scope_claim: String,
    pub(crate) scope_words: BTreeMap<String, Vec<String>>,
}

impl Default for Jwt {
    fn default() -> Self {
        Self {
            jwks_file: None,
            jwks_url: None,
            ca_file: None,
            jwks_keep: Duration::from_mins(10),
            jwks_pause: Duration::from_secs(30),
            issuer: String::new(),
            audience: Vec::new(),
            algorithms: ["RS256", "ES256", "EdDSA"].map(str::to_owned).to_vec(),
            leeway: Duration::from_secs(30),
            owner_claim: "sub".to_owned(),
            owner_prefix: "jwt:".to_owned(),
            scope_claim: "scope".to_owned(),
            scope_words: BTreeMap::new(),
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Secrets {
    /// Empty until the data directory is known: then `secrets.key` in it.
    pub(crate) key_file: PathBuf,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Ssh {
    /// Where the keys lie that clusters name which come by the API. Empty until the data directory is known: then
    /// `ssh-keys` in it.
    pub(crate) key_directory: PathBuf,
}

#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Worker {
    /// Where a process that is only a worker shows its health and its numbers. Nowhere unless it is said: such a
    /// process is not expected to listen.
    pub(crate) bind: Option<SocketAddr>,
    #[serde(with = "humantime_serde")]
    pub(crate) lease: Duration,
    pub(crate) batch_size: u32,
    #[serde(with = "humantime_serde")]
    pub(crate) poll_min: Duration,
    #[serde(with = "humantime_serde")]
    pub(crate) poll_max: Duration,
    #[serde(with = "humantime_serde")]
    pub(crate) partitions_every: Duration,
    #[serde(with = "humantime_serde")]
    pub(crate) missing_grace: Duration,
    #[serde(with = "humantime_serde")]
    pub(crate) last_word_grace: Duration,
    #[serde(with = "humantime_serde")]
    pub(crate) release_grace: Duration,
    #[serde(with = "humantime_serde")]
    pub(crate) retry_wait: Duration,
    #[serde(with = "humantime_serde")]
    pub(crate) retry_wait_max: Duration,
}

impl Default for Worker {
    fn default() -> Self {
        Self {
            bind: None,
            lease: Duration::from_secs(30),
            batch_size: 128,
            poll_min: Duration::from_secs(5),
            poll_max: Duration::from_mins(1),
            partitions_every: Duration::from_mins(5),
            missing_grace: Duration::from_mins(5),
            last_word_grace: Duration::from_mins(1),
            release_grace: Duration::from_mins(2),
            retry_wait: Duration::from_secs(15),
            retry_wait_max: Duration::from_mins(10),
        }
    }
}

/// Messages about jobs, to whom their requests name.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Webhooks {
    pub(crate) allowed_networks: Vec<String>,
    #[serde(with = "humantime_serde")]
    pub(crate) timeout: Duration,
    pub(crate) max_attempts: u32,
    pub(crate) ca_file: Option<PathBuf>,
}

impl Default for Webhooks {
    fn default() -> Self {
        Self {
            allowed_networks: Vec::new(),
            timeout: Duration::from_secs(10),
            max_attempts: 15,
            ca_file: None,
        }
    }
}

/// Jobs that come by TAO's own wire, whose bodies name no image.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Tao {
    pub(crate) default_image: Option<String>,
    pub(crate) images: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    #[default]
    Human,
    Json,
}

#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Log {
    pub(crate) format: LogFormat,
    pub(crate) filter: String,
}

impl Default for Log {
    fn default() -> Self {
        Self {
            format: LogFormat::Human, // sqlx repeats the remarks of Postgres at `info`.
            filter: "info,sqlx=warn".to_owned(),
        }
    }
}

/// Where traces go; nowhere unless it is said.
#[expect(clippy::struct_field_names, reason = "the names are the keys, and there may be others than of OTLP")]
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Telemetry {
    pub(crate) otlp_endpoint: Option<String>,
    pub(crate) otlp_headers_file: Option<PathBuf>,
    pub(crate) otlp_sample: f64,
}

impl Default for Telemetry {
    fn default() -> Self {
        Self { otlp_endpoint: None, otlp_headers_file: None, otlp_sample: 1.0 }
    }
}

#[expect(clippy::ref_option, reason = "the signature is serde's")]
fn without_password<S: Serializer>(url: &Option<SecretString>, serializer: S) -> Result<S::Ok, S::Error> {
    url.as_ref().map(super::database_url::redacted).serialize(serializer)
}
