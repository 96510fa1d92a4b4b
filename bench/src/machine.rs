//! The machine on which the figures were measured.

use std::{fs, path::Path, process::Command};

use serde_json::{Value, json};

use crate::sandbox::Sandbox;

#[derive(Debug)]
pub(crate) struct Machine {
    /// Name and value, in the order of the table.
    facts: Vec<(&'static str, String)>,
}

impl Machine {
    /// Describes the machine before anything is measured, so that the load average is that of other programs.
    pub(crate) fn describe(sandbox: &Sandbox, program: &Path) -> Self {
        let unknown = || "unknown".to_owned();
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let setting =
            |name: &str| sandbox.sql("postgres", &format!("show {name}")).unwrap_or_else(|_| unknown());
        let memory = field(&read("/proc/meminfo"), "MemTotal").and_then(|text| gib(&text));
        let profile =
            program.parent().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
        let load: Vec<_> = read("/proc/loadavg").split(' ').take(3).map(str::to_owned).collect();
        let facts = vec![
            ("CPU", field(&read("/proc/cpuinfo"), "model name").unwrap_or_else(unknown)),
            (
                "cores",
                std::thread::available_parallelism().map_or_else(|_| unknown(), |cores| cores.to_string()),
            ),
            ("memory", memory.unwrap_or_else(unknown)),
            ("kernel", read("/proc/sys/kernel/osrelease").trim().to_owned()),
            ("Slurm", sandbox.login("sbatch --version").unwrap_or_else(|_| unknown())),
            ("OpenSSH of the login host", sandbox.login("ssh -V 2>&1").unwrap_or_else(|_| unknown())),
            ("Postgres", setting("server_version")),
            (
                "Postgres: fsync, synchronous_commit, shared_buffers",
                ["fsync", "synchronous_commit", "shared_buffers"].map(setting).join(", "),
            ),
            ("commit", commit()),
            ("build profile", profile.unwrap_or_else(unknown)),
            ("load average at the start (1, 5, 15 min)", load.join(", ")),
        ];
        Self { facts }
    }

    pub(crate) fn markdown(&self) -> String {
        let rows = self.facts.iter().map(|(name, value)| format!("| {name} | {value} |\n"));
        format!("| | |\n|---|---|\n{}", rows.collect::<String>())
    }

    pub(crate) fn json(&self) -> Value {
        self.facts.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect()
    }
}

/// The first value of a name in `/proc`'s "name : value" lines.
fn field(text: &str, name: &str) -> Option<String> {
    let mut pairs = text.lines().filter_map(|line| line.split_once(':'));
    pairs.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim().to_owned())
}

fn gib(text: &str) -> Option<String> {
    let kib: f64 = text.trim_end_matches("kB").trim().parse().ok()?;
    Some(format!("{:.1} GiB", kib / 1024.0 / 1024.0))
}

/// The checked-out commit, and whether the work tree has changes.
fn commit() -> String {
    let git = Command::new("git").args(["describe", "--always", "--dirty"]).output().ok();
    git.map(|git| String::from_utf8_lossy(&git.stdout).trim().to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_proc_are_parsed() {
        let text = "processor\t: 0\nmodel name\t: A CPU: fast\nmodel name\t: another\n";
        assert_eq!(field(text, "model name").as_deref(), Some("A CPU: fast"));
        assert_eq!(field(text, "cores"), None);
        assert_eq!(gib("25165824 kB").as_deref(), Some("24.0 GiB"));
    }
}
