//! A bind mount of the container.

use std::{fmt, str::FromStr};

use serde_with::{DeserializeFromStr, SerializeDisplay};
use slurm::RemotePath;

/// A bind mount of the container: `/source`, `/source:/inside` or `/source:/inside:ro`.
#[derive(Debug, Clone, PartialEq, Eq, SerializeDisplay, DeserializeFromStr)]
pub struct Mount {
    source: RemotePath,
    inside: Option<RemotePath>,
    read_only: bool,
}

/// A text that is no mount.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("must be `/source`, `/source:/inside` or `/source:/inside:ro`, with absolute paths and no comma")]
pub struct InvalidMount;

impl FromStr for Mount {
    type Err = InvalidMount;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let path = |text: &str| text.parse::<RemotePath>().map_err(|_| InvalidMount);
        // Pyxis parts its mounts by commas, so a path with one cannot be said to it.
        if text.contains(',') {
            return Err(InvalidMount);
        }
        let parts: Vec<&str> = text.split(':').collect();
        match parts[..] {
            [source] => Ok(Self { source: path(source)?, inside: None, read_only: false }),
            [source, inside] => {
                Ok(Self { source: path(source)?, inside: Some(path(inside)?), read_only: false })
            }
            [source, inside, "ro"] => {
                Ok(Self { source: path(source)?, inside: Some(path(inside)?), read_only: true })
            }
            _ => Err(InvalidMount),
        }
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
}
