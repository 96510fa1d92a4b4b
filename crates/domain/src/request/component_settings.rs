//! What a step or a service has of its own: its place, its variables, and its directory.

use std::collections::{BTreeMap, BTreeSet};

use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use slurm::{EnvKey, RemotePath};

use super::{
    component_body::ComponentRequest,
    container::{image, mounts_of},
    environment::environment,
    variable::reserved_variable,
};
use crate::{
    cluster::mount::Mount,
    image::ImageRef,
    violation::{Faults, pointer},
};

/// What a step or a service has in the place of the job's, or beside it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ComponentSettings {
    /// Default: the job's, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageRef>,
    /// It runs on the node itself, although the job has an image.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub on_node: bool,
    /// Default: those of the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mounts: Option<Vec<Mount>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mount_home: Option<bool>,
    /// Besides those of the job, which they override.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<EnvKey, String>,
    /// The names of its secret variables. Their values are in [`Secrets::components`](crate::Secrets).
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub secret_env: BTreeSet<EnvKey>,
    /// Variables with the values that others have on the node.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub node_env: BTreeMap<EnvKey, EnvKey>,
    /// Default: the job's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workdir: Option<RemotePath>,
}

impl ComponentSettings {
    /// Its settings and the values of its secret variables. `at`: its place in the request.
    pub(super) fn from_request(
        asked: &ComponentRequest,
        at: &str,
        faults: &mut Faults,
    ) -> (Self, BTreeMap<EnvKey, SecretString>) {
        let on_node = asked.on_node == Some(true);
        if on_node && (asked.image.is_some() || asked.container.is_given()) {
            let detail = "contradicts image and container: a program on the node itself has none";
            faults.add(format!("{at}/on_node"), "contradiction", detail);
        }
        let open = (format!("{at}/env"), &asked.env);
        let sealed = (format!("{at}/secret_env"), &asked.secret_env);
        let (env, secret) = environment(&open, &sealed, faults);
        let node_env = node_env(&asked.node_env, &format!("{at}/node_env"), faults);
        if let Some(twice) = node_env.keys().find(|key| env.contains_key(*key) || secret.contains_key(*key)) {
            let detail = "is also in env or secret_env; give it once";
            faults.add(pointer(&format!("{at}/node_env"), twice.as_str()), "contradiction", detail);
        }
        let mounts = asked.container.mounts.as_deref();
        let settings = Self {
            image: asked.image.as_deref().and_then(|text| image(text, &format!("{at}/image"), faults)),
            on_node,
            mounts: mounts.map(|asked| mounts_of(asked, &format!("{at}/container/mounts"), faults)),
            mount_home: asked.container.mount_home,
            secret_env: secret.keys().cloned().collect(),
            env,
            node_env,
            workdir: asked.workdir.as_deref().and_then(|text| faults.parse(&format!("{at}/workdir"), text)),
        };
        (settings, secret)
    }

    /// Whether it has variables of its own, in a file of its own.
    pub(crate) fn has_variables(&self) -> bool {
        !self.env.is_empty() || !self.secret_env.is_empty()
    }

    /// The paths on the cluster that must exist before the job is staged.
    pub(super) fn required(&self) -> impl Iterator<Item = &RemotePath> {
        let mounts = self.mounts.iter().flatten().map(Mount::source);
        self.image.as_ref().and_then(ImageRef::file).into_iter().chain(mounts)
    }
}

fn node_env(asked: &BTreeMap<String, String>, parent: &str, faults: &mut Faults) -> BTreeMap<EnvKey, EnvKey> {
    let mut found = BTreeMap::new();
    for (name, on_node) in asked {
        let at = pointer(parent, name);
        let names = [name, on_node].map(|name| faults.parse::<EnvKey>(&at, name));
        let [Some(name), Some(on_node)] = names else { continue };
        match reserved_variable(&name) {
            Some(detail) => faults.add(at, "reserved", detail),
            None => drop(found.insert(name, on_node)),
        }
    }
    found
}
