//! The recipient of Slurm's mails.

use super::text_type::word_type;

word_type!(
    /// A mail address for `sbatch --mail-user`: one `@`, and on both sides only characters that need no quoting in an
    /// `#SBATCH` line. RFC 5321 allows more, such as quotes and spaces.
    MailAddress, "mail address", "NAME@HOST of A-Z a-z 0-9 . _ + -", max 254,
    |text| {
        let part = |part: &str, plain: fn(u8) -> bool| {
            part.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric())
                && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || plain(byte))
        };
        text.split_once('@').is_some_and(|(name, host)| {
            part(name, |byte| matches!(byte, b'.' | b'_' | b'+' | b'-'))
                && part(host, |byte| matches!(byte, b'.' | b'-'))
        })
    }
);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use test_case::test_case;

    use super::*;

    #[test_case("jane.doe+tao@example.org", true)]
    #[test_case("jane", false ; "no host")]
    #[test_case("a@b@c", false ; "two at signs")]
    #[test_case("-o@b", false ; "an option")]
    #[test_case("a@b\n#SBATCH --uid=0", false ; "a second line")]
    #[test_case("a b@c", false ; "a space")]
    fn an_address_is_plain(text: &str, accepted: bool) {
        assert_eq!(text.parse::<MailAddress>().is_ok(), accepted);
    }

    proptest! {
        #[test]
        fn what_parses_needs_no_quoting(text in "[ -~\n\t]{0,30}(@[ -~\n]{0,20})?") {
            if let Ok(address) = text.parse::<MailAddress>() {
                let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '+' | '-' | '@');
                prop_assert!(address.as_str().chars().all(plain) && !address.as_str().starts_with('-'));
                prop_assert_eq!(address.to_string(), text);
            }
        }
    }
}
