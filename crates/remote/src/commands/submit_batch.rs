//! Submitting jobs, such that doing it again does no harm.

use std::{
    collections::{BTreeSet, HashMap},
    fmt,
    time::Duration,
};

use crate::{
    AttemptKey, Call, ParseError, RawOutput, RemoteCommand, Repeat, Subject,
    answer::{Answer, Line},
    stdin_writer::{ABSENT, StdinWriter},
    subject::subjects,
};
use slurm::{Failure, FailureClass, RemotePath, SlurmJobId};

const PROGRAM: &str = concat!(
    include_str!("../programs/site_env.sh"),
    include_str!("../programs/preamble.sh"),
    include_str!("../programs/stage_files.sh"),
    include_str!("../programs/earlier_sends.sh"),
    include_str!("../programs/submit_batch.sh"),
);

/// So few entries are not worth two waves.
const FEW: usize = 8;

/// Stages, claims and submits each entry; the answers are aligned with the entries.
///
/// An entry that already has a Slurm id answers with it and nothing is done. An entry that somebody has claimed
/// before is looked for by its name, and never submitted blindly. Entries are begun in order, and up to six wait
/// for the controller at the same time: in two lanes those that are staged first, in four the others.
#[derive(Debug, Clone)]
pub struct SubmitBatch {
    /// What to submit. Each must have a state directory of its own.
    pub entries: Vec<Submission>,
    /// Entries that have not begun after this time are answered with [`SubmitAnswer::Skipped`]; whole seconds.
    pub begin_within: Duration,
    /// Whether to remove what calls that were killed have left a day ago or earlier, beside the files of these entries.
    pub sweep: bool,
}

/// One attempt to be submitted.
#[derive(Debug, Clone)]
pub struct Submission {
    /// The attempt or conversion.
    pub key: AttemptKey,
    /// Where the claim, the Slurm id and the marks of this attempt are.
    pub state_dir: RemotePath,
    /// What must be in place before sbatch runs, the script among it.
    pub files: Vec<StagedFile>,
    /// The batch script.
    pub script_path: RemotePath,
    /// Directories to make, with their parents. The state directory is always made.
    pub make_dirs: Vec<RemotePath>,
    /// Where the job puts what it makes, if it is to have such a place; its parent must be among `make_dirs`. If it is not
    /// there it is made, with a mark inside by which [`Purge`](crate::Purge) knows that it may go.
    pub results_dir: Option<RemotePath>,
    /// Files and directories that must be there before anything is staged; an entry that has a job already is not
    /// asked for them.
    pub inputs: Vec<RemotePath>,
    /// Below it everything of ours lies. While it cannot be read, no input is said to be missing.
    pub base_dir: RemotePath,
    /// Which send of the attempt this is, from 1. Each has a number of its own, in the order in which they were meant.
    pub send: u32,
    /// The sends up to this number are over: what they have claimed does not count. The queue is still asked first, and
    /// it must answer. A send of which nobody has heard is over only after [`Locate`](crate::Locate) has found nothing.
    pub cleared: u32,
}

impl Submission {
    /// Whether a file is in the directory that is the attempt's alone.
    fn owns(&self, file: &StagedFile) -> bool {
        let below = file.path.as_str().strip_prefix(self.state_dir.as_str());
        below.is_some_and(|rest| rest.starts_with('/'))
    }
}

/// A file to write on the cluster: to a temporary place beside its own, then moved there. A call that is ended early,
/// with all its processes, takes the temporary place away; one that is killed cannot, so a [sweep](SubmitBatch::sweep) takes
/// away what is a day old.
///
/// After a refusal the file stays: [`Remove`](crate::Remove) it if the entry is given up.
#[derive(Clone)]
pub struct StagedFile {
    /// Where to.
    pub path: RemotePath,
    /// Its mode; only the permission bits count.
    pub mode: u32,
    /// What is in it. Not shown by `Debug`, because it may be secret.
    pub bytes: Vec<u8>,
}

