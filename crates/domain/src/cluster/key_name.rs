//! The name of an SSH key in the server's key directory.

use slurm::text_type;

/// A plain file name, which cannot leave the directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyName(String);

/// The text is not a key name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "must be the name of a file in the server's key directory (not a key, not a path): 1 to 100 letters, digits, `_`, `-` \
     and `.`, starting with a letter, a digit or `_`"
)]
pub struct InvalidKeyName;

text_type!(KeyName, InvalidKeyName);

impl KeyName {
    fn check(text: &str) -> Result<String, InvalidKeyName> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        // Hidden files are not keys, and programs take a leading dash for an option.
        let begins = text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        let is_name = begins && text.len() <= 100 && text.chars().all(is_plain) && !text.contains("..");
        is_name.then(|| text.to_owned()).ok_or(InvalidKeyName)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leads_nowhere_but_into_the_directory() {
        for name in ["dgx", "id_ed25519", "dgx.pem", "_x", "A-1", &"k".repeat(100)] {
            assert_eq!(name.parse::<KeyName>().unwrap().as_str(), name);
        }
        let long = "k".repeat(101);
        for wrong in [
            "",
            ".",
            "..",
            ".ssh",
            "-i",
            "a/b",
            "/etc/passwd",
            "../x",
            "a..b",
            "a b",
            "a\n",
            "a\0",
            "ä",
            "~",
            "$HOME",
            "-----BEGIN OPENSSH PRIVATE KEY-----",
            &long,
        ] {
            assert_eq!(wrong.parse::<KeyName>(), Err(InvalidKeyName), "{wrong:?}");
        }
    }
}
