//! Removing files that nobody needs any more.

use std::time::Duration;

use crate::{Call, ParseError, RawOutput, RemoteCommand, RemotePath, answer::Answer, feed::Feed};

const PROGRAM: &str = concat!(
    include_str!("../programs/preamble.sh"),
    include_str!("../programs/remove_file.sh"),
    include_str!("../programs/superseded.sh"),
    include_str!("../programs/remove.sh"),
);

/// 30 s after which nothing new is begun, and 15 s for one file.
const DEADLINE: Duration = Duration::from_mins(1);

/// Removes private files of attempts: the secrets of a submission that was refused, for instance.
#[derive(Debug, Clone, Default)]
pub struct Remove {
    /// Which files.
    pub files: Vec<StagedSecret>,
}

/// A file that holds a secret.
#[derive(Debug, Clone)]
pub struct StagedSecret {
    /// The state directory of the attempt that it was staged for. Once there is one of a later attempt, the file is that
    /// one's, and is kept.
    pub state_dir: RemotePath,
    /// Where it is. A directory is not removed.
    pub path: RemotePath,
}

/// What became of the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removed {
    /// The places in the question of those that are not surely gone; while its directory is missing, a file may come
    /// back with it.
    pub kept: Vec<usize>,
}

impl RemoteCommand for Remove {
    type Output = Removed;

    fn render(&self) -> Call {
        let mut feed = Feed::new();
        feed.field(self.files.len()).end_line();
        for file in &self.files {
            feed.field(&file.state_dir).field(&file.path).end_line();
        }
        Call {
            program: PROGRAM.to_owned(),
            stdin: feed.into_bytes(),
            deadline: DEADLINE,
            stdout_limit: super::STDOUT_BASE + self.files.len() * 16,
        }
    }

    fn parse(&self, raw: &RawOutput) -> Result<Self::Output, ParseError> {
        let answer = Answer::read("remove", raw)?;
        let mut kept = Vec::new();
        for mut line in answer.lines() {
            if line.tag != b"KEPT" {
                return Err(line.malformed("an unknown kind of line"));
            }
            kept.push(line.index(self.files.len())?);
        }
        Ok(Removed { kept })
    }
}
