//! Reading an image's name.

use std::str::FromStr;

use super::ImageRef;

/// Docker's and the registries' limit, in characters.
const LONGEST_NAME: usize = 255;

/// Why a text names no image.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidImage(&'static str);

impl FromStr for ImageRef {
    type Err = InvalidImage;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.starts_with('/') {
            let path = text.parse().map_err(|_| InvalidImage("is not a clean absolute path"))?;
            return Ok(Self::File(path));
        }
        if let Some(rest) = text.strip_prefix("dockerd://") {
            let (host, name) = split_registry(rest);
            let (repository, version) = named(host, name)?;
            let name = host.map(|host| format!("{}/", host.to_ascii_lowercase())).unwrap_or_default();
            let name = format!("{name}{repository}");
            // A host without a dot or port is a part of the name once it is written out.
            if name.len() > LONGEST_NAME {
                return Err(InvalidImage("has a name of more than 255 characters"));
            }
            return Ok(Self::Daemon { name, version });
        }
        let (user, rest) = split_user(text.strip_prefix("docker://").unwrap_or(text));
        if user.is_some_and(|user| !is_user(user)) {
            return Err(InvalidImage("has a user of letters other than A-Z a-z 0-9 . _ - and a leading $"));
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

/// `user@` before everything else; the `@` of a digest is none.
fn split_user(text: &str) -> (Option<&str>, &str) {
    match text.split_once('@') {
        Some((user, rest)) if !rest.starts_with("sha256:") => (Some(user), rest),
        _ => (None, text),
    }
}

fn split_registry(text: &str) -> (Option<&str>, &str) {
    match text.split_once('#') {
        Some((host, name)) => (Some(host), name),
        // The same rule as Docker's: the first part is a host only if it could not be an organisation.
        None => match text.split_once('/') {
            Some((host, name)) if host.contains(['.', ':']) || host == "localhost" => (Some(host), name),
            _ => (None, text),
        },
    }
}

/// Repository and version, once all parts are what a registry accepts.
fn named(host: Option<&str>, name: &str) -> Result<(String, String), InvalidImage> {
    if host.is_some_and(|host| !is_host(host)) {
        return Err(InvalidImage("has a registry that is no host name (letters, digits, `.`, `-`, `:port`)"));
    }
    let (repository, version) = match name.find(['@', ':']) {
        Some(at) => name.split_at(at),
        None => (name, ""),
    };
    if repository.len() > LONGEST_NAME || !repository.split('/').all(is_component) {
        return Err(InvalidImage(
            "has a name that no registry accepts: lower-case letters, digits, `.`, `_`, `-`, parted by `/`",
        ));
    }
    // With a digest, a tag says nothing more.
    let (tag, digest) = match version.split_once('@') {
        Some((tag, digest)) => (tag, Some(digest)),
        None => (version, None),
    };
    if !(tag.is_empty() || is_tag(tag)) || digest.is_some_and(|digest| !is_digest(digest)) {
        return Err(InvalidImage("has a tag or digest that no registry accepts"));
    }
    let version = digest.map_or_else(|| tag.to_owned(), |digest| format!("@{digest}"));
    Ok((repository.to_owned(), version))
}

/// Enroot's own: a login name, or `$oauthtoken`.
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
