//! A container image, parsed once from every spelling that TAO accepts.

use std::{fmt, str::FromStr};

use serde_with::{DeserializeFromStr, SerializeDisplay};

/// Where the container comes from.
///
/// Accepted: `/path/image.sqsh`, `registry#image:tag`, `docker://registry#image:tag`,
/// `registry/image:tag`, Docker Hub names with and without an organisation, digests, ports.
#[derive(Debug, Clone, PartialEq, Eq, Hash, SerializeDisplay, DeserializeFromStr)]
pub enum ImageRef {
    /// A SquashFS file on the cluster.
    File(slurm::RemotePath),
    Registry {
        /// `host` or `host:port`; none means Docker Hub.
        registry: Option<String>,
        /// `nvidia/tao/tao-toolkit`
        repository: String,
        /// `:tag` or `@sha256:…`, with its separator; empty when neither was given.
        version: String,
    },
}

/// Why a text names no image.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidImage(&'static str);

impl ImageRef {
    /// The spelling that Pyxis reads: `[REGISTRY#]IMAGE[:TAG]|PATH`.
    pub fn pyxis(&self) -> String {
        match self {
            Self::File(path) => path.to_string(),
            Self::Registry { registry: Some(host), repository, version } => {
                format!("{host}#{repository}{version}")
            }
            Self::Registry { registry: None, repository, version } => format!("{repository}{version}"),
        }
    }

    /// The spelling that `enroot import` reads: `docker://[REGISTRY#]IMAGE[:TAG]`.
    pub fn enroot(&self) -> String {
        format!("docker://{}", self.pyxis())
    }

    /// Whether its tag moves by custom: `latest`, or none.
    pub fn is_latest(&self) -> bool {
        matches!(self, Self::Registry { version, .. } if version.is_empty() || version == ":latest")
    }

    /// The name of its file in a cache: two images never share one, because each character that parts an image's
    /// name stands for itself alone, as one that no image's name has.
    pub fn cache_file_name(&self) -> String {
        let other = |c| match c {
            '/' => '+',
            ':' => '=',
            '#' => '~',
            c => c,
        };
        format!("{}.sqsh", self.pyxis().chars().map(other).collect::<String>())
    }
}

impl FromStr for ImageRef {
    type Err = InvalidImage;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.starts_with('/') {
            let path = text.parse().map_err(|_| InvalidImage("is not a clean absolute path"))?;
            return Ok(Self::File(path));
        }
        let rest = text.strip_prefix("docker://").unwrap_or(text);
        let (registry, name) = match rest.split_once('#') {
            Some((host, name)) => (Some(host), name),
            // The same rule as Docker's: the first part is a host only if it could not be an organisation.
            None => match rest.split_once('/') {
                Some((host, name)) if host.contains(['.', ':']) || host == "localhost" => (Some(host), name),
                _ => (None, rest),
            },
        };
        if registry.is_some_and(|host| !is_host(host)) {
            return Err(InvalidImage(
                "has a registry that is no host name (letters, digits, `.`, `-`, `:port`)",
            ));
        }
        let (repository, version) = split_version(name);
        if !repository.split('/').all(is_component) {
            return Err(InvalidImage(
                "has a name that no registry accepts: lower-case letters, digits, `.`, `_`, `-`, parted by `/`",
            ));
        }
        if !is_version(version) {
            return Err(InvalidImage("has a tag or digest that no registry accepts"));
        }
        Ok(Self::Registry {
            registry: registry.map(str::to_owned),
            repository: repository.to_owned(),
            version: version.to_owned(),
        })
    }
}

impl fmt::Display for ImageRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.pyxis())
    }
}

fn split_version(name: &str) -> (&str, &str) {
    match name.find(['@', ':']) {
        Some(at) => name.split_at(at),
        None => (name, ""),
    }
}

fn is_host(host: &str) -> bool {
    let (name, port) = host.split_once(':').unwrap_or((host, "0"));
    !name.is_empty()
        && name.len() <= 253
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-'))
        && port.parse::<u16>().is_ok()
}

fn is_component(part: &str) -> bool {
    part.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
        && part.len() <= 255
        && part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '_' | '-'))
}

fn is_version(version: &str) -> bool {
    if let Some(digest) = version.strip_prefix("@sha256:") {
        return digest.len() == 64 && digest.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'));
    }
    match version.strip_prefix(':') {
        Some(tag) => {
            tag.len() <= 128
                && tag.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
                && tag.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
        }
        None => version.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test_case("/lustre/images/tao.sqsh", "/lustre/images/tao.sqsh" ; "a file")]
    #[test_case("registry.example/nvidia/tao/tao-toolkit:6.26.3-pyt", "registry.example#nvidia/tao/tao-toolkit:6.26.3-pyt" ; "registry with slashes")]
    #[test_case("registry.example#nvidia/tao/x:1", "registry.example#nvidia/tao/x:1" ; "the form of Pyxis")]
    #[test_case("docker://registry.example#a/b:1", "registry.example#a/b:1" ; "the form of Enroot")]
    #[test_case("docker://registry.example/a/b:1", "registry.example#a/b:1" ; "a URL with slashes")]
    #[test_case("localhost:5000/a/b:1", "localhost:5000#a/b:1" ; "a port")]
    #[test_case("myorg/img:tag", "myorg/img:tag" ; "Docker Hub with an organisation")]
    #[test_case("ubuntu", "ubuntu" ; "Docker Hub without")]
    #[test_case("ubuntu:22.04", "ubuntu:22.04" ; "Docker Hub with a tag")]
    fn every_accepted_spelling_reaches_pyxis(text: &str, pyxis: &str) {
        let image = text.parse::<ImageRef>().unwrap();
        assert_eq!(image.pyxis(), pyxis);
        assert_eq!(pyxis.parse::<ImageRef>().unwrap(), image, "what we store reads back as the same image");
    }

    #[test_case("myorg#img:1", "myorg/img:1" ; "a registry and an organisation of one name")]
    #[test_case("a/b:c", "a/b-c" ; "a tag")]
    #[test_case("a/b_c", "a/b/c" ; "a slash and an underscore")]
    #[test_case("r.io/a:5_b", "r.io:5/a_b" ; "a port and a tag")]
    #[test_case("img", "img:latest" ; "no tag and latest")]
    fn two_images_never_share_a_file(one: &str, other: &str) {
        let name = |text: &str| text.parse::<ImageRef>().unwrap().cache_file_name();
        assert_ne!(name(one), name(other));
        assert!(!name(one).contains('/') && name(one).len() > 5);
    }

    #[test_case("" ; "nothing")]
    #[test_case("a b" ; "a space")]
    #[test_case("x:1,/etc:/etc" ; "a mount smuggled in")]
    #[test_case("--container-image=x" ; "an option")]
    #[test_case("reg.io#a\n#SBATCH --uid=0" ; "a newline")]
    #[test_case("/lustre/../etc/shadow" ; "a path that climbs")]
    #[test_case("x@sha256:abc" ; "a short digest")]
    #[test_case("reg.io#A/B" ; "capitals")]
    fn a_text_that_is_no_image_is_refused(text: &str) {
        assert!(text.parse::<ImageRef>().is_err());
    }
}
