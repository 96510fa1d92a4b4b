//! A configuration as Hydra composes it: the named defaults, the file, what the command line changes, and references between values.

use std::fmt::Display;

use anyhow::{anyhow, bail};
use domain::is_secret_key;
use serde_json::{Map, Value};

use super::{deployments, merge::merge};

/// How deep references may refer to references.
const DEEPEST: usize = 10;
/// Hydra's mark of a value that has to be given.
const MISSING: &str = "???";

/// The value of a variable on this machine.
pub(crate) type Host<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The whole configuration. References are resolved when a value is read.
pub(super) struct Config<'a> {
    whole: Value,
    pub(super) host: Host<'a>,
}

impl<'a> Config<'a> {
    /// `changes`: values by their dotted paths, in which a number is a place in a list.
    pub(super) fn compose(file: Value, changes: &[(String, Value)], host: Host<'a>) -> anyhow::Result<Self> {
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
            put(&mut whole, if place.is_empty() { group } else { place }, value)?;
        }
        let mut file = file;
        file.as_object_mut().and_then(|fields| fields.remove("defaults"));
        merge(&mut whole, file);
        for (path, value) in changes {
            put(&mut whole, path.trim_start_matches('+'), value.clone())?;
        }
        Ok(Self { whole, host })
    }

    /// The value at a dotted path, with all references in it resolved. `None` if it is missing, null or has to be given.
    pub(super) fn get(&self, path: &str) -> anyhow::Result<Option<Value>> {
        match at(&self.whole, path) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if text == MISSING => Ok(None),
            Some(value) => self.resolved(value, path, 0).map(Some),
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

    /// Whether there is a value, which need not be readable.
    pub(super) fn has(&self, path: &str) -> bool {
        at(&self.whole, path).is_some_and(|value| !value.is_null())
    }

    /// Mounts such as `/data: /inside`, as a request has them.
    pub(super) fn mounts(&self, path: &str) -> anyhow::Result<Vec<String>> {
        let mounts = self.fields(path)?.into_iter().map(|(outside, inside)| {
            if !outside.starts_with('/') {
                bail!("`{path}` has the relative path {outside}; give its absolute path on the cluster");
            }
            Ok(format!("{outside}:{}", inside.as_str().unwrap_or(&outside)))
        });
        mounts.collect()
    }

    /// The names of the fields, whatever their values are.
    pub(super) fn keys(&self, path: &str) -> Vec<String> {
        at(&self.whole, path)
            .and_then(Value::as_object)
            .map(|fields| fields.keys().cloned().collect())
            .unwrap_or_default()
    }

    /// `path`: the place of the value. In an auxiliary deployment, `deployment.port` means its own port.
    fn resolved(&self, value: &Value, path: &str, depth: usize) -> anyhow::Result<Value> {
        let inner = |key: &dyn Display, one| self.resolved(one, &format!("{path}.{key}"), depth);
        Ok(match value {
            Value::String(text) if text == MISSING => {
                bail!("`{path}` is not set; set it in the file or with `-o {path}=…`")
            }
            Value::String(text) => self.resolved_text(text, path, depth)?,
            Value::Array(list) => Value::Array(
                list.iter().enumerate().map(|(place, one)| inner(&place, one)).collect::<Result<_, _>>()?,
            ),
            Value::Object(fields) => {
                let resolved = fields.iter().map(|(key, one)| Ok((key.clone(), inner(key, one)?)));
                Value::Object(resolved.collect::<anyhow::Result<_>>()?)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        })
    }

    fn resolved_text(&self, text: &str, path: &str, depth: usize) -> anyhow::Result<Value> {
        if depth > DEEPEST {
            bail!("the references in `{text}` refer to each other without end");
        }
        // `\${` is a text.
        let Some((before, rest)) = text.split_once("${").filter(|(before, _)| !before.ends_with('\\')) else {
            return Ok(text.replace("\\${", "${").into());
        };
        let Some((reference, after)) = rest.split_once('}') else { return Ok(text.into()) };
        let value = self.referred(reference, path, depth + 1)?;
        if before.is_empty() && after.is_empty() {
            return Ok(value);
        }
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let after = self.resolved_text(after, path, depth)?;
        Ok(format!("{before}{value}{}", after.as_str().unwrap_or_default()).into())
    }

    /// What a reference in the value at this path refers to.
    fn referred(&self, reference: &str, path: &str, depth: usize) -> anyhow::Result<Value> {
        if reference.contains("${") {
            bail!("`{path}` has a reference in a reference; give its value with `-o {path}=…`");
        }
        if let Some(variable) = reference.strip_prefix("oc.env:") {
            let (name, otherwise) = match variable.split_once(',') {
                Some((name, otherwise)) => (name.trim(), Some(otherwise.trim().to_owned())),
                None => (variable.trim(), None),
            };
            if name.parse().is_ok_and(|key| is_secret_key(&key)) {
                bail!(
                    "`{path}` would show the secret {name}; give it as a variable with the value `host:{name}`"
                );
            }
            let missing = || {
                anyhow!(
                    "`{path}` needs the variable {name} of the environment; set it, or give `-o {path}=…`"
                )
            };
            return Ok((self.host)(name).or(otherwise).ok_or_else(missing)?.into());
        }
        if let Some(choices) = reference.strip_prefix("select_not_null:") {
            let (choice, otherwise) = choices.split_once(',').unwrap_or((choices, ""));
            let found = self.scoped(choice.trim(), path).filter(|(_, value)| !value.is_null());
            return match found.filter(|(_, value)| value.as_str() != Some(MISSING)) {
                Some((place, value)) => self.resolved(value, &place, depth),
                None => Ok(otherwise.trim().into()),
            };
        }
        match self.scoped(reference.trim(), path) {
            Some((place, value)) => self.resolved(value, &place, depth),
            None => bail!("`${{{reference}}}` refers to nothing"),
        }
    }

    /// The value that a reference names, and its place. `from`: the place of the reference.
    fn scoped(&self, path: &str, from: &str) -> Option<(String, &Value)> {
        let own = path
            .strip_prefix("deployment.")
            .zip(section(from))
            .map(|(rest, section)| format!("{section}.{rest}"));
        let find = |path: String| at(&self.whole, &path).map(|value| (path, value));
        own.and_then(find).or_else(|| find(path.to_owned()))
    }
}

/// The section of a path in an auxiliary deployment, such as `auxiliary_deployments.judge`.
fn section(path: &str) -> Option<&str> {
    let end = path.match_indices('.').nth(1).map_or(path.len(), |(end, _)| end);
    path.get(..end).filter(|section| section.starts_with("auxiliary_deployments."))
}

fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(value, |value, key| match value {
        Value::Array(list) => list.get(key.parse::<usize>().ok()?),
        other => other.get(key),
    })
}

