//! A step or a service as the caller sends it. Its values are checked in `components`, `component_settings` and `service`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::nulls::null_as_default;

/// A program of a job: a step or a service.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ComponentRequest {
    /// Its name, unique in the job. `GET /jobs/{id}/logs?role=NAME` has its logs.
    pub name: String,
    /// A shell script, run by `bash -euo pipefail`.
    pub command: String,
    /// The number of its nodes. Default: 1 for a service; for a step all nodes that no service has, or all nodes if services
    /// have them all.
    pub nodes: Option<u32>,
    /// How the command becomes processes, as the job's `launcher`. Default: the job's.
    #[schema(value_type = Option<super::launcher::LauncherBody>)]
    pub launcher: Option<Value>,
    /// Only of a step: it starts together with the step before it. Default: when the steps before it have ended.
    pub with_previous: Option<bool>,
    /// It may run for so many minutes; then it has failed. Default: no limit of its own.
    #[schema(minimum = 1, maximum = 525_600)]
    pub timeout_minutes: Option<u32>,
    /// The container image. Default: the job's; without one it runs on the node itself.
    pub image: Option<String>,
    /// Whether it runs on the node itself although the job has an image. Default: false.
    pub on_node: Option<bool>,
    #[serde(default, deserialize_with = "null_as_default")]
    #[schema(value_type = Option<ComponentContainer>)]
    pub container: ComponentContainer,
    /// Variables of it alone, beside those of the job. A value is secret if its name indicates it.
    #[serde(default, deserialize_with = "null_as_default")]
    #[schema(value_type = Option<BTreeMap<String, String>>)]
    pub env: BTreeMap<String, String>,
    /// Secret variables of it alone. Their values are encrypted at rest and never returned.
    #[serde(default, deserialize_with = "null_as_default")]
    #[schema(value_type = Option<BTreeMap<String, String>>, write_only)]
    pub secret_env: BTreeMap<String, String>,
    /// Variables that it gets from the environment of the cluster's user on the job's first node: each name with the name there.
    #[serde(default, deserialize_with = "null_as_default")]
    #[schema(value_type = Option<BTreeMap<String, String>>)]
    pub node_env: BTreeMap<String, String>,
    /// The directory that it starts in. Default: the job's.
    pub workdir: Option<String>,
    /// Only of a step: the steps after it run although it fails. The job ends with its code then. Default: false.
    pub continue_on_error: Option<bool>,
    /// Only of a service: its port on the first of its nodes, or 0 for one that no other job has. It has it as `$PORT`, and all programs of
    /// the job as `$MODEL_PORT` and in `$MODEL_URL`, if its name is `model`. Default: none, or 0 if `ready` needs one.
    #[schema(maximum = 65_535)]
    pub port: Option<u32>,
    /// Only of a service: what shows that it is ready. The steps begin when all services are. Default: it is ready at once.
    pub ready: Option<ReadyRequest>,
    /// Only of a service: how it shows from then on that it works.
    pub live: Option<LiveRequest>,
    /// Only of a service: the number of copies, each with nodes and a port of its own. Those of a service `model` are `model-0`, `model-1`
    /// and so on; all programs of the job have the addresses of all, separated by commas, as `$MODEL_URLS`. Default: one, without a number.
    #[schema(minimum = 1, maximum = 20)]
    pub replicas: Option<u32>,
    /// Only of a service with a port: HAProxy gives each request to the copy with the fewest connections. `$MODEL_URL` is its address.
    pub balance: Option<BalanceRequest>,
    /// Only of a service: it starts again after it has ended or failed, up to so many times. Default: 0, the job ends with it.
    #[schema(maximum = 10)]
    pub max_restarts: Option<u32>,
}

/// The container of a step or a service.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ComponentContainer {
    /// `/path`, `/path:/inside` or `/path:/inside:ro`. Default: those of the job.
    pub mounts: Option<Vec<String>>,
    /// Whether it has the user's home directory. Default: the job's setting, by default false.
    pub mount_home: Option<bool>,
}

/// HAProxy in front of the copies of a service, on the first node of the first one.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BalanceRequest {
    /// A container image with bash and HAProxy 2.4 or later. Default: the program `haproxy` of the node.
    pub image: Option<String>,
}

/// What shows that a service is ready. Give one of `http`, `tcp`, `file` and `log_pattern`.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadyRequest {
    /// The path of a page at its port, such as `/health`.
    #[schema(pattern = "^/[!-~]*$")]
    pub http: Option<String>,
    /// The status of that page. Default: 200.
    #[schema(minimum = 100, maximum = 599)]
    pub status: Option<u32>,
    /// What the first MiB of that page must have.
    pub body: Option<BodyRequest>,
    /// True: its port accepts a connection.
    pub tcp: Option<bool>,
    /// A file that it makes, on the shared file system.
    pub file: Option<String>,
    /// What a line of the log of its first task must have: an expression as of `grep -E`.
    pub log_pattern: Option<String>,
    /// The seconds between two probes. Default: 5.
    #[schema(minimum = 1, maximum = 3600)]
    pub interval_seconds: Option<u32>,
    /// The most seconds of a probe. Default: 10.
    #[schema(minimum = 1, maximum = 3600)]
    pub probe_seconds: Option<u32>,
    /// The minutes in which it must be ready; then the job ends. Default: 30.
    #[schema(minimum = 0.01, maximum = 10_080)]
    pub timeout_minutes: Option<f64>,
}

/// What a page must have.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BodyRequest {
    /// An expression as of `grep -E`.
    pub pattern: String,
    /// How often it must match, such as once for each worker. Default: 1.
    #[schema(minimum = 1, maximum = 10_000)]
    pub at_least: Option<u32>,
}

/// How a service shows that it still works: by the probe of `ready`, if that is `http` or `tcp`.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LiveRequest {
    /// The seconds between two probes. Default: 30.
    #[schema(minimum = 1, maximum = 3600)]
    pub interval_seconds: Option<u32>,
    /// So many probes in a row may fail; then the service has failed. 0: it is not probed. Default: 3.
    #[schema(maximum = 1000)]
    pub failures: Option<u32>,
}

impl ComponentContainer {
    pub(super) fn is_given(&self) -> bool {
        *self != Self::default()
    }
}