impl fmt::Debug for StagedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StagedFile")
            .field("path", &self.path)
            .field("mode", &format_args!("{:o}", self.mode))
            .field("size", &self.bytes.len())
            .finish()
    }
}

/// What became of one entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SubmitAnswer {
    /// Slurm has the job.
    Submitted {
        /// Its id.
        id: SlurmJobId,
        /// How it came to it.
        how: How,
        /// Other jobs of the same name. They should be canceled; their scripts will find the claim taken.
        extra: Vec<SlurmJobId>,
    },
    /// sbatch failed. The claim stays, so the next try must have cleared it.
    Refused {
        /// What it said. [`FailureClass::Ambiguous`] if it may have submitted nevertheless.
        failure: Failure,
        /// What it returned; 124 and 137 are the time limit we gave it.
        rc: i32,
    },
    /// Inputs are not there, or may not be read. Nothing was staged or submitted.
    MissingInputs {
        /// All of them.
        paths: Vec<RemotePath>,
    },
    /// A file or directory could not be written, or an input could not be looked for. Nothing was submitted.
    StageFailed(Failure),
    /// Another call has claimed the entry, and no job of it is to be found, or the queue did not answer.
    Uncertain,
    /// There was no time left to begin with it. Nothing was submitted.
    Skipped,
}

/// How an id was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum How {
    /// This call submitted it.
    New,
    /// An earlier call submitted it and kept its id.
    Replay,
    /// An earlier call submitted it and its answer was lost: it was found by its name or by its claim.
    Adopted,
}

impl SubmitAnswer {
    /// In a few words, for the timeline.
    fn outcome(&self) -> String {
        match self {
            Self::Submitted { id, .. } => format!("submitted as {id}"),
            Self::Refused { failure, rc } => {
                format!("refused: {} ({}), sbatch returned {rc}", failure.class, failure.rule_id)
            }
            Self::MissingInputs { paths } => format!("{} inputs are missing", paths.len()),
            Self::StageFailed(failure) => format!("not staged: {} ({})", failure.class, failure.rule_id),
            Self::Uncertain => "uncertain".to_owned(),
            Self::Skipped => "skipped".to_owned(),
        }
    }
}

impl SubmitBatch {
    /// After this long no sbatch of a call can still be under way, whether or not its answer arrived: 25 s after which
    /// none is begun, and 155 s for one. It may sleep and retry by itself for up to 120 s (`sbatch.c`).
    pub const DEADLINE: Duration = Duration::from_secs(185);

    /// These entries, each to begin within 20 seconds.
    pub fn new(entries: Vec<Submission>) -> Self {
        Self { entries, begin_within: Duration::from_secs(20), sweep: true }
    }
}

impl RemoteCommand for SubmitBatch {
    type Output = Vec<SubmitAnswer>;

    const NAME: &'static str = "submit";
    const REPEAT: Repeat = Repeat::Never;

    fn render(&self) -> Call {
        let dirs = Dirs::of(&self.entries);
        let waves: Vec<_> = waves(&self.entries).map(|wave| (wave.len(), archive(wave))).collect();
        let header = self.columns(&dirs, &waves);
        let mut stdin = StdinWriter::new();
        stdin.field(header.len()).field(self.begin_within.as_secs()).field(u8::from(self.sweep)).end_line();
        stdin.blob(&header);
        for (_, archive) in &waves {
            stdin.blob(archive).field("whole").end_line();
        }
        stdin.call(
            PROGRAM,
            Self::DEADLINE,
            super::STDOUT_BASE
                + self.entries.len() * super::encoded(4096)
                // A missing input is answered with its place, a number.
                + self.entries.iter().map(|entry| entry.inputs.len() * 6).sum::<usize>(),
        )
    }

    fn parse(&self, raw: &RawOutput) -> Result<Self::Output, ParseError> {
        let answer = Answer::read(Self::NAME, raw)?;
        let mut answers: Vec<Option<SubmitAnswer>> = vec![None; self.entries.len()];
        for line in answer.lines() {
            let (index, one) = entry_answer(line, &self.entries)?;
            if answers[index].replace(one).is_some() {
                return Err(line.malformed("a second answer to one entry"));
            }
        }
        answers.into_iter().collect::<Option<_>>().ok_or_else(|| answer.lacks("an entry has no answer"))
    }

