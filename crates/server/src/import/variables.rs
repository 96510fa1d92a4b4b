//! Variables of the launcher: each value says where it comes from.

use anyhow::{anyhow, bail};
use serde_json::{Map, Value};

use super::config::{Config, Host};

/// The variables of one program, as a request has them.
#[derive(Debug, Default)]
pub(super) struct Variables {
    pub(super) env: Map<String, Value>,
    pub(super) secret_env: Map<String, Value>,
    pub(super) node_env: Map<String, Value>,
}

impl Variables {
    /// From these sections. Later ones override earlier ones.
    pub(super) fn read(config: &Config<'_>, sections: &[String]) -> anyhow::Result<Self> {
        let mut all = Map::new();
        for section in sections {
            all.extend(config.fields(section)?);
        }
        let mut variables = Self::default();
        for (name, value) in all {
            variables.add(&name, &value, config.host)?;
        }
        Ok(variables)
    }

    pub(super) fn add(&mut self, name: &str, value: &Value, host: Host<'_>) -> anyhow::Result<()> {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        match text.split_once(':') {
            Some(("lit", value)) => self.env.insert(name.to_owned(), value.into()),
            Some(("runtime", on_node)) => self.node_env.insert(name.to_owned(), on_node.into()),
            Some(("host", variable)) => {
                let missing = || {
                    anyhow!(
                        "the variable {variable}, for {name}, is not set here; set it, so that the job gets its value"
                    )
                };
                self.secret_env.insert(name.to_owned(), host(variable).ok_or_else(missing)?.into())
            }
            _ => bail!(
                "the variable {name} has a value without `lit:`, `host:` or `runtime:`; say where it comes from, or let the launcher's \
                 `nel-migrate-config` do so"
            ),
        };
        Ok(())
    }

    pub(super) fn has(&self, name: &str) -> bool {
        [&self.env, &self.secret_env, &self.node_env].iter().any(|variables| variables.contains_key(name))
    }

    /// Puts them into a step or a service.
    pub(super) fn put(self, into: &mut Map<String, Value>) {
        for (key, variables) in
            [("env", self.env), ("secret_env", self.secret_env), ("node_env", self.node_env)]
        {
            if !variables.is_empty() {
                into.insert(key.to_owned(), variables.into());
            }
        }
    }
}
