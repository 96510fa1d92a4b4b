//! The data sets of a specification: which keys name them, where they may be, and which of their paths must exist.
//!
//! Each network has its own schema, and new networks appear. But networks use similar names for their data. The tables in
//! `keys` hold these names, from the networks' configuration files in the `nvidia-tao-core` package. The value of any
//! other key stays as it is, except that a whole value with `lustre://` or `slurm://` becomes a path.

mod keys;

use std::collections::BTreeSet;

use serde_json::Value;
use slurm::RemotePath;

use self::keys::{Role, names_a_root, role};
use crate::{
    cluster::mount::Mount,
    request::uri::{Reference, reference},
    violation::{Violation, pointer},
};

/// The result of the examination.
#[derive(Debug, Default)]
pub(crate) struct Examined {
    /// Paths that must exist on the cluster.
    pub(crate) required: BTreeSet<RemotePath>,
    pub(crate) faults: Vec<Violation>,
}

/// The position of a value in the specification.
#[derive(Clone, Copy)]
struct Context {
    role: Role,
    /// A key beside or above it names an absolute directory, and relative names are below that.
    rooted: bool,
}

/// Replaces URIs of the shared file system by paths, at any depth, and examines references to data sets.
///
/// `mounts` define which absolute paths of the container are on the cluster. The others are part of the image, and
/// cannot be checked.
pub(crate) fn examine(specs: &mut Value, at: &str, mounts: &[Mount]) -> Examined {
    let mut examined = Examined::default();
    let context = Context { role: Role::Other, rooted: false };
    walk(specs, at, context, mounts, &mut examined);
    examined
}

fn walk(value: &mut Value, at: &str, context: Context, mounts: &[Mount], examined: &mut Examined) {
    match value {
        Value::String(text) => {
            if let Some(path) = text_value(text, at, context, mounts, examined) {
                *text = path;
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                walk(item, &format!("{at}/{index}"), context, mounts, examined);
            }
        }
        Value::Object(fields) => {
            let rooted = context.rooted || fields.iter().any(|(key, value)| is_root(key, value));
            for (key, value) in fields {
                let context = Context { role: role(key, context.role), rooted };
                walk(value, &pointer(at, key), context, mounts, examined);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn is_root(key: &str, value: &Value) -> bool {
    names_a_root(key)
        && value
            .as_str()
            .is_some_and(|text| matches!(reference(text), Reference::Absolute | Reference::Shared(Ok(_))))
}

/// Examines one text. Returns the path to replace it with, if it is a URI.
fn text_value(
    text: &str,
    at: &str,
    context: Context,
    mounts: &[Mount],
    examined: &mut Examined,
) -> Option<String> {
    let is_data = matches!(context.role, Role::Data | Role::Location);
    let mut fault = |code, detail: String| examined.faults.push(Violation::new(at, code, detail));
    match reference(text) {
        Reference::Shared(Err(error)) => fault("invalid", error.to_string()),
        Reference::Shared(Ok(path)) => {
            if is_data {
                examined.required.extend(path_to_check(&path));
            }
            return Some(path);
        }
        Reference::Absolute if is_data => match text.parse::<RemotePath>() {
            Ok(path) => {
                examined
                    .required
                    .extend(on_cluster(&path, mounts).and_then(|path| path_to_check(path.as_str())));
            }
            Err(error) => fault("invalid", error.to_string()),
        },
        Reference::Local { scheme } if is_data => fault(
            "local_path",
            format!(
                "is a file on your own machine ({scheme}://), which the cluster cannot access; put the data on its shared \
                 file system and name it as lustre:///path"
            ),
        ),
        Reference::Remote { scheme } if is_data => fault(
            "remote_data",
            format!(
                "is remote data ({scheme}://), which the job would download while it holds idle GPUs; put it on the shared \
                 file system first and name it as lustre:///path (checkpoints and configurations may be remote)"
            ),
        ),
        Reference::Bare if context.role == Role::Location && is_relative(text) && !context.rooted => fault(
            "local_path",
            "is a relative path, which the cluster cannot find; name it as lustre:///path".to_owned(),
        ),
        Reference::Absolute | Reference::Local { .. } | Reference::Remote { .. } | Reference::Bare => {}
    }
    None
}

/// Neither empty nor a placeholder (`???` and `${…}` are Hydra's).
fn is_relative(text: &str) -> bool {
    !text.trim().is_empty() && text != "???" && !text.contains("${")
}

/// The path on the cluster of a path in the container; `None` for a path of the image.
fn on_cluster(path: &RemotePath, mounts: &[Mount]) -> Option<RemotePath> {
    // The innermost of nested mounts is visible to the container.
    mounts
        .iter()
        .filter_map(|mount| mount.on_cluster(path).map(|found| (mount.inside().as_str().len(), found)))
        .max_by_key(|(length, _)| *length)
        .map(|(_, found)| found)
}

/// The path whose existence can be checked: for a pattern, the directory before it.
pub(crate) fn path_to_check(path: &str) -> Option<RemotePath> {
    let path = match path.find(['*', '?', '[', '{']) {
        Some(at) => &path[..path[..at].rfind('/').unwrap_or(0)],
        None => path,
    };
    path.parse().ok()
}

#[cfg(test)]
mod tests;
