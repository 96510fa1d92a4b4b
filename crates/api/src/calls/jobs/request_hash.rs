//! Whether two requests are the same.

use serde_json::Value;
use sha2::{Digest, Sha256};

/// SHA-256 of a document in one spelling, so that white space and the order of keys do not matter.
pub(super) fn of(document: &Value) -> [u8; 32] {
    let mut hash = Sha256::new();
    feed(document, &mut hash);
    hash.finalize().into()
}

fn feed(value: &Value, hash: &mut Sha256) {
    match value {
        Value::Object(fields) => {
            let mut sorted: Vec<_> = fields.iter().collect();
            sorted.sort_unstable_by_key(|(key, _)| key.as_str());
            hash.update(b"{");
            for (key, item) in sorted {
                text(key, hash);
                feed(item, hash);
            }
            hash.update(b"}");
        }
        Value::Array(items) => {
            hash.update(b"[");
            for item in items {
                feed(item, hash);
            }
            hash.update(b"]");
        }
        Value::String(string) => text(string, hash),
        Value::Null | Value::Bool(_) | Value::Number(_) => {
            hash.update(b"=");
            hash.update(value.to_string());
            hash.update(b";");
        }
    }
}

/// The length goes first, so that no text can pass for the end of itself and the beginning of another.
fn text(text: &str, hash: &mut Sha256) {
    hash.update(format!("\"{}:", text.len()));
    hash.update(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(text: &str) -> [u8; 32] {
        of(&serde_json::from_str(text).unwrap())
    }

    #[test]
    fn order_and_white_space_do_not_matter() {
        assert_eq!(
            hash(r#"{"a":1,"b":{"c":[1,2],"d":null}}"#),
            hash(r#" {"b": {"d": null, "c": [1, 2]}, "a": 1}"#)
        );
    }

    #[test]
    fn everything_else_does() {
        let texts = [
            "{}",
            "[]",
            "null",
            "1",
            "\"1\"",
            "true",
            r#"{"a":1}"#,
            r#"{"a":"1"}"#,
            r#"{"a":[1]}"#,
            r#"{"a":[1,2]}"#,
            r#"{"a":[2,1]}"#,
            r#"{"a":[12]}"#,
            r#"{"ab":"c"}"#,
            r#"{"a":"bc"}"#,
            r#"["a","b"]"#,
            r#"["ab"]"#,
            r#"[["a"],"b"]"#,
        ];
        let hashes: std::collections::HashSet<_> = texts.iter().map(|text| hash(text)).collect();
        assert_eq!(hashes.len(), texts.len());
    }
}
