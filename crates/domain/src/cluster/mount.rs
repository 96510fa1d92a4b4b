//! A bind mount of the container.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, de};
use serde_with::SerializeDisplay;
use slurm::RemotePath;

/// Pyxis writes each mount into a shell script, which expands these.
const EXPANDED: [char; 5] = ['$', '`', '"', '\'', '\\'];

/// A bind mount of the container: `/source`, `/source:/inside` or `/source:/inside:ro`.
#[derive(Debug, Clone, PartialEq, Eq, SerializeDisplay)]
pub struct Mount {
    source: RemotePath,
    inside: Option<RemotePath>,
    read_only: bool,
}

impl Mount {
    /// The path inside the container.
    pub fn inside(&self) -> &RemotePath {
        self.inside.as_ref().unwrap_or(&self.source)
    }

    /// The path on the cluster.
    pub fn source(&self) -> &RemotePath {
        &self.source
    }

    /// Whether the mount makes a path of the cluster visible to the container.
    pub fn shows(&self, path: &RemotePath) -> bool {
        path.is_within(&self.source)
    }

    /// The path on the cluster of a path in the container, if it is below this mount.
    pub fn on_cluster(&self, path: &RemotePath) -> Option<RemotePath> {
        let rest = path.as_str().strip_prefix(self.inside().as_str())?;
        match rest.strip_prefix('/') {
            Some(below) => self.source.join(below).ok(),
            None => rest.is_empty().then(|| self.source.clone()),
        }
    }
}

impl From<RemotePath> for Mount {
    fn from(source: RemotePath) -> Self {
        Self { source, inside: None, read_only: false }
    }
}

/// A text that is not a valid mount.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidMount {
    #[error("must be `/source`, `/source:/inside` or `/source:/inside:ro`, with absolute paths and no comma")]
    Form,
    #[error("must not contain {0}, which the shell of Pyxis would expand: use a path without it")]
    Expanded(char),
}

impl Mount {
    /// The mount of a stored job, which may have been accepted before [`EXPANDED`] was refused.
    fn stored(text: &str) -> Result<Self, InvalidMount> {
        let path = |text: &str| text.parse::<RemotePath>().map_err(|_| InvalidMount::Form);
        // Pyxis takes a comma-separated list, so a path cannot contain a comma.
        if text.contains(',') {
            return Err(InvalidMount::Form);
        }
        let parts: Vec<&str> = text.split(':').collect();
        let (source, inside, read_only) = match parts[..] {
            [source] => (source, None, false),
            [source, inside] => (source, Some(path(inside)?), false),
            [source, inside, "ro"] => (source, Some(path(inside)?), true),
            _ => return Err(InvalidMount::Form),
        };
        Ok(Self { source: path(source)?, inside, read_only })
    }
}

impl FromStr for Mount {
    type Err = InvalidMount;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.chars().find(|c| EXPANDED.contains(c)) {
            Some(expanded) => Err(InvalidMount::Expanded(expanded)),
            None => Self::stored(text),
        }
    }
}

impl<'de> Deserialize<'de> for Mount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::stored(&text).map_err(de::Error::custom)
    }
}

impl fmt::Display for Mount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.source)?;
        if let Some(inside) = &self.inside {
            write!(f, ":{inside}")?;
        }
        if self.read_only { f.write_str(":ro") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test_case("/lustre" ; "one path")]
    #[test_case("/lustre:/data" ; "two paths")]
    #[test_case("/lustre:/data:ro" ; "read-only")]
    fn a_mount_reads_back_as_itself(text: &str) {
        assert_eq!(text.parse::<Mount>().unwrap().to_string(), text);
    }

    #[test_case("/data$x", '$' ; "a dollar sign")]
    #[test_case("/data:/in`id`", '`' ; "a backquote")]
    #[test_case("/my \"data\":/data:ro", '"' ; "double quotes")]
    #[test_case("/it's", '\'' ; "an apostrophe")]
    #[test_case("/a\\b", '\\' ; "a backslash")]
    fn a_character_that_pyxis_would_expand_is_refused_by_name(text: &str, character: char) {
        let error = text.parse::<Mount>().unwrap_err();
        assert_eq!(error, InvalidMount::Expanded(character));
        assert!(error.to_string().contains(character), "{error}");
    }

    #[test]
    fn a_mount_that_was_stored_before_still_reads() {
        let text = "\"/data$x:/data\"";
        let mount: Mount = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&mount).unwrap(), text);
    }

    #[test_case("/lustre", "/lustre/a", Some("/lustre/a") ; "the same path")]
    #[test_case("/lustre/x:/data", "/data/a", Some("/lustre/x/a") ; "another name inside")]
    #[test_case("/lustre/x:/data", "/data", Some("/lustre/x") ; "the mount itself")]
    #[test_case("/lustre", "/lustre2/a", None ; "a name that begins alike")]
    #[test_case("/lustre:/data", "/lustre/a", None ; "the outer name is not seen inside")]
    fn a_path_of_the_container_is_found_on_the_cluster(mount: &str, path: &str, found: Option<&str>) {
        let found_path = mount.parse::<Mount>().unwrap().on_cluster(&path.parse().unwrap());
        assert_eq!(found_path.as_ref().map(RemotePath::as_str), found);
    }
}