    fn subjects(&self, answer: Option<&Vec<SubmitAnswer>>) -> Vec<(Subject, Option<String>)> {
        subjects(self.entries.iter().map(|entry| &entry.key), |place| Some(answer?.get(place)?.outcome()))
    }
}

impl SubmitBatch {
    /// All but the bytes of the files: a line for each thing to know, so that the far side reads it of all entries at once.
    fn columns(&self, dirs: &Dirs<'_>, waves: &[(usize, Vec<u8>)]) -> Vec<u8> {
        let entries = &self.entries;
        let files = || {
            numbered(entries).flat_map(|(no, entry)| entry.files.iter().map(move |file| (no, entry, file)))
        };
        let inputs = || {
            numbered(entries).flat_map(|(no, entry)| {
                entry.inputs.iter().enumerate().map(move |(place, path)| (no, place, path))
            })
        };
        let mut stdin = StdinWriter::new();
        stdin.line("shared_dirs", &dirs.shared).line("dirs", &dirs.own);
        stdin.line("wave_entries", waves.iter().map(|(entries, _)| entries));
        stdin.line("wave_bytes", waves.iter().map(|(_, archive)| archive.len()));
        stdin.line("name", entries.iter().map(|entry| &entry.key.name));
        stdin.line("state", entries.iter().map(|entry| &entry.state_dir));
        stdin.line("script", entries.iter().map(|entry| &entry.script_path));
        stdin.line("send", entries.iter().map(|entry| entry.send));
        stdin.line("cleared", entries.iter().map(|entry| entry.cleared));
        stdin.line("dirs_of", &dirs.places);
        stdin.line("base", entries.iter().map(|entry| &entry.base_dir));
        stdin.line(
            "results",
            entries.iter().map(|entry| entry.results_dir.as_ref().map_or(ABSENT, RemotePath::as_str)),
        );
        stdin.line("file_entry", files().map(|(no, ..)| no));
        stdin.line(
            "file_look",
            files().map(|(_, _, file)| format!("{}-{:o}", file.bytes.len(), file.mode & 0o777)),
        );
        stdin.line("file_in_place", files().map(|(_, entry, file)| u8::from(entry.owns(file))));
        stdin.line("file_path", files().map(|(_, _, file)| &file.path));
        stdin.line("need_entry", inputs().map(|(no, ..)| no));
        stdin.line("need_place", inputs().map(|(_, place, _)| place));
        stdin.line("need", inputs().map(|(_, _, path)| path));
        stdin.into_bytes()
    }
}

fn numbered(entries: &[Submission]) -> impl Iterator<Item = (usize, &Submission)> {
    entries.iter().enumerate()
}

/// The directories of a batch, each once.
struct Dirs<'a> {
    /// Those of every entry, which are most.
    shared: Vec<&'a RemotePath>,
    /// The others.
    own: Vec<&'a RemotePath>,
    /// Of each entry: where its own are in that list.
    places: Vec<String>,
}

impl<'a> Dirs<'a> {
    fn of(entries: &'a [Submission]) -> Self {
        let of_entries: Vec<BTreeSet<&RemotePath>> =
            entries.iter().map(|entry| entry.make_dirs.iter().chain([&entry.state_dir]).collect()).collect();
        let mut shared = of_entries.first().cloned().unwrap_or_default();
        for dirs in &of_entries {
            shared.retain(|dir| dirs.contains(dir));
        }
        let mut own = Vec::new();
        let mut known = HashMap::new();
        let mut place = |dir: &'a RemotePath| {
            let place = *known.entry(dir).or_insert(own.len());
            if place == own.len() {
                own.push(dir);
            }
            place.to_string()
        };
        let places = of_entries
            .iter()
            .map(|dirs| match dirs.difference(&shared).map(|dir| place(dir)).collect::<Vec<_>>() {
                places if places.is_empty() => ABSENT.to_owned(),
                places => places.join(" "),
            })
            .collect();
        Self { shared: shared.into_iter().collect(), own, places }
    }
}

