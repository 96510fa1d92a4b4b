//! Everything that is wrong with a configuration.

use std::fmt;

use super::settings::variables_of;

/// Each line names the key and says what to do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Problems(Vec<String>);

impl Problems {
    /// The line names the environment variables of the key, too.
    pub(crate) fn add(&mut self, key: impl fmt::Display, advice: impl fmt::Display) {
        let key = key.to_string();
        self.0.push(format!("{key}{}: {advice}", variables_of(&key)));
    }

    pub(crate) fn one(key: impl fmt::Display, advice: impl fmt::Display) -> Self {
        let mut problems = Self::default();
        problems.add(key, advice);
        problems
    }

    /// `value` if nothing is wrong.
    pub(crate) fn or_else<T>(self, value: T) -> Result<T, Self> {
        if self.0.is_empty() { Ok(value) } else { Err(self) }
    }

    #[cfg(test)]
    pub(crate) fn lines(&self) -> &[String] {
        &self.0
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the configuration is not valid")?;
        for line in &self.0 {
            write!(f, "\n  - {line}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}