/// Merges a value at a dotted path into the whole.
fn put(whole: &mut Value, path: &str, value: Value) -> anyhow::Result<()> {
    let mut place = whole;
    for key in path.split('.') {
        if let Value::Array(list) = place {
            let count = list.len();
            let one = key.parse::<usize>().ok().and_then(|number| list.get_mut(number));
            place = one
                .ok_or_else(|| anyhow!("`{path}`: {key} is no place in a list of {count}; the first is 0"))?;
            continue;
        }
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        let Some(fields) = place.as_object_mut() else { bail!("`{path}` is nowhere") };
        place = fields.entry(key).or_insert(Value::Null);
    }
    merge(place, value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn host(name: &str) -> Option<String> {
        (name == "USER").then(|| "ada".to_owned())
    }

    fn config(file: Value) -> Config<'static> {
        Config::compose(file, &[("execution.account".to_owned(), "ml".into())], &host).unwrap()
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
            "a": "???", "b": "${c.d}", "e": "${a}", "f": "${g}", "g": "${f}", "h": "${oc.env:HOSTNAME}", "i": [{"url": "???"}],
            "j": "${oc.env:API_TOKEN}", "k": "${oc.env:A,${oc.env:B}}",
        }));
        for (path, part) in [
            ("a", "`a` is not set; set it in the file or with `-o a=…`"),
            ("b", "`${c.d}` refers to nothing"),
            ("e", "`a` is not set"),
            ("f", "without end"),
            ("h", "`h` needs the variable HOSTNAME of the environment"),
            ("j", "`j` would show the secret API_TOKEN"),
            ("k", "`k` has a reference in a reference"),
            ("i", "`i.0.url` is not set; set it in the file or with `-o i.0.url=…`"),
        ] {
            let error = config.needed(path).unwrap_err().to_string();
            assert!(error.contains(part), "{path}: {error}");
        }
        let odd = Config::compose(json!({"defaults": [{"deployment": "tgi"}]}), &[], &host);
        assert_eq!(odd.err().unwrap().to_string(), "the default `deployment: tgi` is not known here");
    }

    #[test]
    fn a_value_may_come_from_the_environment() {
        let config = config(json!({"a": "/home/${oc.env:USER}", "b": "${oc.env:OTHER, none}"}));
        assert_eq!(config.needed("a").unwrap(), "/home/ada");
        assert_eq!(config.needed("b").unwrap(), "none");
    }

    #[test]
    fn a_number_in_a_path_is_a_place_in_a_list() {
        let file = || json!({"tasks": [{"url": "???"}, {"url": "b"}]});
        let changes = |path: &str| [(path.to_owned(), Value::from("c"))];
        let config = Config::compose(file(), &changes("tasks.0.url"), &host).unwrap();
        assert_eq!(config.get("tasks").unwrap(), Some(json!([{"url": "c"}, {"url": "b"}])));
        for path in ["tasks.2.url", "tasks.first.url"] {
            let error = Config::compose(file(), &changes(path), &host).err().unwrap().to_string();
            assert!(error.contains("is no place in a list of 2"), "{error}");
        }
    }
}
