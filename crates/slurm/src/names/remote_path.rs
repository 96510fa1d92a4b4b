//! An absolute path on the cluster.

use serde_with::{DeserializeFromStr, SerializeDisplay};

use crate::{InvalidName, text_type};

/// `PATH_MAX` on Linux is 4096 with its NUL. The rest is for names below a path.
const MAX_BYTES: usize = 3000;

const ALLOWED: &str = "an absolute path of at most 3000 bytes, not / itself, without . or .. parts, control characters, % or \\";

/// An absolute path on the cluster, in one spelling: `//` collapsed, no trailing `/`, no `.` or `..`.
///
/// `%` and `\` are rejected although file systems allow them: in `#SBATCH --output` Slurm expands `%j` and similar, and a
/// backslash disables the expansion (sbatch(1), "filename pattern"). Control characters are rejected because a tab or a
/// newline would end a field of our own framing.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, SerializeDisplay, DeserializeFromStr)]
pub struct RemotePath(String);

text_type!(RemotePath);

impl RemotePath {
    /// This path and `component` below it. The component may have several parts (`a/b`) but must be relative.
    pub fn join(&self, component: &str) -> Result<Self, InvalidName> {
        if component.is_empty() || component.starts_with('/') {
            return Err(InvalidName::new("path component", "a relative path that is not empty", component));
        }
        // `self` is valid already, and a poll creates tens of thousands of paths.
        append(&self.0, component)
            .filter(|path| path.len() <= MAX_BYTES)
            .map(Self)
            .ok_or_else(|| InvalidName::new("remote path", ALLOWED, &format!("{}/{component}", self.0)))
    }

    /// The last part.
    pub fn file_name(&self) -> &str {
        self.0.rsplit_once('/').map_or("", |(_, name)| name)
    }

    /// The parent directory; `None` if that is `/`, which is not a `RemotePath`.
    pub fn parent(&self) -> Option<Self> {
        let (parent, _) = self.0.rsplit_once('/')?;
        if parent.is_empty() { None } else { Some(Self(parent.to_owned())) }
    }

    /// Whether this is `dir`, or below it.
    pub fn is_within(&self, dir: &Self) -> bool {
        let rest = self.0.strip_prefix(&dir.0);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    fn check(text: &str) -> Result<String, InvalidName> {
        let accepted = text.len() <= MAX_BYTES && text.starts_with('/');
        let path = if accepted { append("", text) } else { None };
        path.filter(|path| !path.is_empty()).ok_or_else(|| InvalidName::new("remote path", ALLOWED, text))
    }
}

/// Appends the parts of `text` to `path`; `None` if one of them is invalid.
fn append(path: &str, text: &str) -> Option<String> {
    if text.chars().any(|c| c.is_control() || c == '%' || c == '\\') {
        return None;
    }
    let mut whole = String::with_capacity(path.len() + 1 + text.len());
    whole.push_str(path);
    for part in text.split('/').filter(|part| !part.is_empty()) {
        if part == "." || part == ".." {
            return None;
        }
        whole.push('/');
        whole.push_str(part);
    }
    Some(whole)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use test_case::test_case;

    use super::*;

    fn path(text: &str) -> RemotePath {
        text.parse().unwrap()
    }

    #[test_case("/lustre//fsw/", "/lustre/fsw"; "slashes")]
    #[test_case("/a b/c'd\"$x;é", "/a b/c'd\"$x;é"; "shell characters are data")]
    #[test_case("/..a/b.", "/..a/b."; "dots inside a part")]
    fn a_path_has_one_spelling(text: &str, canonical: &str) {
        assert_eq!(path(text).as_str(), canonical);
    }

    #[test_case(""; "empty")]
    #[test_case("/"; "root")]
    #[test_case("//"; "root twice")]
    #[test_case("lustre"; "relative")]
    #[test_case("/a/../b"; "dot dot")]
    #[test_case("/a/./b"; "dot")]
    #[test_case("/a\nb"; "newline")]
    #[test_case("/a\tb"; "tab")]
    #[test_case("/a\0b"; "nul")]
    #[test_case("/a\u{85}b"; "unicode control")]
    #[test_case("/a%jb"; "percent")]
    #[test_case("/a\\b"; "backslash")]
    fn a_path_is_refused(text: &str) {
        assert!(text.parse::<RemotePath>().is_err());
    }

    #[test]
    fn a_path_longer_than_three_thousand_bytes_is_refused() {
        assert!(format!("/{}", "a".repeat(2999)).parse::<RemotePath>().is_ok());
        assert!(format!("/{}", "a".repeat(3000)).parse::<RemotePath>().is_err());
    }

    #[test]
    fn a_join_cannot_leave_its_directory() {
        let base = path("/lustre/x");
        assert_eq!(base.join("a/b").unwrap(), path("/lustre/x/a/b"));
        for component in ["", "/etc", "../y", "a/../../y", ".", "a\nb"] {
            assert!(base.join(component).is_err(), "{component:?}");
        }
    }

    #[test]
    fn names_and_parents_come_apart() {
        assert_eq!(path("/a/b").file_name(), "b");
        assert_eq!(path("/a/b").parent(), Some(path("/a")));
        assert_eq!(path("/a").parent(), None);
    }

    proptest! {
        #[test]
        fn an_accepted_path_is_its_own_canonical_spelling(text in "/[ -~é\t\n]{0,80}") {
            if let Ok(path) = text.parse::<RemotePath>() {
                prop_assert_eq!(&path.to_string().parse::<RemotePath>().unwrap(), &path);
                prop_assert!(!path.as_str().contains(['\n', '\t', '\0', '%', '\\']));
                prop_assert!(!path.as_str().split('/').any(|part| part == ".."));
            }
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in any::<String>()) {
            let _ = text.parse::<RemotePath>();
        }
    }
}
