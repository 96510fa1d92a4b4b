//! A cluster that is kept in the database: its settings are a document with the keys of a `[[clusters]]` table, and are
//! checked as one. It names a key in the key directory, where the file has a path, and its host keys are all in it.

use std::{path::PathBuf, time::Duration};

use domain::{ClusterName, KeyName, Violation};
use serde_json::{Map, Value};
use ssh::SshError;

use super::{
    Settings,
    cluster::{self, ClusterConfig},
    cluster_settings::ClusterSettings,
    environment::Environment,
    faults::{Faults, REQUIRED},
    settings::Worker,
    warnings::may_be_known,
};

/// What a cluster's check needs to know of this process.
#[derive(Clone)]
pub(crate) struct KeptRules {
    environment: Environment,
    worker: Worker,
    key_directory: PathBuf,
}

/// More than any cluster has to say.
const MOST_BYTES: usize = 64 * 1024;
const MOST: [(&str, usize); 4] =
    [("hosts", 16), ("host_keys", 64), ("partitions", 64), ("container_mounts", 64)];
const DURATIONS: [&str; 3] = ["connect_timeout", "poll_min", "poll_max"];
/// Keys of the file that are about this machine, and the name, which is kept beside the document.
const FILE_ONLY: [&str; 4] = ["name", "key_path", "agent_socket", "known_hosts"];

impl KeptRules {
    pub(crate) fn of(settings: &Settings, environment: &Environment) -> Self {
        Self {
            environment: environment.clone(),
            worker: settings.worker.clone(),
            key_directory: settings.ssh.key_directory.clone(),
        }
    }

    /// The cluster that the document describes, or all that is wrong with it. Whether the key is there is not looked at.
    pub(crate) fn check(
        &self,
        name: &ClusterName,
        document: &Value,
    ) -> Result<ClusterConfig, Vec<Violation>> {
        let Value::Object(keys) = document else {
            return Err(vec![Violation::new("", "wrong_type", "must be an object")]);
        };
        if document.to_string().len() > MOST_BYTES {
            let detail = format!("has more than {MOST_BYTES} bytes");
            return Err(vec![Violation::new("", "too_many", detail)]);
        }
        let mut faults = Faults::default();
        let mut keys = keys.clone();
        let key = self.key(&mut keys, &mut faults);
        for key in FILE_ONLY {
            if keys.remove(key).is_some() {
                faults.add_as(key, "unknown_field", "is for the configuration file only");
            }
        }
        durations(&mut keys, &mut faults);
        for (key, most) in MOST {
            if keys.get(key).and_then(Value::as_array).is_some_and(|list| list.len() > most) {
                faults.add_as(key, "too_many", format_args!("has more than {most} entries"));
            }
        }
        let read = serde_json::from_value::<ClusterSettings>(Value::Object(keys));
        let checked = match read {
            Ok(settings) => {
                self.check_whole(name, ClusterSettings { key_path: key, ..settings }, &mut faults)
            }
            Err(error) => {
                let mut wrong = faults.in_document();
                wrong.push(Violation::new("", "invalid", error));
                return Err(wrong);
            }
        };
        let wrong = faults.in_document();
        match checked {
            Some(config) if wrong.is_empty() => Ok(config),
            Some(_) | None => Err(wrong),
        }
    }

    fn check_whole(
        &self,
        name: &ClusterName,
        settings: ClusterSettings,
        faults: &mut Faults,
    ) -> Option<ClusterConfig> {
        let settings = ClusterSettings {
            name: Some(name.to_string()),
            known_hosts: Some(Vec::new()),
            agent_socket: None,
            ..settings
        };
        let settings = settings.complete(&self.environment, &self.worker);
        let checked = cluster::check(&settings, faults);
        let lines = settings.host_keys.as_deref().unwrap_or_default();
        if lines.is_empty() {
            let advice = "must have a line for each login host, as ssh-keyscan prints it";
            faults.add_as("host_keys", REQUIRED, advice);
        }
        for (index, host) in settings.hosts.iter().flatten().enumerate() {
            let unknown = host.trim().parse().is_ok_and(|host| !may_be_known(&host, lines));
            if unknown && !lines.is_empty() {
                faults.add_at("hosts", index, "has no line in host_keys, so it would be refused");
            }
        }
        checked
    }

    /// Takes the name of the key out of the document, and says where the key lies.
    fn key(&self, keys: &mut Map<String, Value>, faults: &mut Faults) -> Option<PathBuf> {
        let Some(named) = keys.remove("ssh_key") else {
            faults.add_as("ssh_key", REQUIRED, "is missing; name a key in the server's key directory");
            return None;
        };
        let name = named.as_str().unwrap_or_default().parse::<KeyName>();
        name.map_err(|error| faults.add("ssh_key", error))
            .ok()
            .map(|name| self.key_directory.join(name.as_str()))
    }
}

/// Why no login with the cluster's key can succeed as things are; none when nothing speaks against it. Where keys lie is
/// nobody's business, so the reason has the name only.
pub(crate) fn key_fault(config: &ClusterConfig) -> Option<String> {
    let path = config.ssh.key_path.as_ref()?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let reason = match ssh::inspect_key(path).err()? {
        SshError::KeyUnreadable { reason, .. } => reason,
        error => error.to_string(),
    };
    Some(format!("the key `{name}` in the server's key directory cannot be used: {reason}"))
}

fn durations(keys: &mut Map<String, Value>, faults: &mut Faults) {
    for key in DURATIONS {
        let text = keys.get(key).filter(|value| !value.is_null()).map(Value::as_str);
        let read = |text: Option<&str>| humantime_serde::re::humantime::parse_duration(text?).ok();
        if text.is_some_and(|text| read(text).is_none_or(|duration: Duration| duration.is_zero())) {
            keys.remove(key);
            faults.add(key, "must be a duration, such as \"5s\" or \"2m\"");
        }
    }
}

#[cfg(test)]
mod tests;
