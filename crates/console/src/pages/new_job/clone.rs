//! The request of a new job like another one, to edit.

use loopback::{NOT_COPIED, is_odd, shown_in_part};
use serde_json::Value;

use crate::model::Text;

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

/// What such a request does not have, in sentences.
pub(super) fn left_out(job: &Value) -> Vec<String> {
    let names = |list: &Value| {
        let names = list.as_array().into_iter().flatten().filter_map(Value::as_str);
        names.map(|name| Text::from(name).plain()).collect::<Vec<_>>().join(", ")
    };
    let parts = shown_in_part(job).map(|field| match field {
        "secret_env_vars" => {
            format!("The secret variables {}: their values are in no answer.", names(&job[field]))
        }
        "files" => format!("The files {}.", names(&job[field])),
        "array" => "The array: its tasks and their parameters.".to_owned(),
        _ => format!("The field {field}: no answer has all of it."),
    });
    parts.chain([NOT_COPIED.to_owned()]).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn invisible_characters_of_a_request_can_be_seen() {
        let request = json!({"name": "a\u{202e}b\u{e0041}é"});
        let text = written(&request);
        assert!(text.contains("a\\u202eb\\udb40\\udc41é"), "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), request);
    }
}
