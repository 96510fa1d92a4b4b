//! The steps and the services of a job.

use domain::{JobComponent, Launcher, LauncherSettings, Work};
use serde::Serialize;
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
        };
        of_kind.map(view).collect()
    }
}
