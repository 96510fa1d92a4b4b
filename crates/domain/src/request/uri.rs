//! References to data in a request: URIs and paths.

use slurm::RemotePath;

/// The kind of reference that a text is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reference<'a> {
    /// `lustre://` or `slurm://`: on the cluster's shared file system. The path keeps a trailing `/`, because programs
    /// append names to it.
    Shared(Result<String, InvalidUri>),
    /// A path without a scheme.
    Absolute,
    /// `file://` or `local://`: on the caller's own machine.
    Local { scheme: &'a str },
    /// Any other scheme: an object store, a hub, a web server.
    Remote { scheme: &'a str },
    /// Neither a URI nor an absolute path.
    Bare,
}

/// Why a URI is not a valid path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidUri {
    #[error("must name an absolute path, with three slashes: `lustre:///path`")]
    Relative,
    #[error(
        "must name a path of at most 3000 bytes without `.` or `..` parts, control characters, `%` or `\\`"
    )]
    Path,
}

/// Classifies a whole text. A URI in the middle of a text is no reference.
pub(crate) fn reference(text: &str) -> Reference<'_> {
    if text.starts_with('/') {
        return Reference::Absolute;
    }
    let Some((scheme, rest)) = text.split_once("://") else { return Reference::Bare };
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.' | '_');
    if !scheme.starts_with(|c: char| c.is_ascii_alphabetic()) || !scheme.chars().all(plain) {
        return Reference::Bare;
    }
    match scheme.to_ascii_lowercase().as_str() {
        "lustre" if !rest.starts_with('/') => Reference::Shared(Err(InvalidUri::Relative)),
        "lustre" => Reference::Shared(absolute(rest)),
        // TAO writes a workspace without a bucket as `None` and drops it.
        "slurm" => Reference::Shared(absolute(rest.strip_prefix("None/").unwrap_or(rest))),
        "file" | "local" => Reference::Local { scheme },
        _ => Reference::Remote { scheme },
    }
}

fn absolute(rest: &str) -> Result<String, InvalidUri> {
    let path: RemotePath = format!("/{rest}").parse().map_err(|_| InvalidUri::Path)?;
    Ok(if rest.ends_with('/') { format!("{path}/") } else { path.to_string() })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use test_case::test_case;

    use super::*;

    #[test_case("lustre:///lustre/a", "/lustre/a")]
    #[test_case("lustre:////lustre//a/", "/lustre/a/" ; "slashes too many, and one at the end")]
    #[test_case("LUSTRE:///lustre/a", "/lustre/a" ; "schemes have no case")]
    #[test_case("slurm:///lustre/a", "/lustre/a" ; "slurm with three slashes")]
    #[test_case("slurm://lustre/a", "/lustre/a" ; "slurm with two")]
    #[test_case("slurm://None/lustre/a", "/lustre/a" ; "a workspace without bucket")]
    #[test_case("slurm://None/a b?c#d", "/a b?c#d" ; "no URL, so nothing is a query")]
    fn a_uri_becomes_the_path_it_stands_for(uri: &str, path: &str) {
        assert_eq!(reference(uri), Reference::Shared(Ok(path.to_owned())));
    }

    #[test_case("lustre://lustre/a", InvalidUri::Relative ; "two slashes")]
    #[test_case("lustre://", InvalidUri::Relative ; "nothing")]
    #[test_case("lustre:///", InvalidUri::Path ; "the root")]
    #[test_case("slurm://None/", InvalidUri::Path ; "no path in no bucket")]
    #[test_case("lustre:///lustre/../etc/shadow", InvalidUri::Path ; "a path that climbs")]
    #[test_case("slurm://../etc", InvalidUri::Path ; "one that climbs at once")]
    #[test_case("lustre:///a\0b", InvalidUri::Path ; "NUL")]
    #[test_case("lustre:///a\nb", InvalidUri::Path ; "a second line")]
    fn a_uri_without_a_clean_path_is_refused(uri: &str, error: InvalidUri) {
        assert_eq!(reference(uri), Reference::Shared(Err(error)));
    }

    #[test_case("/lustre/a", &Reference::Absolute)]
    #[test_case("file:///a", &Reference::Local { scheme: "file" } ; "a file")]
    #[test_case("local://a", &Reference::Local { scheme: "local" } ; "local")]
    #[test_case("s3://bucket/a", &Reference::Remote { scheme: "s3" } ; "an object store")]
    #[test_case("hf_dataset://a/b", &Reference::Remote { scheme: "hf_dataset" } ; "a hub")]
    #[test_case("data/a", &Reference::Bare ; "relative")]
    #[test_case("see lustre:///x", &Reference::Bare ; "a sentence")]
    fn every_other_text_is_told_apart(text: &str, expected: &Reference<'_>) {
        assert_eq!(&reference(text), expected);
    }

    proptest! {
        #[test]
        fn whatever_is_accepted_is_a_clean_absolute_path(text in "(lustre|slurm)://[ -~\n\t\u{0}é]{0,60}") {
            if let Reference::Shared(Ok(path)) = reference(&text) {
                let clean: RemotePath = path.parse().unwrap();
                prop_assert_eq!(clean.as_str(), path.trim_end_matches('/'));
            }
        }
    }
}
