//! The environment of the batch script, and so of its programs.

use std::fmt::Write;

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
