//! The effective configuration as TOML that could be read again, without secrets.

use serde_json::Value;

use super::settings::Settings;

/// One `section.key = value` a line, clusters last. Keys without a value are shown as comments.
pub(crate) fn render(settings: &Settings) -> anyhow::Result<String> {
    let mut lines = Vec::new();
    let Value::Object(mut all) = serde_json::to_value(settings)? else { return Ok(String::new()) };
    let clusters = all.remove("clusters").unwrap_or_default();
    for (section, value) in &all {
        match value {
            Value::Object(keys) => {
                lines.push(format!("\n[{section}]"));
                lines.extend(keys.iter().map(|(key, value)| line(key, value)));
            }
            value => lines.push(line(section, value)),
        }
    }
    for cluster in clusters.as_array().into_iter().flatten() {
        lines.push("\n[[clusters]]".to_owned());
        lines.extend(cluster.as_object().into_iter().flatten().map(|(key, value)| line(key, value)));
    }
    Ok(lines.join("\n"))
}

fn line(key: &str, value: &Value) -> String {
    match value {
        Value::Null => format!("# {key} is not set"),
        value => format!("{key} = {}", inline(value)),
    }
}

fn inline(value: &Value) -> String {
    match value {
        // The names are networks', which need no quotes, or anybody's, which do.
        Value::Object(pairs) if pairs.is_empty() => "{}".to_owned(),
        Value::Object(pairs) => {
            let pair = |(key, value): (&String, &Value)| {
                format!("{} = {}", Value::from(key.as_str()), inline(value))
            };
            format!("{{ {} }}", pairs.iter().map(pair).collect::<Vec<_>>().join(", "))
        }
        // JSON's strings, numbers and lists of them are TOML's as well.
        value => value.to_string(),
    }
}
