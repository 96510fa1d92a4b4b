//! A container image, parsed once from every spelling that TAO accepts, and spelled for each who reads it.

mod parse;

use std::fmt;

use serde_with::{DeserializeFromStr, SerializeDisplay};
use sha2::{Digest, Sha256};

pub use parse::InvalidImage;

/// Where the container comes from.
///
/// Accepted: `/path/image.sqsh`, `registry#image:tag`, `docker://registry#image:tag`, `dockerd://image:tag`,
/// `registry/image:tag`, Docker Hub names with and without an organisation, digests, ports, `user@` before all of them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, SerializeDisplay, DeserializeFromStr)]
pub enum ImageRef {
    /// A SquashFS file on the cluster.
    File(slurm::RemotePath),
    Registry {
        /// Whose credentials Enroot takes, if not those that the registry has in its file.
        user: Option<String>,
        /// `host` or `host:port`, in small letters; none means Docker Hub.
        registry: Option<String>,
        /// `nvidia/tao/tao-toolkit`
        repository: String,
        /// `:tag` or `@sha256:…`, with its separator; empty when neither was given.
        version: String,
    },
    /// An image that the Docker daemon of the node has.
    Daemon {
        /// As Docker names it: `registry.example/a/b` or `a`.
        name: String,
        /// As that of a registry's.
        version: String,
    },
}

/// A file name may have 255 bytes (`NAME_MAX`); what is written beside the file while it is made adds to it.
const LONGEST_NAME: usize = 180;

impl ImageRef {
    /// The spelling that Pyxis reads: `[USER@][REGISTRY#]IMAGE[:TAG]|PATH`. It is also the one that we store and show.
    pub fn pyxis(&self) -> String {
        match self {
            Self::File(path) => path.to_string(),
            Self::Registry { user, registry, repository, version } => {
                let user = user.as_ref().map(|user| format!("{user}@")).unwrap_or_default();
                let registry = registry.as_ref().map(|host| format!("{host}#")).unwrap_or_default();
                format!("{user}{registry}{repository}{version}")
            }
            Self::Daemon { name, version } => format!("dockerd://{name}{version}"),
        }
    }

    /// The spelling that `enroot import` reads: `docker://[USER@][REGISTRY#]IMAGE[:TAG]`.
    pub fn enroot(&self) -> String {
        match self {
            Self::File(_) | Self::Daemon { .. } => self.pyxis(),
            Self::Registry { .. } => format!("docker://{}", self.pyxis()),
        }
    }

    /// Whether its tag moves by custom: `latest`, or none.
    pub fn is_latest(&self) -> bool {
        match self {
            Self::File(_) => false,
            Self::Registry { version, .. } | Self::Daemon { version, .. } => {
                version.is_empty() || version == ":latest"
            }
        }
    }

    /// The name of its file in a cache: two images never share one, because each character that parts an image's
    /// name stands for itself alone, as one that no image's name has. A name that would be too long ends in a hash.
    pub fn cache_file_name(&self) -> String {
        let text = self.pyxis();
        let other = |c| match c {
            '/' => '+',
            ':' => '=',
            '#' => '~',
            c => c,
        };
        let name: String = text.chars().map(other).collect();
        if name.len() <= LONGEST_NAME && name.is_ascii() {
            return format!("{name}.sqsh");
        }
        let digest = Sha256::digest(&text);
        let hash = u128::from_be_bytes(std::array::from_fn(|at| digest[at]));
        let front: String = name.chars().filter(char::is_ascii).take(LONGEST_NAME - 40).collect();
        // No whole name has a comma.
        format!("{front},{hash:032x}.sqsh")
    }
}

impl fmt::Display for ImageRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.pyxis())
    }
}

#[cfg(test)]
mod tests;
