//! The file of the environment that no script may show.

use std::fmt::Write;

use crate::script::{ScriptError, quoted};
use slurm::EnvKey;

/// `KEY=value` lines in shell quoting, as [`BatchScript::env_file`](crate::BatchScript::env_file) is read.
pub fn env_file<'a>(vars: impl IntoIterator<Item = (&'a EnvKey, &'a str)>) -> Result<String, ScriptError> {
    let mut out = String::new();
    for (key, value) in vars {
        let _ = writeln!(out, "{key}={}", quoted("the value of a secret", value)?);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_value_is_one_word() {
        let key: EnvKey = "A".parse().unwrap();
        assert_eq!(env_file([(&key, "it's $(x)\n")]).unwrap(), "A=\"it's \"'$(x)\n'\n");
    }
}
