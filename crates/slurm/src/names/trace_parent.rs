//! The trace of a job.

use serde_with::{DeserializeFromStr, SerializeDisplay};

use crate::{InvalidName, text_type};

/// A `traceparent` of W3C Trace Context, in the format of version 00. It goes into Slurm's comment of the job, so that an
/// operator finds the request behind a job. Hexadecimal digits and dashes need no quoting.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, SerializeDisplay, DeserializeFromStr)]
pub struct TraceParent(String);

text_type!(TraceParent);

const LENGTH: usize = 55;

impl TraceParent {
    /// The trace's id, 32 digits.
    pub fn trace_id(&self) -> &str {
        &self.0[3..35]
    }

    /// Later versions may append fields to this format (W3C Trace Context, 4.3).
    fn check(text: &str) -> Result<String, InvalidName> {
        let wrong = || InvalidName::new("traceparent", "00-<32 hexadecimal digits>-<16>-<2>", text);
        let (known, rest) = text.split_at_checked(LENGTH).ok_or_else(wrong)?;
        let parts: Vec<&str> = known.split('-').collect();
        let [version, trace, parent, flags] = parts.as_slice() else { return Err(wrong()) };
        let hexadecimal = |text: &str, length: usize| {
            text.len() == length && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        let some = |text: &str| text.bytes().any(|byte| byte != b'0');
        let well_formed = hexadecimal(version, 2)
            && *version != "ff"
            && (rest.is_empty() || (*version != "00" && rest.starts_with('-')))
            && hexadecimal(trace, 32)
            && some(trace)
            && hexadecimal(parent, 16)
            && some(parent)
            && hexadecimal(flags, 2);
        if well_formed { Ok(format!("00-{trace}-{parent}-{flags}")) } else { Err(wrong()) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use test_case::test_case;

    use super::*;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_trace_is_read_and_kept_in_the_first_version_of_the_header() {
        let read = |text: &str| text.parse::<TraceParent>().map(|parent| parent.to_string()).ok();
        assert_eq!(read(GOOD).as_deref(), Some(GOOD));
        let later = GOOD.replacen("00", "cc", 1) + "-what-comes";
        assert_eq!(read(&later).as_deref(), Some(GOOD));
        assert_eq!(GOOD.parse::<TraceParent>().unwrap().trace_id(), "4bf92f3577b34da6a3ce929d0e0e4736");
    }

    #[test_case("" ; "nothing")]
    #[test_case("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x" ; "more than version 00 has")]
    #[test_case("ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01" ; "no version")]
    #[test_case("00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01" ; "capitals")]
    #[test_case("00-00000000000000000000000000000000-00f067aa0ba902b7-01" ; "no trace")]
    #[test_case("00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01" ; "no parent")]
    #[test_case("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\n#SBATCH --uid=0" ; "a second line")]
    #[test_case("00-4bf92f3577b34da6a3ce929d0e0e473-600f067aa0ba902b7-01" ; "a dash in the wrong place")]
    fn what_is_no_trace_is_refused(text: &str) {
        assert!(text.parse::<TraceParent>().is_err());
    }

    proptest! {
        #[test]
        fn what_parses_needs_no_quoting(text in "[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-[ -~\n]{0,20})?") {
            if let Ok(parent) = text.parse::<TraceParent>() {
                prop_assert_eq!(parent.as_str().len(), LENGTH);
                prop_assert!(parent.as_str().bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit()));
            }
        }
    }
}
