//! The evaluations of a configuration as steps: each writes its configuration with the addresses of the servers, and runs.

use std::fmt::Write as _;

use anyhow::bail;
use serde_json::{Map, Value, json};

use super::{config::Config, merge::merge};

/// What stands for the results directory of an evaluation until it runs.
const RESULTS: &str = "@RESULTS@";

/// An evaluation.
#[derive(Debug)]
pub(super) struct Evaluation {
    /// Its name in the request.
    pub(super) name: String,
    /// Its name in the launcher.
    pub(super) task: String,
    /// Its place in the list of the file.
    pub(super) place: usize,
}

/// The most characters of a name, with room for a number.
const LONGEST: usize = 28;

/// The name of a program in a request, from any text.
pub(super) fn program_name(text: &str) -> String {
    let plain = |char: char| if char.is_ascii_alphanumeric() { char.to_ascii_lowercase() } else { '-' };
    let name: String = text.chars().map(plain).collect();
    let name = name.trim_matches('-');
    let begins = name.starts_with(|char: char| char.is_ascii_lowercase());
    let whole = if begins { name.to_owned() } else { format!("task-{name}") };
    // The end of a long name tells more than its beginning.
    let from = whole.len().saturating_sub(LONGEST);
    let end = whole.get(from..).unwrap_or(&whole).trim_start_matches(|char: char| !char.is_ascii_lowercase());
    let end = end.trim_matches('-');
    if end.is_empty() { "task".to_owned() } else { end.to_owned() }
}

/// The evaluations of the configuration. One that occurs again has a number.
pub(super) fn evaluations(config: &Config<'_>) -> anyhow::Result<Vec<Evaluation>> {
    let tasks = config.get("evaluation.tasks")?;
    let mut found: Vec<Evaluation> = Vec::new();
    for (place, task) in tasks.iter().flat_map(|tasks| tasks.as_array().into_iter().flatten()).enumerate() {
        let task = task.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        if task.is_empty() {
            bail!("`evaluation.tasks` has a task without a name");
        }
        let whole = program_name(&task);
        let names = std::iter::once(whole.clone()).chain((place..).map(|number| format!("{whole}-{number}")));
        let is_free = |name: &String| {
            name != "model"
                && found.iter().all(|one: &Evaluation| one.name != *name)
                && config.keys("auxiliary_deployments").iter().all(|other| program_name(other) != *name)
        };
        let name = names.into_iter().find(is_free).unwrap_or_default();
        found.push(Evaluation { name, task, place });
    }
    Ok(found)
}

impl Evaluation {
    /// A value of the task itself, or of all.
    pub(super) fn own(&self, config: &Config<'_>, key: &str) -> anyhow::Result<Option<Value>> {
        let tasks = config.get("evaluation.tasks")?;
        let own = tasks.as_ref().and_then(|tasks| tasks.get(self.place)?.get(key).cloned());
        Ok(own.filter(|value| !value.is_null()).or(config.get(&format!("evaluation.{key}"))?))
    }

    /// The type of its endpoint, if the file has it.
    pub(super) fn kind(&self, config: &Config<'_>) -> anyhow::Result<Option<String>> {
        let own = self.own(config, "endpoint_type")?;
        let inner = self.own(config, "nemo_evaluator_config")?;
        let inner = inner.as_ref().and_then(|inner| inner.pointer("/target/api_endpoint/type").cloned());
        Ok(own.or(inner).and_then(|kind| kind.as_str().map(str::to_owned)))
    }

