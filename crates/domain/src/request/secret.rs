//! Secrets: which environment variables are secret, and the values of one job.

use std::{collections::BTreeMap, fmt};

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use slurm::{ComponentName, EnvKey};

/// A variable with one of these in its name is secret.
const SECRET_PARTS: [&str; 8] =
    ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "PRIVATE", "AUTH"];

/// Whether a variable's name indicates a secret.
pub fn is_secret_key(key: &EnvKey) -> bool {
    let upper = key.as_str().to_ascii_uppercase();
    SECRET_PARTS.iter().any(|part| upper.contains(part))
}

/// The secrets of one job. They are plain only between the database and the 0600 files on the cluster.
#[derive(Clone, Default, Deserialize)]
pub struct Secrets {
    pub env: BTreeMap<EnvKey, SecretString>,
    /// Those of one step or service alone.
    #[serde(default)]
    pub components: BTreeMap<ComponentName, BTreeMap<EnvKey, SecretString>>,
    /// TAO's workspace details, which hold access keys at depths that vary by cloud. Only the few that are known to be
    /// harmless are in [`JobSpec::cloud_plain`](crate::JobSpec) instead.
    pub cloud_metadata: Map<String, Value>,
}

/// The stored form, before it is sealed.
#[derive(Serialize)]
struct Opened<'a> {
    env: BTreeMap<&'a EnvKey, &'a str>,
    components: BTreeMap<&'a ComponentName, BTreeMap<&'a EnvKey, &'a str>>,
    cloud_metadata: &'a Map<String, Value>,
}

impl Secrets {
    pub fn is_empty(&self) -> bool {
        self.env.is_empty() && self.components.is_empty() && self.cloud_metadata.is_empty()
    }

    /// The plain bytes to be sealed.
    pub fn to_plain(&self) -> Result<Vec<u8>, serde_json::Error> {
        fn opened(list: &BTreeMap<EnvKey, SecretString>) -> BTreeMap<&EnvKey, &str> {
            list.iter().map(|(key, value)| (key, value.expose_secret())).collect()
        }
        serde_json::to_vec(&Opened {
            env: opened(&self.env),
            components: self.components.iter().map(|(name, list)| (name, opened(list))).collect(),
            cloud_metadata: &self.cloud_metadata,
        })
    }

    /// The inverse of [`to_plain`](Self::to_plain).
    pub fn from_plain(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(bytes)
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let components = self.components.iter().map(|(name, list)| (name, list.keys()));
        let components: Vec<_> = components.collect();
        f.debug_struct("Secrets")
            .field("env", &self.env.keys())
            .field("components", &components)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test_case("HF_TOKEN", true)]
    #[test_case("wandb_api_key", true)]
    #[test_case("DB_PASSWORD", true)]
    #[test_case("WANDB_PROJECT", false)]
    fn a_key_says_whether_it_is_secret(key: &str, secret: bool) {
        assert_eq!(is_secret_key(&key.parse().unwrap()), secret);
    }

    #[test]
    fn debug_shows_names_and_never_values() {
        let mut secrets = Secrets::default();
        secrets.env.insert("HF_TOKEN".parse().unwrap(), "hunter2".to_owned().into());
        let own = [("JUDGE_KEY".parse().unwrap(), "hunter4".to_owned().into())];
        secrets.components.insert("judge".parse().unwrap(), own.into());
        secrets.cloud_metadata.insert("secret_key".to_owned(), "hunter3".into());
        let shown = format!("{secrets:?}");
        assert!(
            shown.contains("HF_TOKEN") && shown.contains("JUDGE_KEY") && !shown.contains("hunter"),
            "{shown}"
        );
    }

    #[test]
    fn what_is_sealed_reads_back() {
        let mut secrets = Secrets::default();
        secrets.env.insert("HF_TOKEN".parse().unwrap(), "hunter2".to_owned().into());
        let own = [("HF_TOKEN".parse().unwrap(), "hunter4".to_owned().into())];
        secrets.components.insert("judge".parse().unwrap(), own.into());
        let back = Secrets::from_plain(&secrets.to_plain().unwrap()).unwrap();
        let key = "HF_TOKEN".parse().unwrap();
        assert_eq!(back.env[&key].expose_secret(), "hunter2");
        assert_eq!(back.components[&"judge".parse().unwrap()][&key].expose_secret(), "hunter4");
    }

    #[test]
    fn what_an_earlier_release_has_sealed_reads_back() {
        let back = Secrets::from_plain(br#"{"env": {"A": "b"}, "cloud_metadata": {}}"#).unwrap();
        assert_eq!(back.env.len(), 1);
    }
}
