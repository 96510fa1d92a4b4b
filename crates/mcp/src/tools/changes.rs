//! Changes of a request, and what they are compared by.

use serde_json::{Map, Value};

/// RFC 7396.
pub(super) fn merge(target: &mut Value, changes: Map<String, Value>) {
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(fields) = target else { return };
    for (name, change) in changes {
        match change {
            Value::Null => {
                fields.remove(&name);
            }
            // One of its keys takes the place of another.
            Value::Object(change) if name != "memory" => {
                merge(fields.entry(name).or_insert(Value::Null), change);
            }
            change => {
                fields.insert(name, change);
            }
        }
    }
}

/// The same with all fields in alphabetical order.
pub(super) fn sorted(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.into_iter().map(|(name, value)| (name, sorted(value))).collect();
            fields.sort_by(|one, other| one.0.cmp(&other.0));
            Value::Object(fields.into_iter().collect())
        }
        Value::Array(items) => items.into_iter().map(sorted).collect(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_change_is_merged_and_null_removes_a_field() {
        let mut request =
            json!({"a": {"b": 1, "c": 2}, "d": [1], "resources": {"memory": {"per_node": "1G"}}});
        merge(
            &mut request,
            object(
                json!({"a": {"b": 5}, "d": null, "e": {"f": null}, "resources": {"memory": {"per_gpu": "2G"}}}),
            ),
        );
        assert_eq!(
            request,
            json!({"a": {"b": 5, "c": 2}, "e": {}, "resources": {"memory": {"per_gpu": "2G"}}})
        );
    }
}
