//! The logs of an attempt by name: those of the batch script itself, and those of the tasks of a role.

use std::{fmt, str::FromStr};

use strum::{Display, EnumString};

const MOST_ROLE_BYTES: usize = 32;
/// Six digits: more tasks than any allocation has.
const MOST_TASK_DIGITS: usize = 6;

/// One of the two streams of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Display, EnumString)]
#[strum(serialize_all = "lowercase")]
pub enum LogStream {
    Out,
    Err,
}

impl LogStream {
    pub const BOTH: [Self; 2] = [Self::Out, Self::Err];
}

/// A role of a job of several programs, such as `policy`: the name of the directory that holds its logs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogRole(String);

impl LogRole {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for LogRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// No name of a log or of a role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no name of a log")]
pub struct NoLogName;

impl FromStr for LogRole {
    type Err = NoLogName;

    /// A letter or digit, then letters, digits, `-` and `_`; at most 32 bytes.
    fn from_str(text: &str) -> Result<Self, NoLogName> {
        let bytes = text.as_bytes();
        let begins = bytes.first().is_some_and(u8::is_ascii_alphanumeric);
        let goes_on = bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
        if begins && goes_on && bytes.len() <= MOST_ROLE_BYTES {
            Ok(Self(text.to_owned()))
        } else {
            Err(NoLogName)
        }
    }
}

/// One log of an attempt. Shown as its path below the attempt's log directory: `main.out`, `policy/3.err`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LogFile {
    /// Of the batch script, and of everything that it does not send elsewhere.
    Main(LogStream),
    /// Of one task of a role.
    Task { role: LogRole, task: u32, stream: LogStream },
}

impl LogFile {
    pub fn stream(&self) -> LogStream {
        match self {
            Self::Main(stream) | Self::Task { stream, .. } => *stream,
        }
    }

    /// The log of this role's directory that has the name.
    pub fn of_role(role: &LogRole, name: &str) -> Option<Self> {
        let (task, stream) = name.split_once('.')?;
        let is_number =
            (1..=MOST_TASK_DIGITS).contains(&task.len()) && task.bytes().all(|b| b.is_ascii_digit());
        // One spelling for one file: `01.out` is none of ours.
        let is_plain = task == "0" || !task.starts_with('0');
        if !is_number || !is_plain {
            return None;
        }
        Some(Self::Task { role: role.clone(), task: task.parse().ok()?, stream: stream.parse().ok()? })
    }
}

impl fmt::Display for LogFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Main(stream) => write!(f, "main.{stream}"),
            Self::Task { role, task, stream } => write!(f, "{role}/{task}.{stream}"),
        }
    }
}

impl FromStr for LogFile {
    type Err = NoLogName;

    fn from_str(text: &str) -> Result<Self, NoLogName> {
        let file = match text.split_once('/') {
            Some((role, name)) => Self::of_role(&role.parse()?, name),
            None => text.strip_prefix("main.").and_then(|stream| Some(Self::Main(stream.parse().ok()?))),
        };
        file.ok_or(NoLogName)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use test_case::test_case;

    use super::*;

    #[test_case("main.out")]
    #[test_case("main.err")]
    #[test_case("policy/0.out")]
    #[test_case("rollout-2/123456.err")]
    fn a_name_reads_back_as_itself(name: &str) {
        assert_eq!(name.parse::<LogFile>().unwrap().to_string(), name);
    }

    #[test_case(""; "empty")]
    #[test_case("main.log"; "another ending")]
    #[test_case("main"; "no ending")]
    #[test_case("../main.out"; "up")]
    #[test_case("/0.out"; "no role")]
    #[test_case("policy/"; "no task")]
    #[test_case("policy/01.out"; "a second spelling")]
    #[test_case("policy/1234567.out"; "too many digits")]
    #[test_case("policy/+1.out"; "signed")]
    #[test_case("policy/x/0.out"; "deeper")]
    #[test_case("pol icy/0.out"; "space")]
    fn other_names_are_refused(name: &str) {
        assert_eq!(name.parse::<LogFile>(), Err(NoLogName));
    }

    proptest! {
        #[test]
        fn whatever_is_accepted_stays_below_the_log_directory(text in "[a-z./0-9\n -]{0,20}") {
            if let Ok(file) = text.parse::<LogFile>() {
                prop_assert_eq!(file.to_string(), text.clone());
                prop_assert!(!text.contains("..") && !text.starts_with('/') && !text.contains('\n'));
            }
        }
    }
}
