//! Parsing an image's name.

use std::str::FromStr;

use super::ImageRef;

/// The limit of Docker and registries, in characters.
const LONGEST_NAME: usize = 255;

/// Why a text is not a valid image.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}; got {1}")]
pub struct InvalidImage(&'static str, String);

impl FromStr for ImageRef {
    type Err = InvalidImage;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // Someone may have put a password before the `@`.
        Self::parse(text).map_err(|rule| InvalidImage(rule, slurm::shown(split_user(text).1)))
    }
}

impl ImageRef {
    fn parse(text: &str) -> Result<Self, &'static str> {
        if text.starts_with('/') {
            let path = text.parse().map_err(|_| "is not a clean absolute path")?;
            return Ok(Self::File(path));
        }
        if let Some(rest) = text.strip_prefix("dockerd://") {
            let (host, name) = split_registry(rest);
            let (repository, version) = named(host, name)?;
            let name = host.map(|host| format!("{}/", host.to_ascii_lowercase())).unwrap_or_default();
            let name = format!("{name}{repository}");
            // The written name includes the host, and must parse again.
            if name.len() > LONGEST_NAME {
                return Err("has a name of more than 255 characters");
            }
            return Ok(Self::Daemon { name, version });
        }
        let (user, rest) = split_user(text.strip_prefix("docker://").unwrap_or(text));
        if user.is_some_and(|user| !is_user(user)) {
            return Err("has an invalid user: allowed are A-Z a-z 0-9 . _ - and a leading $");
        }
        let (host, name) = split_registry(rest);
        let (repository, version) = named(host, name)?;
        Ok(Self::Registry {
            user: user.map(str::to_owned),
            registry: host.map(str::to_ascii_lowercase),
            repository,
            version,
        })
    }
}

/// Splits off `user@`. The `@` of a digest does not count.
fn split_user(text: &str) -> (Option<&str>, &str) {
    match text.split_once('@') {
        Some((user, rest)) if !rest.starts_with("sha256:") => (Some(user), rest),
        _ => (None, text),
    }
}

fn split_registry(text: &str) -> (Option<&str>, &str) {
    match text.split_once('#') {
        Some((host, name)) => (Some(host), name),
        // Docker's rule: the first part is a host only if it cannot be an organization.
        None => match text.split_once('/') {
            Some((host, name)) if host.contains(['.', ':']) || host == "localhost" => (Some(host), name),
            _ => (None, text),
        },
    }
}

/// Validates all parts, and returns the repository and the version.
fn named(host: Option<&str>, name: &str) -> Result<(String, String), &'static str> {
    if host.is_some_and(|host| !is_host(host)) {
        return Err("has an invalid registry: it must be a host name (letters, digits, `.`, `-`, `:port`)");
    }
    let (repository, version) = match name.find(['@', ':']) {
        Some(at) => name.split_at(at),
        None => (name, ""),
    };
    if repository.len() > LONGEST_NAME || !repository.split('/').all(is_component) {
        return Err(
            "has an invalid name: allowed are parts of lower-case letters, digits, `.`, `_`, `-`, separated by `/`",
        );
    }
    // A digest makes the tag redundant.
    let (tag, digest) = match version.split_once('@') {
        Some((tag, digest)) => (tag, Some(digest)),
        None => (version, None),
    };
    if !(tag.is_empty() || is_tag(tag)) || digest.is_some_and(|digest| !is_digest(digest)) {
        return Err("has an invalid tag or digest");
    }
    let version = digest.map_or_else(|| tag.to_owned(), |digest| format!("@{digest}"));
    Ok((repository.to_owned(), version))
}

/// Enroot's rule: a login name, or `$oauthtoken`.
fn is_user(user: &str) -> bool {
    let name = user.strip_prefix('$').unwrap_or(user);
    name.len() <= 64
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
}

fn is_host(host: &str) -> bool {
    let (name, port) = host.split_once(':').unwrap_or((host, "1"));
    !name.is_empty()
        && name.len() <= 253
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-'))
        && port.chars().all(|c| c.is_ascii_digit())
        && port.parse::<u16>().is_ok_and(|port| port > 0)
}

fn is_component(part: &str) -> bool {
    part.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
        && part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '_' | '-'))
}

fn is_tag(tag: &str) -> bool {
    tag.strip_prefix(':').is_some_and(|tag| {
        tag.len() <= 128
            && tag.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
            && tag.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
    })
}

fn is_digest(digest: &str) -> bool {
    digest
        .strip_prefix("sha256:")
        .is_some_and(|hex| hex.len() == 64 && hex.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f')))
}
