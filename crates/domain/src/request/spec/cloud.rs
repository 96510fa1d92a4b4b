//! TAO's workspace details, parted into what may be seen and what may not.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// The only details that are known to be no secret. Access keys stand at depths that vary by cloud, so
/// everything else is taken for one.
const PLAIN: [&str; 3] = ["slurm_user", "slurm_hostname", "base_results_dir"];

/// The details parted.
pub(super) struct Cloud {
    pub(super) plain: Map<String, Value>,
    pub(super) secret: Map<String, Value>,
    pub(super) secret_keys: BTreeSet<String>,
}

pub(super) fn part(details: Map<String, Value>) -> Cloud {
    let (plain, secret): (Map<_, _>, Map<_, _>) =
        details.into_iter().partition(|(key, value)| PLAIN.contains(&key.as_str()) && is_text(value));
    let secret_keys = secret.keys().cloned().collect();
    Cloud { plain, secret, secret_keys }
}

/// A text or a list of texts: nothing with room for a credential beside it.
fn is_text(value: &Value) -> bool {
    match value {
        Value::String(_) => true,
        Value::Array(items) => items.iter().all(Value::is_string),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_known_to_be_harmless_stays_in_the_open() {
        let details = json!({
            "slurm_user": "tao", "slurm_hostname": ["login1"], "base_results_dir": {"token": "hunter2"},
            "aws": {"bucket": {"secret_key": "hunter3"}},
        });
        let Value::Object(details) = details else { unreachable!() };
        let cloud = part(details);
        assert_eq!(Value::Object(cloud.plain), json!({"slurm_user": "tao", "slurm_hostname": ["login1"]}));
        assert_eq!(
            cloud.secret_keys.iter().map(String::as_str).collect::<Vec<_>>(),
            ["aws", "base_results_dir"]
        );
        assert_eq!(cloud.secret.len(), 2);
    }
}
