//! One word of a netrc file, as enroot and curl read it.

use std::{fmt, str::FromStr};

use secrecy::{ExposeSecret, SecretString};

/// The most bytes of a word. Tokens of registries reach some 2000.
const MOST_BYTES: usize = 4096;

/// A text that cannot be in a netrc file. The error does not show the text, which may be a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be 1 to {MOST_BYTES} printable ASCII characters without spaces, quotes and backslashes{0}")]
pub struct InvalidNetrcWord(&'static str);

/// A word of printable ASCII without spaces, quotes and backslashes: readers of netrc(5) do not agree on a way to write
/// others. Secret, because it may be a password.
#[derive(Clone)]
pub struct NetrcWord(SecretString);

impl NetrcWord {
    /// A password. It must not begin with `$`, because enroot lets a shell evaluate such a word (`common::evalnetrc`).
    pub fn password(text: &str) -> Result<Self, InvalidNetrcWord> {
        if text.starts_with('$') {
            return Err(InvalidNetrcWord(
                ", and a password must not begin with $, which enroot would evaluate",
            ));
        }
        text.parse()
    }

    /// The word in clear text.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl FromStr for NetrcWord {
    type Err = InvalidNetrcWord;

    fn from_str(text: &str) -> Result<Self, InvalidNetrcWord> {
        let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'\\' | b'`');
        // `#` begins a comment up to the end of the line.
        let well_formed =
            (1..=MOST_BYTES).contains(&text.len()) && text.bytes().all(plain) && !text.starts_with('#');
        if well_formed { Ok(Self(text.into())) } else { Err(InvalidNetrcWord("")) }
    }
}

impl fmt::Debug for NetrcWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NetrcWord(…)")
    }
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test_case("nvcr.io", true ; "a registry")]
    #[test_case("$oauthtoken", true ; "the login of NGC")]
    #[test_case("a-Z_0.9~!@%^&*()+={}[]|:;<>,?/$", true ; "signs")]
    #[test_case("", false ; "nothing")]
    #[test_case("a b", false ; "a space")]
    #[test_case("a\nmachine b", false ; "a second entry")]
    #[test_case("a\tb", false ; "a tab")]
    #[test_case("\"a\"", false ; "quotes")]
    #[test_case("it's", false ; "an apostrophe")]
    #[test_case("a\\b", false ; "a backslash")]
    #[test_case("#a", false ; "a comment")]
    #[test_case("pässword", false ; "not ASCII")]
    #[test_case("a\0b", false ; "NUL")]
    fn a_word_is_checked(text: &str, good: bool) {
        assert_eq!(text.parse::<NetrcWord>().is_ok(), good);
    }

    #[test]
    fn a_password_that_enroot_would_run_is_refused_and_never_repeated() {
        let error = NetrcWord::password("$(touch /tmp/owned)").unwrap_err().to_string();
        assert!(error.contains("enroot would evaluate") && !error.contains("touch"), "{error}");
        assert!(NetrcWord::password(&"x".repeat(4097)).is_err());
        assert!(!format!("{:?}", NetrcWord::password("hunter2").unwrap()).contains("hunter2"));
    }
}
