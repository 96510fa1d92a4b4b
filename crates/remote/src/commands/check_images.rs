//! Checks which cached images exist and are complete, and removes the damaged ones that these replace.

use std::time::Duration;

use crate::{
    Call, ParseError, RawOutput, RemoteCommand, Repeat, Subject, answer::Answer, stdin_writer::StdinWriter,
    subject::subjects,
};
use slurm::RemotePath;
use uuid::Uuid;

const PROGRAM: &str = program!("preamble", "whole_image", "check_images");

/// No file is begun after 40 s, and each may take 22 s. No removal is begun after 65 s, and each may take 6 s.
const DEADLINE: Duration = Duration::from_secs(75);

/// Checks any number of SquashFS files.
#[derive(Debug, Clone, Default)]
pub struct CheckImages {
    /// The files.
    pub paths: Vec<RemotePath>,
    /// The files to remove if their replacement is whole.
    pub superseded: Vec<Superseded>,
    /// The jobs that want the files, each with the place of its file in `paths`.
    pub jobs: Vec<(Uuid, usize)>,
}

/// A file that is removed if another one is whole. It is kept if it was written after it was found damaged: then it is another
/// file.
#[derive(Debug, Clone)]
pub struct Superseded {
    /// The place of its replacement in `paths`.
    pub by: usize,
    /// When it was found damaged, in seconds since 1970.
    pub known_at: i64,
    /// Its path.
    pub path: RemotePath,
}

/// What is at the path of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageFile {
    /// A SquashFS file as long as its superblock says.
    Whole,
    /// Something else: a part of an image, or no image.
    Broken,
    /// Nothing.
    Absent,
    /// Not known: the file system took too long.
    Unread,
}

impl RemoteCommand for CheckImages {
    type Output = Vec<ImageFile>;

    const NAME: &'static str = "check_images";
    const REPEAT: Repeat = Repeat::Safe;

    fn render(&self) -> Call {
        let mut stdin = StdinWriter::default();
        stdin.field(self.paths.len()).field(self.superseded.len()).end_line();
        stdin.rows(&self.paths);
        for file in &self.superseded {
            stdin.field(file.by).field(file.known_at).field(&file.path).end_line();
        }
        stdin.call(PROGRAM, DEADLINE, super::STDOUT_BASE + self.paths.len() * 64)
    }

    fn rpcs(&self) -> u32 {
        0
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
        subjects(self.jobs.iter().map(|(job, _)| Subject::Job(*job)), |job| {
            let (_, place) = self.jobs.get(job)?;
            let word = match answer?.get(*place)? {
                ImageFile::Whole => "whole",
                ImageFile::Broken => "broken",
                ImageFile::Absent => "absent",
                ImageFile::Unread => "not known",
            };
            Some(word.to_owned())
        })
    }
}
