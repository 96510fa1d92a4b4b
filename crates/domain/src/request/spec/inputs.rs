//! The paths that must exist on the cluster before a job is staged.

use std::collections::BTreeSet;

use slurm::RemotePath;

use super::Work;
use crate::{
    cluster::{mount::Mount, target::Cluster},
    request::{
        datasets,
        uri::{Reference, reference},
    },
    violation::Faults,
};

const MOST_INPUTS: usize = 1000;

pub(super) fn inputs(asked: &[String], faults: &mut Faults) -> Vec<RemotePath> {
    if asked.len() > MOST_INPUTS {
        faults.add("/inputs", "too_many", format_args!("must have at most {MOST_INPUTS} inputs"));
        return Vec::new();
    }
    let mut parse = |(index, text): (usize, &String)| {
        let at = format!("/inputs/{index}");
        match reference(text) {
            Reference::Shared(Ok(path)) => faults.parse(&at, &path),
            Reference::Shared(Err(error)) => {
                faults.add(at, "invalid", error);
                None
            }
            Reference::Absolute => faults.parse(&at, text),
            Reference::Local { .. } | Reference::Bare => {
                faults.add(
                    at,
                    "local_path",
                    format_args!(
                        "is {}, which is not on the cluster; put it on the shared file system and name it as lustre:///path",
                        slurm::shown(text)
                    ),
                );
                None
            }
            Reference::Remote { scheme } => {
                faults.add(
                    at,
                    "remote_data",
                    format_args!(
                        "is remote data ({scheme}://), which the job would download while it holds idle GPUs; put it on the \
                         shared file system first and name it as lustre:///path"
                    ),
                );
                None
            }
        }
    };
    asked.iter().enumerate().filter_map(&mut parse).collect()
}

/// The needed paths and the data sets of the specification. It also replaces the specification's URIs by paths.
pub(super) fn required_paths(
    mut required: BTreeSet<RemotePath>,
    work: &mut Option<Work>,
    mounts: &[Mount],
    cluster: &Cluster,
    faults: &mut Faults,
) -> Vec<RemotePath> {
    if let Some(Work::Tao { specs, .. }) = work {
        // Staging mounts the base directory too.
        let mounts = [mounts, &[Mount::from(cluster.base_dir.clone())]].concat();
        let examined = datasets::examine(specs, "/specs", &mounts);
        faults.0.extend(examined.faults);
        required.extend(examined.required);
    }
    if required.len() > MOST_INPUTS {
        faults.add(
            "/specs",
            "too_many",
            format_args!("names more than {MOST_INPUTS} data set paths; name their directories instead"),
        );
    }
    required.into_iter().collect()
}
