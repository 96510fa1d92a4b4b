//! A program of a job that has several: a step, or a service.

use serde::{Deserialize, Serialize};
use slurm::ComponentName;

use super::{component_settings::ComponentSettings, launcher::Launcher, service::ServiceSettings};
use crate::image::ImageRef;

/// A validated program of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobComponent {
    pub name: ComponentName,
    pub text: String,
    /// Runs beside the steps, must not end before them, and is ended after them.
    #[serde(default)]
    pub is_service: bool,
    #[serde(default)]
    pub with_previous: bool,
    /// The number of its first node, and how many it has.
    pub first_node: u32,
    pub nodes: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launcher: Option<Launcher>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_minutes: Option<u32>,
    /// What it has of its own.
    #[serde(flatten)]
    pub own: ComponentSettings,
    /// The steps after it run although it fails.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub continue_on_error: bool,
    /// Of a service.
    #[serde(default, skip_serializing_if = "ServiceSettings::is_default")]
    pub service: ServiceSettings,
    /// Of one of several copies of a service: the name of all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy_of: Option<ComponentName>,
    /// Of HAProxy in front of them: the first copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub balances: Option<ComponentName>,
}

impl JobComponent {
    /// The image that it runs. `of_job`: the job's.
    pub fn image<'a>(&'a self, of_job: Option<&'a ImageRef>) -> Option<&'a ImageRef> {
        self.own.image.as_ref().or(of_job).filter(|_| !self.own.on_node)
    }
}

/// The beginning of the variables with the nodes of a component.
pub(crate) fn variable(name: &ComponentName) -> String {
    name.as_str().to_uppercase().replace('-', "_")
}
