//! A configuration as Hydra composes it: the named defaults, the file, what the command line changes, and references between values.

use anyhow::{anyhow, bail};
use serde_json::{Map, Value};

use super::{deployments, merge::merge};

/// How deep references may refer to references.
const DEEPEST: usize = 10;
/// Hydra's mark of a value that has to be given.
const MISSING: &str = "???";

/// The whole configuration. References are resolved when a value is read.
pub(super) struct Config(Value);

impl Config {
    /// `changes`: values by their dotted paths.
    pub(super) fn compose(file: Value, changes: &[(String, Value)]) -> anyhow::Result<Self> {
        let mut whole = Value::Object(Map::new());
        let defaults = file.get("defaults").and_then(Value::as_array).cloned().unwrap_or_default();
        for default in &defaults {
            let (group, name) = match default {
                Value::String(text) if text == "_self_" => continue,
                Value::String(text) => (text.as_str(), None),
                Value::Object(fields) => match fields.iter().next() {
                    Some((group, name)) => (group.as_str(), name.as_str()),
                    None => continue,
                },
                other => bail!("`defaults` has {other}; it must have names such as `deployment: vllm`"),
            };
            // `deployment/vllm@auxiliary_deployments.judge` puts the default `vllm` of the group at another place.
            let (group, place) = group.split_once('@').unwrap_or((group, ""));
            let (group, name) = match name {
                Some(name) => (group, name),
                None => {
                    group.split_once('/').ok_or_else(|| anyhow!("`defaults` has {group} without a name"))?
                }
            };
            let value = match group {
                "execution" => deployments::execution(name),
                "deployment" => deployments::deployment(name),
                _ => None,
            };
            let value = value.ok_or_else(|| anyhow!("the default `{group}: {name}` is not known here"))?;
            put(&mut whole, if place.is_empty() { group } else { place }, value);
        }
        let mut file = file;
        file.as_object_mut().and_then(|fields| fields.remove("defaults"));
        merge(&mut whole, file);
        for (path, value) in changes {
            put(&mut whole, path.trim_start_matches('+'), value.clone());
        }
        Ok(Self(whole))
    }

    /// The value at a dotted path, with all references in it resolved. `None` if it is missing, null or has to be given.
    pub(super) fn get(&self, path: &str) -> anyhow::Result<Option<Value>> {
        match at(&self.0, path) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if text == MISSING => Ok(None),
            Some(value) => self.resolved(value, section(path), 0).map(Some),
        }
    }

    pub(super) fn text(&self, path: &str) -> anyhow::Result<Option<String>> {
        Ok(self.get(path)?.map(|value| match value {
            Value::String(text) => text,
            other => other.to_string(),
        }))
    }

    /// A value that has to be given.
    pub(super) fn needed(&self, path: &str) -> anyhow::Result<String> {
        let missing = || anyhow!("`{path}` is not set; set it in the file or with `-o {path}=…`");
        self.text(path)?.filter(|text| !text.is_empty()).ok_or_else(missing)
    }

    pub(super) fn number(&self, path: &str) -> anyhow::Result<Option<u32>> {
        let Some(text) = self.text(path)? else { return Ok(None) };
        text.parse().map(Some).map_err(|_| anyhow!("`{path}` is {text}; it must be a whole number"))
    }

    pub(super) fn fields(&self, path: &str) -> anyhow::Result<Map<String, Value>> {
        match self.get(path)? {
            None => Ok(Map::new()),
            Some(Value::Object(fields)) => Ok(fields),
            Some(_) => bail!("`{path}` must have fields"),
        }
    }

    /// The names of the fields, whatever their values are.
    pub(super) fn keys(&self, path: &str) -> Vec<String> {
        at(&self.0, path)
            .and_then(Value::as_object)
            .map(|fields| fields.keys().cloned().collect())
            .unwrap_or_default()
    }

    /// `section`: the deployment that the value is of. There `deployment.port` means its own port.
    fn resolved(&self, value: &Value, section: &str, depth: usize) -> anyhow::Result<Value> {
        Ok(match value {
            Value::String(text) => self.resolved_text(text, section, depth)?,
            Value::Array(list) => Value::Array(
                list.iter().map(|one| self.resolved(one, section, depth)).collect::<Result<_, _>>()?,
            ),
            Value::Object(fields) => {
                let resolved =
                    fields.iter().map(|(key, one)| Ok((key.clone(), self.resolved(one, section, depth)?)));
                Value::Object(resolved.collect::<anyhow::Result<_>>()?)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        })
    }

    fn resolved_text(&self, text: &str, section: &str, depth: usize) -> anyhow::Result<Value> {
        if depth > DEEPEST {
            bail!("the references in `{text}` refer to each other without end");
        }
        // `\${` is a text.
        let Some((before, rest)) = text.split_once("${").filter(|(before, _)| !before.ends_with('\\')) else {
            return Ok(text.replace("\\${", "${").into());
        };
        let Some((reference, after)) = rest.split_once('}') else { return Ok(text.into()) };
        let value = self.referred(reference, section, depth + 1)?;
        if before.is_empty() && after.is_empty() {
            return Ok(value);
        }
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let after = self.resolved_text(after, section, depth)?;
        Ok(format!("{before}{value}{}", after.as_str().unwrap_or_default()).into())
    }

    fn referred(&self, reference: &str, section: &str, depth: usize) -> anyhow::Result<Value> {
        if let Some(name) = reference.strip_prefix("oc.env:") {
            bail!("a value comes from the variable {name} of the environment; give it with `-o PATH=VALUE`");
        }
        if let Some(choices) = reference.strip_prefix("select_not_null:") {
            let (path, otherwise) = choices.split_once(',').unwrap_or((choices, ""));
            let found = self.scoped(path.trim(), section).filter(|value| !value.is_null());
            return match found.filter(|value| value.as_str() != Some(MISSING)) {
                Some(value) => self.resolved(value, section, depth),
                None => Ok(otherwise.trim().into()),
            };
        }
        match self.scoped(reference.trim(), section) {
            Some(Value::String(text)) if text == MISSING => {
                bail!("`{reference}` is not set; set it in the file or with `-o {reference}=…`")
            }
            Some(value) => self.resolved(value, section, depth),
            None => bail!("`${{{reference}}}` refers to nothing"),
        }
    }

    fn scoped(&self, path: &str, section: &str) -> Option<&Value> {
        let own = path.strip_prefix("deployment.").filter(|_| !section.is_empty());
        own.and_then(|rest| at(&self.0, &format!("{section}.{rest}"))).or_else(|| at(&self.0, path))
    }
}

