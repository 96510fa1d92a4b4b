//! Everything that is wrong with a configuration, found in one go.

use std::fmt;

/// A list of faults; each says which key and what to do about it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Problems(Vec<String>);

impl Problems {
    pub(crate) fn add(&mut self, key: impl fmt::Display, advice: impl fmt::Display) {
        self.0.push(format!("{key}: {advice}"));
    }

    pub(crate) fn one(key: impl fmt::Display, advice: impl fmt::Display) -> Self {
        let mut problems = Self::default();
        problems.add(key, advice);
        problems
    }

    /// `value` when nothing is wrong.
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
        f.write_str("the configuration cannot be used")?;
        for line in &self.0 {
            write!(f, "\n  - {line}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}
