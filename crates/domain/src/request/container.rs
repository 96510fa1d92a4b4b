//! The container of a request: its image, its mounts, and how the image is used.

use serde::Deserialize;
use utoipa::ToSchema;

use crate::{
    cluster::{
        mount::Mount,
        policy::{ContainerRuntime, ImagePolicy},
        target::Cluster,
    },
    image::ImageRef,
    violation::Faults,
};

/// The container settings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ContainerRequest {
    /// `/path`, `/path:/inside` or `/path:/inside:ro`. Default: the cluster's setting, by default `/lustre`.
    pub mounts: Option<Vec<String>>,
    /// What makes the container. Default: the cluster's setting, by default `pyxis`.
    pub runtime: Option<ContainerRuntime>,
    /// Convert the image to a shared SquashFS file before the job starts; not for `apptainer`. Default: the cluster's setting, by
    /// default true.
    pub use_sqsh: Option<bool>,
    /// Fail the job if the conversion fails, instead of running the registry image. Default: the cluster's setting, by default
    /// false.
    pub require_sqsh: Option<bool>,
    /// Convert an image with the tag `latest` again even if a converted file exists. Default: the cluster's setting, by default
    /// false.
    pub force_reconvert_latest: Option<bool>,
    /// Whether the container has the user's home directory. Default: of steps and services false; otherwise what the site
    /// configures for Enroot, which is false as it comes, or for Apptainer.
    pub mount_home: Option<bool>,
}

impl ContainerRequest {
    /// Whether any field is given.
    pub(crate) fn is_given(&self) -> bool {
        *self != Self::default()
    }
}

/// The image of this name. `at`: its place in the request.
pub(super) fn image(text: &str, at: &str, faults: &mut Faults) -> Option<ImageRef> {
    let image: ImageRef = faults.parse(at, text)?;
    let names_a_file = [".sqsh", ".sif"].iter().any(|end| image.pyxis().ends_with(end));
    if names_a_file && image.file().is_none() {
        faults.add(at, "invalid", "is the name of a file; give its absolute path on the cluster");
    }
    Some(image)
}

/// The mounts of a job.
pub(super) fn mounts(asked: Option<&[String]>, cluster: &Cluster, faults: &mut Faults) -> Vec<Mount> {
    asked.map_or_else(|| cluster.mounts.clone(), |asked| mounts_of(asked, "/container/mounts", faults))
}

/// The mounts of a list. `at`: its place in the request.
pub(super) fn mounts_of(asked: &[String], at: &str, faults: &mut Faults) -> Vec<Mount> {
    let parse = |(place, text): (usize, &String)| faults.parse(&format!("{at}/{place}"), text);
    asked.iter().enumerate().filter_map(parse).collect()
}

/// How the image is used.
pub(super) fn image_policy(
    asked: &ContainerRequest,
    default: ImagePolicy,
    faults: &mut Faults,
) -> ImagePolicy {
    let runtime = asked.runtime.unwrap_or(default.runtime);
    let by_apptainer = runtime == ContainerRuntime::Apptainer;
    let use_sqsh =
        asked.use_sqsh.unwrap_or(default.use_sqsh && !by_apptainer || asked.require_sqsh == Some(true));
    let others =
        [("force_reconvert_latest", asked.force_reconvert_latest), ("require_sqsh", asked.require_sqsh)];
    for (field, other) in others {
        if asked.use_sqsh == Some(false) && other == Some(true) {
            let detail = "contradicts use_sqsh, which disables conversion; leave one of them out";
            faults.add(format!("/container/{field}"), "contradiction", detail);
        }
    }
    if by_apptainer && use_sqsh {
        let field = if asked.use_sqsh.is_some() { "use_sqsh" } else { "require_sqsh" };
        let detail = "is not for Apptainer, which pulls and converts images itself; leave it out, or name a file as the image";
        faults.add(format!("/container/{field}"), "contradiction", detail);
    }
    ImagePolicy {
        runtime,
        use_sqsh,
        // Without conversion there is no file to require.
        require_sqsh: asked.require_sqsh.unwrap_or(default.require_sqsh) && use_sqsh,
        force_reconvert_latest: asked.force_reconvert_latest.unwrap_or(default.force_reconvert_latest),
    }
}
