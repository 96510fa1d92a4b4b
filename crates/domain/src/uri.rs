//! URIs of the shared file system, turned into the paths that the container sees.

use serde_json::Value;

/// Turns `lustre:///abs` and `slurm://…` into absolute paths wherever they are a whole text value.
///
/// TAO also writes `slurm://None/abs` when a workspace has no bucket; the `None` is dropped as TAO drops it.
pub(crate) fn localise(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Some(path) = path_of(text) {
                *text = path;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(localise),
        Value::Object(fields) => fields.values_mut().for_each(localise),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The path that a shared-file-system URI stands for; nothing for any other text.
pub(crate) fn path_of(text: &str) -> Option<String> {
    let rest = text.strip_prefix("lustre://").or_else(|| text.strip_prefix("slurm://"))?;
    let rest = rest.strip_prefix("None/").unwrap_or(rest);
    Some(format!("/{}", rest.trim_start_matches('/')))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use test_case::test_case;

    use super::*;

    #[test_case("lustre:///lustre/a", Some("/lustre/a"))]
    #[test_case("slurm://None/lustre/a", Some("/lustre/a") ; "a workspace without bucket")]
    #[test_case("slurm://lustre/a", Some("/lustre/a"))]
    #[test_case("/lustre/a", None ; "a path already")]
    #[test_case("s3://bucket/a", None ; "another scheme")]
    fn a_uri_becomes_the_path_it_stands_for(uri: &str, path: Option<&str>) {
        assert_eq!(path_of(uri).as_deref(), path);
    }

    #[test]
    fn uris_are_found_at_any_depth() {
        let mut specs = json!({"train": {"dataset": ["lustre:///lustre/a", 3]}, "note": "see lustre:///x"});
        localise(&mut specs);
        assert_eq!(specs, json!({"train": {"dataset": ["/lustre/a", 3]}, "note": "see lustre:///x"}));
    }
}