/// The section of a path in an auxiliary deployment, such as `auxiliary_deployments.judge`.
fn section(path: &str) -> &str {
    let end = path.match_indices('.').nth(1).map_or(path.len(), |(end, _)| end);
    path.get(..end).filter(|section| section.starts_with("auxiliary_deployments.")).unwrap_or_default()
}

fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(value, |value, key| value.get(key))
}

/// Merges a value at a dotted path into the whole.
fn put(whole: &mut Value, path: &str, value: Value) {
    let nested = path
        .rsplit('.')
        .fold(value, |inner, key| Value::Object([(key.to_owned(), inner)].into_iter().collect()));
    merge(whole, nested);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn config(file: Value) -> Config {
        Config::compose(file, &[("execution.account".to_owned(), "ml".into())]).unwrap()
    }

    #[test]
    fn defaults_come_first_and_the_command_line_last() {
        let config = config(json!({
            "defaults": [{"execution": "slurm/default"}, {"deployment": "vllm"}, "_self_"],
            "execution": {"account": "???", "walltime": "04:00:00"},
            "deployment": {"served_model_name": "tiny", "tensor_parallel_size": 2, "hf_model_handle": "org/tiny"},
        }));
        assert_eq!(config.needed("execution.account").unwrap(), "ml");
        assert_eq!(config.needed("execution.walltime").unwrap(), "04:00:00");
        assert_eq!(config.number("deployment.port").unwrap(), Some(8000));
        let command = config.needed("deployment.command").unwrap();
        assert!(command.starts_with("vllm serve org/tiny --tensor-parallel-size=2 "), "{command}");
    }

    #[test]
    fn an_auxiliary_deployment_refers_to_itself() {
        let config = config(json!({
            "defaults": [{"deployment": "vllm"}, "deployment/vllm@auxiliary_deployments.judge"],
            "deployment": {"served_model_name": "tiny"},
            "auxiliary_deployments": {"judge": {"served_model_name": "large", "port": 8001}},
        }));
        let command = config.needed("auxiliary_deployments.judge.command").unwrap();
        assert!(command.contains("vllm serve /checkpoint ") && command.contains("--port 8001 "), "{command}");
        assert!(command.contains("--served-model-name large "), "{command}");
    }

    #[test]
    fn what_is_missing_or_refers_to_nothing_is_named() {
        let config = config(json!({
            "a": "???", "b": "${c.d}", "e": "${a}", "f": "${g}", "g": "${f}", "h": "${oc.env:USER}",
        }));
        for (path, part) in [
            ("a", "`a` is not set; set it in the file or with `-o a=…`"),
            ("b", "`${c.d}` refers to nothing"),
            ("e", "`a` is not set"),
            ("f", "without end"),
            ("h", "the variable USER of the environment"),
        ] {
            let error = config.needed(path).unwrap_err().to_string();
            assert!(error.contains(part), "{path}: {error}");
        }
        let odd = Config::compose(json!({"defaults": [{"deployment": "tgi"}]}), &[]);
        assert_eq!(odd.err().unwrap().to_string(), "the default `deployment: tgi` is not known here");
    }
}
