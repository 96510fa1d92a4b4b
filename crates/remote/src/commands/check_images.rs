//! Which cached images are there, and whole.

use std::time::Duration;

use crate::{
    Call, ParseError, RawOutput, RemoteCommand, Repeat, Subject, answer::Answer, stdin_writer::StdinWriter,
};
use slurm::RemotePath;

const PROGRAM: &str = concat!(
    include_str!("../programs/preamble.sh"),
    include_str!("../programs/whole_image.sh"),
    include_str!("../programs/check_images.sh"),
);

/// 40 s after which nothing new is begun, and 22 s for one file.
const DEADLINE: Duration = Duration::from_secs(70);

/// Looks at any number of SquashFS files.
#[derive(Debug, Clone, Default)]
pub struct CheckImages {
    /// Which files.
    pub paths: Vec<RemotePath>,
}

/// What is at the place of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageFile {
    /// A SquashFS file, as long as it says it is.
    Whole,
    /// Something else: a part of an image, or no image at all.
    Broken,
    /// Nothing.
    Absent,
    /// Nobody knows: the file system took too long.
    Unread,
}

impl RemoteCommand for CheckImages {
    type Output = Vec<ImageFile>;

    const NAME: &'static str = "check_images";
    const REPEAT: Repeat = Repeat::Safe;

    fn render(&self) -> Call {
        let mut stdin = StdinWriter::new();
        stdin.field(self.paths.len()).end_line();
        for path in &self.paths {
            stdin.field(path).end_line();
        }
        stdin.call(PROGRAM, DEADLINE, super::STDOUT_BASE + self.paths.len() * 64)
    }

    fn parse(&self, raw: &RawOutput) -> Result<Self::Output, ParseError> {
        let answer = Answer::read(Self::NAME, raw)?;
        let mut found = vec![None; self.paths.len()];
        for mut line in answer.lines() {
            if line.tag != b"IMAGE" {
                return Err(line.malformed("an unknown kind of line"));
            }
            let index = line.index(found.len())?;
            found[index] = Some(match line.word()? {
                b"whole" => ImageFile::Whole,
                b"broken" => ImageFile::Broken,
                b"absent" => ImageFile::Absent,
                b"unread" => ImageFile::Unread,
                _ => return Err(line.malformed("an unknown kind of file")),
            });
        }
        found.into_iter().collect::<Option<_>>().ok_or_else(|| answer.lacks("a file has no answer"))
    }

    fn subjects(&self, answer: Option<&Vec<ImageFile>>) -> Vec<(Subject, Option<String>)> {
        let outcome = |place: usize| {
            let word = match answer?.get(place)? {
                ImageFile::Whole => "whole",
                ImageFile::Broken => "broken",
                ImageFile::Absent => "absent",
                ImageFile::Unread => "not known",
            };
            Some(word.to_owned())
        };
        let images = self.paths.iter().enumerate();
        images.map(|(place, path)| (Subject::Image(path.clone()), outcome(place))).collect()
    }
}
