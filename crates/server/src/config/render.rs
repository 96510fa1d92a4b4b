//! The settings as TOML: the effective ones without secrets, or the example file.

use super::{
    declare::{Item, Key, Kind},
    settings::Settings,
};

/// The effective settings, in a form that can be read again. A key without a value is a comment.
pub(crate) fn render(settings: &Settings) -> String {
    let mut lines = Vec::new();
    settings.walk(&mut |at, item| match item {
        Item::Section { kind, .. } => lines.extend(header(at, kind).map(|header| format!("\n{header}"))),
        Item::Key { key, shown: Some(value) } => lines.push(format!("{} = {value}", key.name)),
        Item::Key { key, shown: None } => lines.push(format!("# {} is not set", key.name)),
    });
    lines.join("\n")
}

/// `deploy/config.example.toml`: every key with its comment, and its default or an example.
pub(crate) fn example() -> String {
    let mut lines = vec!["# `make config-example` writes this file from the source code.".to_owned()];
    // An optional section is a comment as a whole.
    let mut is_comment = false;
    Settings::example().walk(&mut |at, item| match item {
        Item::Section { doc, kind } => {
            is_comment = kind == Kind::Optional;
            let header = header(at, kind);
            lines.extend(header.is_some().then(String::new));
            lines.extend(comment(doc));
            lines.extend(header.map(|header| if is_comment { format!("# {header}") } else { header }));
            lines.extend(at.is_empty().then(String::new));
        }
        Item::Key { key, shown } => {
            lines.extend(comment(key.doc));
            lines.extend(assignment(key, shown.map(|value| value.to_string()), is_comment));
        }
    });
    lines.join("\n") + "\n"
}

fn header(at: &str, kind: Kind) -> Option<String> {
    let header = if kind == Kind::Element { format!("[[{at}]]") } else { format!("[{at}]") };
    (!at.is_empty()).then_some(header)
}

fn comment(doc: &[&str]) -> impl Iterator<Item = String> {
    doc.iter().map(|line| format!("#{line}"))
}

fn assignment(key: &Key, default: Option<String>, is_comment: bool) -> Vec<String> {
    let Key { name, variables, example, is_required, .. } = key;
    let (mut lines, is_unset) = (Vec::new(), default.is_none());
    let value = match (default, example) {
        (Some(default), Some(example)) if !is_required => {
            lines.push(format!("# Example: {example}"));
            default
        }
        (Some(default), None) => default,
        (_, example) => example.unwrap_or_default().to_owned(),
    };
    if !variables.is_empty() {
        let form = if value.starts_with('[') { ", comma-separated" } else { "" };
        lines.push(format!("# Environment: {}{form}", variables.join(", else ")));
    }
    let is_comment = is_comment || (is_unset && !is_required);
    lines.push(format!("{}{name} = {value}", if is_comment { "# " } else { "" }));
    lines
}
