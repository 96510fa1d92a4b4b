//! The environment of the batch script, and so of its programs.

use std::fmt::Write;

use slurm::EnvKey;

use super::{BatchScript, EXIT_NO_ENV_FILE, Launch, ScriptError, quoted};

pub(super) fn render(script: &BatchScript, out: &mut String) -> Result<(), ScriptError> {
    if !script.exports.is_empty() {
        out.push('\n');
    }
    for (key, value) in &script.exports {
        let _ = writeln!(out, "export {key}={}", quoted("the value of an environment variable", value)?);
    }
    if let Some(env_file) = &script.env_file {
        let path = quoted("the environment file", env_file.as_str())?;
        let _ = write!(
            out,
            "\nif [ ! -r {path} ]; then\n  \
             echo \"tao-slurm: the environment file of this job is not there:\" {path} >&2\n  \
             exit {EXIT_NO_ENV_FILE}\nfi\nset -a\n. {path}\nset +a\n"
        );
    }
    if matches!(script.launch, Launch::Host { .. }) {
        out.push_str("export PATH=\"$_tao_state/bin:$PATH\"\n");
    }
    Ok(())
}

/// The text of [`BatchScript::env_file`](crate::BatchScript::env_file): `KEY=value` lines in shell quoting.
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
