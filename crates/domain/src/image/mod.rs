//! Container images: parsed from every spelling that TAO accepts, and written in the spelling of each program.

mod parse;

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_with::{DeserializeFromStr, SerializeDisplay};
use sha2::{Digest, Sha256};
use utoipa::ToSchema;

pub use parse::InvalidImage;

/// A container image.
///
/// Accepted spellings: `/path/image.sqsh`, `registry#image:tag`, `docker://registry#image:tag`, `dockerd://image:tag`,
/// `registry/image:tag`, Docker Hub names with and without an organisation, digests, ports, `user@` before all of them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, SerializeDisplay, DeserializeFromStr)]
pub enum ImageRef {
    /// A file on the cluster: SquashFS, or of Apptainer's own format.
    File(slurm::RemotePath),
    Registry {
        /// The user whose credentials Enroot uses, if not the registry's default entry.
        user: Option<String>,
        /// `host` or `host:port`, in lower case; absent for Docker Hub.
        registry: Option<String>,
        /// `nvidia/tao/tao-toolkit`
        repository: String,
        /// `:tag` or `@sha256:…`, with its separator; empty if neither was given.
        version: String,
    },
    /// An image of the node's Docker daemon.
    Daemon {
        /// Docker's name: `registry.example/a/b` or `a`.
        name: String,
        /// As for a registry image.
        version: String,
    },
}

/// An image of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = LaunchImageView)]
pub struct LaunchImage {
    /// The image that the job requests, in Pyxis syntax.
    #[schema(value_type = String)]
    pub requested: ImageRef,
    /// The image that was started in its place.
    #[schema(value_type = String)]
    pub image: ImageRef,
    /// Why the image of the registry was started although a converted file was requested.
    pub note: Option<String>,
}

/// A file name may have 255 bytes (`NAME_MAX`). The names of temporary files beside it are longer.
const LONGEST_NAME: usize = 180;

impl ImageRef {
    /// Pyxis's spelling: `[USER@][REGISTRY#]IMAGE[:TAG]|PATH`. It is also stored and shown.
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

    /// The spelling of `enroot import`: `docker://[USER@][REGISTRY#]IMAGE[:TAG]`.
    pub fn enroot(&self) -> String {
        match self {
            Self::File(_) | Self::Daemon { .. } => self.pyxis(),
            Self::Registry { .. } => format!("docker://{}", self.pyxis()),
        }
    }

    /// Apptainer's spelling: `docker://[REGISTRY/]IMAGE[:TAG]`, `docker-daemon:IMAGE[:TAG]` or a path. It chooses the user by its
    /// own configuration.
    pub fn apptainer(&self) -> String {
        match self {
            Self::File(path) => path.to_string(),
            Self::Registry { registry, repository, version, .. } => {
                let registry = registry.as_ref().map(|host| format!("{host}/")).unwrap_or_default();
                format!("docker://{registry}{repository}{version}")
            }
            // This spelling needs a tag.
            Self::Daemon { name, version } if version.is_empty() => format!("docker-daemon:{name}:latest"),
            Self::Daemon { name, version } => format!("docker-daemon:{name}{version}"),
        }
    }

    /// Its path, if it is a file on the cluster.
    pub fn file(&self) -> Option<&slurm::RemotePath> {
        match self {
            Self::File(path) => Some(path),
            Self::Registry { .. } | Self::Daemon { .. } => None,
        }
    }

    /// Whether its tag usually moves: `latest`, or none.
    pub fn is_latest(&self) -> bool {
        match self {
            Self::File(_) => false,
            Self::Registry { version, .. } | Self::Daemon { version, .. } => {
                version.is_empty() || version == ":latest"
            }
        }
    }

    /// The name of its file in a cache. Two images never share one: each separator in an image's name maps to a character
    /// that no image's name contains. A name that would be too long ends in a hash.
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
        // No other name contains a comma.
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
