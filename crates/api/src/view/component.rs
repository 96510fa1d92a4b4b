//! The steps and the services of a job.

use std::collections::BTreeMap;

use domain::{JobComponent, Launcher, LauncherSettings, Ready, ReadyBy, ServicePort, Work};
use serde::Serialize;
use utoipa::ToSchema;

use super::job_summary::texts;

/// A step or a service.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ComponentView {
    /// Its name, for its logs.
    pub name: String,
    /// The shell script.
    pub command: String,
    /// The number of its first node in the job, counted from 0.
    pub first_node: u32,
    /// The number of its nodes.
    pub nodes: u32,
    /// How the command becomes processes; null for the job's.
    #[schema(value_type = Option<LauncherSettings>)]
    pub launcher: Option<Launcher>,
    /// Whether it starts together with the step before it.
    pub with_previous: bool,
    /// Its own time limit in minutes.
    pub timeout_minutes: Option<u32>,
    /// Its own image, in Pyxis syntax; null for the job's.
    pub image: Option<String>,
    /// Whether it runs on the node itself although the job has an image.
    pub on_node: bool,
    /// Its own mounts; null for those of the job.
    pub mounts: Option<Vec<String>>,
    /// Whether its container has the user's home directory; null for the job's setting.
    pub mount_home: Option<bool>,
    /// The variables that it alone has.
    pub env: BTreeMap<String, String>,
    /// The names of the secret variables that it alone has.
    pub secret_env: Vec<String>,
    /// Its variables with the values of others on the node.
    pub node_env: BTreeMap<String, String>,
    /// The directory that it starts in; null for the job's.
    pub workdir: Option<String>,
    /// Whether the steps after it run although it fails.
    pub continue_on_error: bool,
    /// The port of a service: 0 for one that no other job has; null for none.
    pub port: Option<u16>,
    /// When a service is ready, and how it shows that it works; null if it is ready at once.
    pub ready: Option<ReadyView>,
    /// How often a service may start again.
    pub max_restarts: u32,
    /// Of a copy of a service: the name of the service.
    pub copy_of: Option<String>,
    /// Of HAProxy: the name of the first copy behind it.
    pub balances: Option<String>,
}

/// When a service is ready, and how it shows that it works.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct ReadyView {
    /// The path of a page at its port.
    pub http: Option<String>,
    /// The status of the page.
    pub status: Option<u16>,
    /// What the page must have.
    pub body_pattern: Option<String>,
    /// How often.
    pub body_at_least: Option<u32>,
    /// Whether its port accepts a connection.
    pub tcp: bool,
    /// A file.
    pub file: Option<String>,
    /// What a line of its log must have.
    pub log_pattern: Option<String>,
    /// The seconds between two probes.
    pub interval_seconds: u32,
    /// The most seconds of a probe.
    pub probe_seconds: u32,
    /// The seconds in which it must be ready.
    pub timeout_seconds: u32,
    /// The seconds between two probes from then on; 0 for none.
    pub live_interval_seconds: u32,
    /// So many of these may fail in a row.
    pub live_failures: u32,
}

impl From<&Ready> for ReadyView {
    fn from(ready: &Ready) -> Self {
        let mut view = Self {
            interval_seconds: ready.interval_seconds,
            probe_seconds: ready.probe_seconds,
            timeout_seconds: ready.timeout_seconds,
            live_interval_seconds: ready.live_seconds,
            live_failures: ready.live_failures,
            ..Self::default()
        };
        match &ready.by {
            ReadyBy::Http { path, status, body } => {
                (view.http, view.status) = (Some(path.clone()), Some(*status));
                (view.body_pattern, view.body_at_least) = body.clone().unzip();
            }
            ReadyBy::Tcp => view.tcp = true,
            ReadyBy::File(file) => view.file = Some(file.to_string()),
            ReadyBy::LogPattern(pattern) => view.log_pattern = Some(pattern.clone()),
        }
        view
    }
}

impl ComponentView {
    pub(super) fn all(work: &Work, services: bool) -> Vec<Self> {
        let Work::Components { list } = work else { return Vec::new() };
        let of_kind = list.iter().filter(|component| component.is_service == services);
        let view = |component: &JobComponent| Self {
            name: component.name.to_string(),
            command: component.text.clone(),
            first_node: component.first_node,
            nodes: component.nodes,
            launcher: component.launcher.clone(),
            with_previous: component.with_previous,
            timeout_minutes: component.timeout_minutes,
            image: component.own.image.as_ref().map(ToString::to_string),
            on_node: component.own.on_node,
            mounts: component
                .own
                .mounts
                .as_ref()
                .map(|mounts| mounts.iter().map(ToString::to_string).collect()),
            mount_home: component.own.mount_home,
            env: texts(&component.own.env),
            secret_env: component.own.secret_env.iter().map(ToString::to_string).collect(),
            node_env: texts(&component.own.node_env),
            workdir: component.own.workdir.as_ref().map(ToString::to_string),
            continue_on_error: component.continue_on_error,
            port: component.service.port.map(|port| match port {
                ServicePort::Own => 0,
                ServicePort::Fixed(port) => port.get(),
            }),
            ready: component.service.ready.as_ref().map(ReadyView::from),
            max_restarts: component.service.max_restarts,
            copy_of: component.copy_of.as_ref().map(ToString::to_string),
            balances: component.balances.as_ref().map(ToString::to_string),
        };
        of_kind.map(view).collect()
    }
}
