//! Everything that is wrong with a configuration.

use std::{fmt, str::FromStr};

/// Each key with what is wrong and what to do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Problems(Vec<(String, String)>);

impl Problems {
    pub(crate) fn add(&mut self, key: impl fmt::Display, advice: impl fmt::Display) {
        self.0.push((key.to_string(), advice.to_string()));
    }

    /// The value, unless the text is wrong.
    pub(crate) fn parse<T: FromStr<Err: fmt::Display>>(
        &mut self,
        key: impl fmt::Display,
        text: &str,
    ) -> Option<T> {
        text.parse().map_err(|error| self.add(key, error)).ok()
    }

    pub(crate) fn one(key: impl fmt::Display, advice: impl fmt::Display) -> Self {
        let mut problems = Self::default();
        problems.add(key, advice);
        problems
    }

    /// Adds the environment variables to each key.
    pub(crate) fn with_variables(mut self, variables_of: impl Fn(&str) -> String) -> Self {
        for (key, _) in &mut self.0 {
            key.push_str(&variables_of(key));
        }
        self
    }

    /// `value` if nothing is wrong.
    pub(crate) fn or_else<T>(self, value: T) -> Result<T, Self> {
        if self.0.is_empty() { Ok(value) } else { Err(self) }
    }

    #[cfg(test)]
    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.iter().map(|(key, advice)| format!("{key}: {advice}")).collect()
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the configuration is not valid")?;
        for (key, advice) in &self.0 {
            write!(f, "\n  - {key}: {advice}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}
