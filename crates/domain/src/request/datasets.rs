//! The data sets of a specification: which keys name them, where they may lie, and which of their paths must exist.
//!
//! A specification has no schema that we know: each network has its own, and new ones come. What is certain is that
//! networks name their data alike. The tables below hold those names, taken from the configuration files that the
//! `nvidia-tao-core` package has for its networks. A key that stands in none of them is left as it is, but for
//! `lustre://` and `slurm://`, which become paths wherever they are a whole value.

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

/// What a job asks to be there.
#[derive(Debug, Default)]
pub(crate) struct Examined {
    /// Paths on the cluster.
    pub(crate) required: BTreeSet<RemotePath>,
    pub(crate) faults: Vec<Violation>,
}

/// Where in the specification a value stands.
#[derive(Clone, Copy)]
struct Context {
    role: Role,
    /// A key beside it or above it names an absolute directory: relative names are looked for in there.
    rooted: bool,
}

/// Turns URIs of the shared file system into paths, at any depth, and looks at what the data sets refer to.
///
/// `mounts` say which absolute paths of the container lie on the cluster: the others are part of the image, and
/// cannot be looked for.
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

/// Looks at one text; the path it stands for, if it has to be replaced.
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
                examined.required.extend(to_look_for(&path));
            }
            return Some(path);
        }
        Reference::Absolute if is_data => match text.parse::<RemotePath>() {
            Ok(path) => {
                examined
                    .required
                    .extend(on_cluster(&path, mounts).and_then(|path| to_look_for(path.as_str())));
            }
            Err(error) => fault("invalid", error.to_string()),
        },
        Reference::Local { scheme } if is_data => fault(
            "local_path",
            format!(
                "names a file of your own machine ({scheme}://), which the cluster does not have; put the data on \
                 its shared file system and say lustre:///path"
            ),
        ),
        Reference::Remote { scheme } if is_data => fault(
            "remote_data",
            format!(
                "names data that would be fetched ({scheme}://) while the job holds its GPUs idle; put them on the \
                 shared file system first and say lustre:///path (checkpoints and configurations may be remote)"
            ),
        ),
        Reference::Bare if context.role == Role::Location && is_relative(text) && !context.rooted => fault(
            "local_path",
            "is a relative path, which the cluster cannot find; say lustre:///path".to_owned(),
        ),
        Reference::Absolute | Reference::Local { .. } | Reference::Remote { .. } | Reference::Bare => {}
    }
    None
}

/// Neither nothing, nor a value that is still to be filled in (`???` and `${…}` are those of Hydra).
fn is_relative(text: &str) -> bool {
    !text.trim().is_empty() && text != "???" && !text.contains("${")
}

/// Where a path of the container lies on the cluster; nothing for a path of the image.
fn on_cluster(path: &RemotePath, mounts: &[Mount]) -> Option<RemotePath> {
    // Of nested mounts the innermost is what the container sees.
    mounts
        .iter()
        .filter_map(|mount| mount.on_cluster(path).map(|found| (mount.inside().as_str().len(), found)))
        .max_by_key(|(length, _)| *length)
        .map(|(_, found)| found)
}

/// The path whose existence can be asked for: of a pattern, the directory that it begins with.
pub(crate) fn to_look_for(path: &str) -> Option<RemotePath> {
    let path = match path.find(['*', '?', '[', '{']) {
        Some(at) => &path[..path[..at].rfind('/').unwrap_or(0)],
        None => path,
    };
    path.parse().ok()
}

#[cfg(test)]
mod tests;
