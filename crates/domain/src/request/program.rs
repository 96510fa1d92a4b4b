//! How and where a job's command runs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use slurm::RemotePath;

use super::{
    body::JobRequest,
    files::{JobFile, files, setup},
    launcher::Launcher,
};
use crate::{cluster::resources::Resources, violation::Faults};

/// How and where a job's command runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProgramSettings {
    /// Default: `tasks_per_node` processes on each node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub launcher: Option<Launcher>,
    /// Lines for bash, before the program of each task.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub setup: Vec<String>,
    /// Files that are staged with the job.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, JobFile>,
    /// The directory that the program starts in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workdir: Option<RemotePath>,
}

impl ProgramSettings {
    pub(super) fn from_request(request: &JobRequest, faults: &mut Faults) -> Self {
        let launcher =
            request.launcher.as_ref().and_then(|body| Launcher::from_request(body, "/launcher", faults));
        let workdir = request.workdir.as_deref().and_then(|text| faults.parse("/workdir", text));
        let setup = setup(&request.setup, faults);
        Self { launcher, setup, files: files(&request.files, faults), workdir }
    }

    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Whether the settings fit a command or a TAO job.
    pub(super) fn check(&self, is_tao: bool, resources: &Resources, faults: &mut Faults) {
        let Some(launcher) = &self.launcher else { return };
        if is_tao {
            let detail = "is only for a command: the container of a TAO job starts its processes itself";
            faults.add("/launcher", "contradiction", detail);
        } else if launcher.is_one_task() && resources.tasks_per_node > 1 {
            let detail = "must be 1: the launcher starts the processes of a node itself";
            faults.add("/resources/tasks_per_node", "contradiction", detail);
        } else if launcher.needs_exclusive_nodes() && !resources.exclusive {
            let detail = "must be true: `ray symmetric-run` stops every Ray of the user on its nodes";
            faults.add("/resources/exclusive", "contradiction", detail);
        }
    }
}
