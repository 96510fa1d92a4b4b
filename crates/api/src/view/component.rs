//! The steps and the services of a job.

use std::collections::BTreeMap;

use domain::{JobComponent, Launcher, LauncherSettings, Work};
use serde::Serialize;
use slurm::EnvKey;
use utoipa::ToSchema;

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
            env: shown(&component.own.env),
            secret_env: component.own.secret_env.iter().map(ToString::to_string).collect(),
            node_env: shown(&component.own.node_env),
            workdir: component.own.workdir.as_ref().map(ToString::to_string),
        };
        of_kind.map(view).collect()
    }
}

fn shown(list: &BTreeMap<EnvKey, impl ToString>) -> BTreeMap<String, String> {
    list.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
}
