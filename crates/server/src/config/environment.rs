//! The process environment as a value, so that no test depends on its own process.

use std::{collections::BTreeMap, path::PathBuf};

#[derive(Clone, Default)]
pub(crate) struct Environment {
    variables: BTreeMap<String, String>,
    /// Root has another default data directory.
    pub(crate) is_root: bool,
}

impl Environment {
    /// The environment of this process, without names and values that are not UTF-8.
    pub(crate) fn of_process() -> Self {
        let variables = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        Self { variables: variables.collect(), is_root: rustix::process::geteuid().is_root() }
    }

    /// An empty variable counts as unset, because compose files write `X: ${X:-}`.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The first of the variables that is set, with its name.
    pub(crate) fn first(&self, names: &[&'static str]) -> Option<(&'static str, &str)> {
        names.iter().find_map(|name| Some((*name, self.get(name)?)))
    }

    pub(crate) fn home(&self) -> Option<PathBuf> {
        self.get("HOME").map(PathBuf::from)
    }

    /// The directories of `PATH`.
    pub(crate) fn search_path(&self) -> Vec<PathBuf> {
        self.get("PATH").map(|path| std::env::split_paths(path).collect()).unwrap_or_default()
    }

    /// Replaces a leading `~` by the home directory.
    pub(crate) fn expand(&self, path: PathBuf) -> PathBuf {
        match (path.strip_prefix("~"), self.home()) {
            (Ok(below), Some(home)) => home.join(below),
            _ => path,
        }
    }

    pub(crate) fn default_data_dir(&self) -> Option<PathBuf> {
        if self.is_root {
            return Some(PathBuf::from("/var/lib/tao-slurm"));
        }
        let shared = self.get("XDG_DATA_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        Some(shared.or_else(|| Some(self.home()?.join(".local/share")))?.join("tao-slurm"))
    }
}

#[cfg(test)]
impl Environment {
    pub(crate) fn of(pairs: &[(&str, &str)]) -> Self {
        let variables = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Self { variables, is_root: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_variable_counts_as_unset() {
        let environment = Environment::of(&[("A", ""), ("B", "x")]);
        assert_eq!(environment.get("A"), None);
        assert_eq!(environment.first(&["A", "B"]), Some(("B", "x")));
    }

    #[test]
    fn the_default_data_directory_follows_the_account() {
        let at = |pairs: &[(&str, &str)]| Environment::of(pairs).default_data_dir();
        assert_eq!(at(&[("HOME", "/h")]), Some("/h/.local/share/tao-slurm".into()));
        assert_eq!(at(&[("HOME", "/h"), ("XDG_DATA_HOME", "/d")]), Some("/d/tao-slurm".into()));
        assert_eq!(at(&[]), None);
        let root = Environment { is_root: true, ..Environment::of(&[("HOME", "/root")]) };
        assert_eq!(root.default_data_dir(), Some("/var/lib/tao-slurm".into()));
    }

    #[test]
    fn a_tilde_is_the_home_directory() {
        let environment = Environment::of(&[("HOME", "/h")]);
        assert_eq!(environment.expand("~/.ssh/id".into()), PathBuf::from("/h/.ssh/id"));
        assert_eq!(environment.expand("/a/~/b".into()), PathBuf::from("/a/~/b"));
    }
}
