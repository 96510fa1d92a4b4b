//! The request of a new job like another one, as far as the API shows what that one was asked for.

use serde_json::{Map, Value, json};

use crate::model::{Job, Text, is_odd};

/// A request, and what is missing in it.
pub(super) struct Cloned {
    pub(super) request: Value,
    pub(super) left_out: Vec<String>,
}

pub(super) fn of(job: &Job) -> Cloned {
    let (summary, details) = (&job.summary, &job.details);
    let mut request = Map::new();
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            request.insert(name.to_owned(), value);
        }
    };
    let text = |text: &Option<Text>| text.as_ref().map(|text| Value::from(text.raw()));
    let texts = |texts: &[Text]| (!texts.is_empty()).then(|| texts.iter().map(Text::raw).collect::<Value>());
    let map = |map: &std::collections::BTreeMap<Text, Text>| {
        let pairs = map.iter().map(|(name, value)| (name.raw().to_owned(), Value::from(value.raw())));
        (!map.is_empty()).then(|| Value::Object(pairs.collect()))
    };
    put("name", text(&summary.name));
    put("labels", map(&summary.labels));
    put("image", text(&summary.image));
    put("network_arch", text(&summary.network_arch));
    put("action", text(&summary.action));
    put("specs", details.specs.clone());
    put("command", text(&details.command));
    put("setup", texts(&details.setup));
    put("workdir", text(&details.workdir));
    put("docker_env_vars", map(&details.docker_env_vars));
    put("inputs", texts(&details.inputs));
    let resources = &details.resources;
    put(
        "resources",
        Some(json!({
            "num_nodes": resources.num_nodes,
            "gpus_per_node": resources.gpus_per_node,
            "cpus_per_task": resources.cpus_per_task,
            "time_hours": resources.time_hours,
        })),
    );
    let backend = &details.backend_details;
    let mut place = Map::from_iter([
        ("backend_type".to_owned(), json!("slurm")),
        ("cluster_name".to_owned(), json!(backend.cluster_name.raw())),
    ]);
    for (name, value) in
        [("partition", &backend.partition), ("account", &backend.account), ("qos", &backend.qos)]
    {
        place.extend(text(value).map(|value| (name.to_owned(), value)));
    }
    put("backend_details", Some(Value::Object(place)));
    Cloned { request: Value::Object(request), left_out: left_out(job) }
}

/// The request as JSON to edit. Characters that would be invisible are in the notation of JSON.
pub(super) fn written(request: &Value) -> String {
    let text = serde_json::to_string_pretty(request).unwrap_or_default();
    let mut written = String::with_capacity(text.len());
    for letter in text.chars() {
        if is_odd(letter) {
            let mut units = [0; 2];
            written.extend(letter.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
        } else {
            written.push(letter);
        }
    }
    written
}

fn left_out(job: &Job) -> Vec<String> {
    let details = &job.details;
    let names = |texts: &[Text]| texts.iter().map(Text::plain).collect::<Vec<_>>().join(", ");
    let mut left_out = Vec::new();
    if !details.secret_env_vars.is_empty() {
        left_out.push(format!(
            "The secret variables {}: their values are in no answer.",
            names(&details.secret_env_vars)
        ));
    }
    if !details.files.is_empty() {
        left_out.push(format!("The files {}.", names(&details.files)));
    }
    if details.array.is_some() {
        left_out.push("The array: its tasks and their parameters.".to_owned());
    }
    if !details.steps.is_empty() || !details.services.is_empty() {
        left_out.push("Steps and services.".to_owned());
    }
    if !details.results.is_empty() {
        left_out.push("The rules for results.".to_owned());
    }
    if !details.needs.is_empty() {
        left_out.push("The jobs that it needs.".to_owned());
    }
    left_out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_characters_of_a_request_can_be_seen() {
        let request = json!({"name": "a\u{202e}b\u{e0041}é"});
        let text = written(&request);
        assert!(text.contains("a\\u202eb\\udb40\\udc41é"), "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), request);
    }
}