    /// The configuration of the evaluator. `servers`: the names of the services, and where each is in the configuration.
    pub(super) fn document(
        &self,
        config: &Config<'_>,
        servers: &[(String, String)],
    ) -> anyhow::Result<Value> {
        let mut document = Value::Object(config.fields("evaluation.nemo_evaluator_config")?);
        let tasks = config.get("evaluation.tasks")?;
        let own =
            tasks.as_ref().and_then(|tasks| tasks.get(self.place)?.get("nemo_evaluator_config").cloned());
        merge(&mut document, own.unwrap_or_else(|| json!({})));
        let kind = match self.own(config, "endpoint_type")? {
            Some(Value::String(kind)) => kind,
            _ => document
                .pointer("/target/api_endpoint/type")
                .and_then(Value::as_str)
                .unwrap_or("chat")
                .to_owned(),
        };
        let mut endpoint = Map::new();
        if servers.iter().any(|(_, at)| at == "deployment") {
            let path = config.needed(&format!("deployment.endpoints.{kind}"))?;
            endpoint.insert("url".to_owned(), format!("@MODEL_URL@{path}").into());
            endpoint.insert("model_id".to_owned(), config.needed("deployment.served_model_name")?.into());
        } else {
            endpoint.insert("url".to_owned(), config.needed("target.api_endpoint.url")?.into());
            endpoint.insert("model_id".to_owned(), config.needed("target.api_endpoint.model_id")?.into());
        }
        if let Some(name) =
            config.text("target.api_endpoint.api_key_name")?.filter(|name| !name.starts_with('<'))
        {
            endpoint.insert("api_key_name".to_owned(), name.into());
        }
        endpoint.insert("type".to_owned(), kind.into());
        // What the file says itself counts.
        let mut whole = json!({
            "target": {"api_endpoint": endpoint},
            "config": {"type": self.task.rsplit('.').next(), "output_dir": RESULTS},
        });
        merge(&mut whole, document);
        for (name, at) in servers.iter().filter(|(_, at)| at != "deployment") {
            refer(&mut whole, config, name, at)?;
        }
        Ok(whole)
    }

    /// The script of the step.
    pub(super) fn command(
        &self,
        config: &Config<'_>,
        servers: &[(String, String)],
    ) -> anyhow::Result<String> {
        let name = &self.name;
        let mut text = format!(
            "results=$TAO_API_RESULTS_DIR/$TAO_API_JOB_ID/{name}\nmkdir -p \"$results\"\ncd \"$results\"\nsed -e \"s|{RESULTS}|$results|g\""
        );
        for (name, _) in servers {
            let variable = name.to_uppercase().replace('-', "_");
            let _ = write!(text, " -e \"s|@{variable}_URL@|${variable}_URL|g\"");
        }
        let _ = writeln!(text, " \"$TAO_JOB_FILES/{name}.yaml\" >config.yaml");
        if let Some(Value::String(before)) = self.own(config, "pre_cmd")? {
            let _ = writeln!(text, "{}", before.trim_end());
        }
        if let Some(Value::String(after)) = self.own(config, "post_cmd")? {
            // The code is that of the evaluation, even if this fails.
            let _ = writeln!(
                text,
                "after() {{\ncode=$?\nset +e\n{}\nexit $code\n}}\ntrap after EXIT",
                after.trim_end()
            );
        }
        text.push_str(
            "if command -v nemo-evaluator >/dev/null; then run=nemo-evaluator; else run=eval-factory; fi\n\
             \"$run\" run_eval --run_config config.yaml\n",
        );
        Ok(text)
    }
}

/// Puts the addresses and the model of an auxiliary deployment in the place of references to them.
fn refer(value: &mut Value, config: &Config<'_>, name: &str, at: &str) -> anyhow::Result<()> {
    match value {
        Value::String(text) => {
            let Some((_, rest)) = text.split_once(&format!("{at}.")) else { return Ok(()) };
            let field: String =
                rest.chars().take_while(|char| char.is_ascii_alphanumeric() || *char == '_').collect();
            let reference = format!("{at}.{field}");
            let meant = match field.strip_suffix("_url") {
                Some(endpoint) => {
                    let variable = name.to_uppercase().replace('-', "_");
                    format!("@{variable}_URL@{}", config.needed(&format!("{at}.endpoints.{endpoint}"))?)
                }
                None if field == "model_id" => config.needed(&format!("{at}.served_model_name"))?,
                None => config.needed(&reference)?,
            };
            *text = text.replace(&reference, &meant);
        }
        Value::Array(list) => list.iter_mut().try_for_each(|one| refer(one, config, name, at))?,
        Value::Object(fields) => fields.values_mut().try_for_each(|one| refer(one, config, name, at))?,
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
    Ok(())
}