/// Entries that are staged together. The first of many are fewer, so that it is not long until some are submitted; until they
/// are, the others are staged.
fn waves(entries: &[Submission]) -> impl Iterator<Item = &[Submission]> {
    let first = if entries.len() < FEW { entries.len() } else { entries.len().div_ceil(4) };
    let (first, rest) = entries.split_at(first);
    [first, rest].into_iter().filter(|wave| !wave.is_empty())
}

/// The files of entries as tar(1) takes them out, below `/`: with their modes, and of no time and nobody. What is not
/// written in its place has a part in its name that no [`RemotePath`] can have, instead of which the far side puts another.
fn archive(entries: &[Submission]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (entry, file) in entries.iter().flat_map(|entry| entry.files.iter().map(move |file| (entry, file))) {
        let (parent, name) = file.path.as_str().rsplit_once('/').unwrap_or_default();
        let parent = parent.trim_start_matches('/');
        let name = if entry.owns(file) { format!("{parent}/{name}") } else { format!("{parent}/%/{name}") };
        let mut header = tar::Header::new_gnu();
        header.set_size(file.bytes.len() as u64);
        header.set_mode(file.mode & 0o777);
        // It is written to memory, which does not fail, and no path of ours leads upwards, which would be refused. A file that
        // were missing all the same would be missed on the far side.
        let _ = archive.append_data(&mut header, name, file.bytes.as_slice());
    }
    archive.into_inner().unwrap_or_default()
}

fn entry_answer(mut line: Line<'_>, entries: &[Submission]) -> Result<(usize, SubmitAnswer), ParseError> {
    let tag = line.tag;
    let index = line.index(entries.len())?;
    let answer = match tag {
        b"OK" => submitted(line)?,
        b"REFUSED" => {
            let (rc, mut failure) = line.failure()?;
            if rc == 0 {
                failure =
                    Failure::known(FailureClass::Ambiguous, "no-job-id", "sbatch succeeded without a job id");
            }
            SubmitAnswer::Refused { failure, rc }
        }
        b"MISSING" => missing(line, &entries[index].inputs)?,
        b"STAGE_FAILED" | b"UNREADABLE" => SubmitAnswer::StageFailed(stage_failure(&line.blob_text()?)),
        b"UNCERTAIN" => SubmitAnswer::Uncertain,
        b"SKIPPED" => SubmitAnswer::Skipped,
        _ => return Err(line.malformed("an unknown kind of answer")),
    };
    Ok((index, answer))
}

fn submitted(mut line: Line<'_>) -> Result<SubmitAnswer, ParseError> {
    let id = line.value()?;
    let how = match line.word()? {
        b"new" => How::New,
        b"replay" => How::Replay,
        b"adopted" => How::Adopted,
        _ => return Err(line.malformed("an unknown way to an id")),
    };
    let extra = line.rest();
    let extra = extra.split(',').filter(|text| *text != "-").map(str::parse).collect::<Result<_, _>>();
    Ok(SubmitAnswer::Submitted { id, how, extra: extra.map_err(|_| line.malformed("a job id is expected"))? })
}

/// The far side names inputs by their places: what it prints becomes no path.
fn missing(line: Line<'_>, inputs: &[RemotePath]) -> Result<SubmitAnswer, ParseError> {
    let place = |text: &str| text.parse::<usize>().ok().and_then(|place| inputs.get(place).cloned());
    let paths = line.rest().split(',').map(place).collect::<Option<Vec<_>>>();
    let paths = paths.ok_or_else(|| line.malformed("the place of an input is expected"))?;
    Ok(SubmitAnswer::MissingInputs { paths })
}

/// Nothing was submitted, whatever the text says. That the site is broken is kept, because it concerns more than this entry.
fn stage_failure(text: &str) -> Failure {
    let failure = slurm::failure::classify(text);
    if failure.class == FailureClass::Infra {
        failure
    } else {
        Failure { class: FailureClass::NotDone, rule_id: "staging", ..failure }
    }
}
