//! A cluster in the database. Its settings are a document with the keys of a `[[clusters]]` table and pass the same checks. The document
//! names a key in the key directory instead of a path, and holds all its host keys.

use std::path::PathBuf;

use domain::{ClusterName, KeyName, Violation};
use serde_json::{Map, Value};
use ssh::SshError;

use super::{
    Settings,
    cluster::{self, ClusterConfig},
    cluster_settings::ClusterSettings,
    declare::{self, Source},
    environment::Environment,
    faults::{Faults, REQUIRED},
    settings::Worker,
    warnings::may_be_known,
};

/// The settings of this process that the check of a cluster needs.
#[derive(Clone)]
pub(crate) struct KeptRules {
    environment: Environment,
    worker: Worker,
    key_directory: PathBuf,
}

const MOST_BYTES: usize = 64 * 1024;
const MOST: [(&str, usize); 6] = [
    ("hosts", 16),
    ("host_keys", 64),
    ("partitions", 64),
    ("container_mounts", 64),
    ("node_local_paths", 64),
    ("gres", 20),
];
/// The name is a column of its own; the other keys are paths of this machine.
const FILE_ONLY: [&str; 4] = ["name", "key_path", "agent_socket", "known_hosts"];

impl KeptRules {
    pub(crate) fn of(settings: &Settings, environment: &Environment) -> Self {
        Self {
            environment: environment.clone(),
            worker: settings.worker.clone(),
            key_directory: settings.ssh.key_directory.clone(),
        }
    }

    /// The cluster of the document, or all its faults. This does not read the key file.
    pub(crate) fn check(
        &self,
        name: &ClusterName,
        document: &Value,
    ) -> Result<ClusterConfig, Vec<Violation>> {
        let Value::Object(keys) = document else {
            return Err(vec![Violation::new("", "wrong_type", "must be an object")]);
        };
        if document.to_string().len() > MOST_BYTES {
            let detail = format!("has more than {MOST_BYTES} bytes; shorten it");
            return Err(vec![Violation::new("", "too_many", detail)]);
        }
        let mut faults = Faults::default();
        let mut keys = keys.clone();
        let key = self.key(&mut keys, &mut faults);
        for key in FILE_ONLY {
            if keys.remove(key).is_some() {
                faults.add_as(key, "unknown_field", "is only for the configuration file; leave it out");
            }
        }
        for (key, most) in MOST {
            let entries = keys.get(key).and_then(Value::as_array).map_or(0, Vec::len);
            if entries > most {
                faults.add_as(
                    key,
                    "too_many",
                    format_args!("has {entries} entries; at most {most} are allowed"),
                );
            }
        }
        keys.retain(|_, value| !value.is_null());
        // TOML has no null; both leave the option out.
        let options = keys.get_mut("sbatch_options").and_then(Value::as_object_mut);
        for value in options.into_iter().flat_map(Map::values_mut).filter(|value| value.is_null()) {
            *value = false.into();
        }
        let mut settings = ClusterSettings::default();
        let table = keys.into_iter().filter_map(|(key, value)| {
            // TOML has no number above i64::MAX.
            let value = toml::Value::try_from(value).map_err(|error| faults.add(&key, error)).ok()?;
            Some((key, value))
        });
        let table = toml::Value::Table(table.collect());
        let mut report = |key: &str, advice| faults.add(key, advice);
        declare::read_section(&mut settings, Source::Value(&table), "", &mut report);
        settings = ClusterSettings {
            name: Some(name.to_string()),
            key_path: key,
            known_hosts: Vec::new(),
            ..settings
        };
        settings.complete(&self.environment, &self.worker);
        let checked = cluster::check(&settings, &mut faults);
        host_keys(&settings, &mut faults);
        let wrong = faults.in_document();
        checked.filter(|_| wrong.is_empty()).ok_or(wrong)
    }

    /// Takes the name of the key out of the document and returns its path.
    fn key(&self, keys: &mut Map<String, Value>, faults: &mut Faults) -> Option<PathBuf> {
        let Some(named) = keys.remove("ssh_key") else {
            faults.add_as("ssh_key", REQUIRED, "is missing; name a file in the server's key directory");
            return None;
        };
        let name = named.as_str().unwrap_or_default().parse::<KeyName>();
        name.map_err(|error| faults.add("ssh_key", error))
            .ok()
            .map(|name| self.key_directory.join(name.as_str()))
    }
}

/// Each login host needs a line, because a document has no other place for host keys.
fn host_keys(settings: &ClusterSettings, faults: &mut Faults) {
    let lines = &settings.host_keys;
    if lines.is_empty() {
        let advice = "is missing; add a line for each login host, as ssh-keyscan prints it";
        return faults.add_as("host_keys", REQUIRED, advice);
    }
    for (index, host) in settings.hosts.iter().flatten().enumerate() {
        if host.trim().parse().is_ok_and(|host| !may_be_known(&host, lines)) {
            let advice = format_args!("{host:?} has no line in host_keys; add it, as ssh-keyscan prints it");
            faults.add_at("hosts", index, advice);
        }
    }
}

/// Why the service cannot log in with the cluster's key; none if it looks usable. The directory of the keys is not for callers of the
/// API, so the reason has only the file's name.
pub(crate) fn key_fault(config: &ClusterConfig) -> Option<String> {
    let path = config.ssh.key_path.as_ref()?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let reason = match ssh::inspect_key(path).err()? {
        SshError::KeyUnreadable { reason, .. } => reason,
        error => error.to_string(),
    };
    Some(format!("the key `{name}` in the server's key directory cannot be used: {reason}"))
}

#[cfg(test)]
mod tests;
