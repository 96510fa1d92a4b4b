//! Submits jobs so that a repeated submission does no harm.

use std::{
    collections::{BTreeSet, HashMap},
    fmt,
    time::Duration,
};

use crate::{
    AttemptKey, Call, ParseError, RawOutput, RemoteCommand, Repeat, Subject,
    answer::{Answer, Line},
    rpcs,
    stdin_writer::{ABSENT, StdinWriter},
    subject::subjects,
};
use slurm::{Failure, FailureClass, RemotePath, SlurmJobId};

const PROGRAM: &str = program!("site_env", "preamble", "stage_files", "earlier_sends", "submit_batch");

/// Fewer entries go in one wave.
const FEW: usize = 8;

/// Claims, stages and submits each entry; the answers have the order of the entries.
///
/// An entry with a saved Slurm id is answered with it. An entry with an earlier claim is looked for by its name, and not
/// submitted while its outcome is uncertain. Entries begin in order, and up to six sbatch run at the same time: two for the
/// first wave, four for the second.
#[derive(Debug, Clone)]
pub struct SubmitBatch {
    /// The entries, each with its own state directory.
    pub entries: Vec<Submission>,
    /// Entries that have not begun after this time are answered with [`SubmitAnswer::Skipped`]. Whole seconds.
    pub begin_within: Duration,
    /// Whether to remove temporary files that killed calls have left beside the files of these entries a day ago or earlier.
    pub sweep: bool,
}

/// One attempt to submit.
#[derive(Debug, Clone)]
pub struct Submission {
    /// The attempt or conversion.
    pub key: AttemptKey,
    /// Where the claim, the Slurm id and the markers of this attempt are.
    pub state_dir: RemotePath,
    /// The files that sbatch needs, including the script.
    pub files: Vec<StagedFile>,
    /// The batch script.
    pub script_path: RemotePath,
    /// Directories to create, with their parents. The state directory is always created.
    pub make_dirs: Vec<RemotePath>,
    /// The results directory, if any; its parent must be among `make_dirs`. If it is missing it is created, with a marker
    /// file inside that allows [`Purge`](crate::Purge) to remove it.
    pub results_dir: Option<RemotePath>,
    /// Files and directories that must exist before anything is staged. They are not checked for an entry that has a job
    /// already.
    pub inputs: Vec<RemotePath>,
    /// The base directory of all our files. While it is unreadable, no input counts as missing.
    pub base_dir: RemotePath,
    /// The submit fence of this submission: the number of the submission within the attempt, from 1.
    pub send: u32,
    /// Fences up to this number are cleared: their claims do not count. squeue is still asked first and must answer. An
    /// uncertain submission is cleared only after [`Locate`](crate::Locate) has found nothing.
    pub cleared: u32,
}

impl Submission {
    /// Whether a file is in the attempt's own directory.
    fn owns(&self, file: &StagedFile) -> bool {
        let below = file.path.as_str().strip_prefix(self.state_dir.as_str());
        below.is_some_and(|rest| rest.starts_with('/'))
    }
}

/// A file to write on the cluster: to a temporary directory beside its path, then moved. A call that is terminated removes
/// its temporary directories; after a call that is killed, a [sweep](SubmitBatch::sweep) removes them a day later.
///
/// After a refusal the file stays: [`Remove`](crate::Remove) it if the entry is given up.
#[derive(Clone)]
pub struct StagedFile {
    /// Its path.
    pub path: RemotePath,
    /// Its mode: the permission bits.
    pub mode: u32,
    /// Its content. May be secret, so `Debug` does not show it.
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

/// The result of one entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SubmitAnswer {
    /// Slurm has the job.
    Submitted {
        /// Its id.
        id: SlurmJobId,
        /// How the id was found.
        how: How,
        /// Other jobs of the same name, to cancel. Their scripts stop because the claim is taken.
        extra: Vec<SlurmJobId>,
    },
    /// sbatch failed. The claim stays, so the next submission must clear it.
    Refused {
        /// The failure. [`FailureClass::Ambiguous`] if sbatch may have submitted the job.
        failure: Failure,
        /// Its exit code; 124 and 137 mean our time limit.
        rc: i32,
    },
    /// Inputs are missing or unreadable. Nothing was staged or submitted.
    MissingInputs {
        /// All missing inputs.
        paths: Vec<RemotePath>,
    },
    /// A file or directory could not be written, or an input could not be checked. Nothing was submitted.
    StageFailed(Failure),
    /// Another call has claimed the entry, and no job of it was found, or squeue did not answer.
    Uncertain,
    /// There was no time left for it. Nothing was submitted.
    Skipped,
}

/// How an id was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum How {
    /// This call submitted it.
    New,
    /// An earlier call submitted it and saved its id.
    Replay,
    /// An earlier call submitted it and its reply was lost: it was found by its name or its claim.
    Adopted,
}

impl SubmitAnswer {
    fn may_have_run_sbatch(&self) -> bool {
        matches!(self, Self::Submitted { how: How::New, .. } | Self::Refused { .. })
    }

    /// Whether squeue was asked about an earlier submission.
    fn was_looked_up(&self) -> bool {
        matches!(self, Self::Submitted { how: How::Adopted, .. } | Self::Uncertain)
    }

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
    /// After this long no sbatch of a call is still running: none begins after 25 s, and each may take 155 s. sbatch may sleep
    /// and retry by itself for up to 120 s (`sbatch.c`).
    pub const DEADLINE: Duration = Duration::from_secs(185);

    /// A batch whose entries begin within 20 seconds.
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
        let mut stdin = StdinWriter::default();
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

    fn rpcs(&self) -> u32 {
        self.lookups() + rpcs::times(self.entries.len(), rpcs::SBATCH)
    }

    fn rpcs_made(&self, answers: &Vec<SubmitAnswer>) -> u32 {
        let sent = answers.iter().filter(|answer| answer.may_have_run_sbatch()).count();
        let looked_up = answers.iter().any(SubmitAnswer::was_looked_up);
        let lookups = if looked_up { rpcs::SQUEUE } else { self.lookups() };
        lookups + rpcs::times(sent, rpcs::SBATCH)
    }

    fn is_rate_limited(&self, answers: &Vec<SubmitAnswer>) -> bool {
        let is_limited = |answer: &SubmitAnswer| matches!(answer, SubmitAnswer::Refused { failure, .. } if failure.is_rate_limited());
        answers.iter().any(is_limited)
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
        answers.into_iter().collect::<Option<_>>().ok_or_else(|| answer.lacks("the answer to an entry"))
    }

    fn subjects(&self, answer: Option<&Vec<SubmitAnswer>>) -> Vec<(Subject, Option<String>)> {
        let own = self.entries.iter().map(|entry| entry.key.subject.clone());
        subjects(own, |place| Some(answer?.get(place)?.outcome()))
    }
}

impl SubmitBatch {
    /// The requests of the squeue that looks for earlier submissions, if there may be any.
    fn lookups(&self) -> u32 {
        if self.entries.iter().any(|entry| entry.send > 1) { rpcs::SQUEUE } else { 0 }
    }

    /// Everything but the bytes of the files, column by column, so that bash reads a column of all entries at once.
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
        let mut stdin = StdinWriter::default();
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
    /// The directories of every entry.
    shared: Vec<&'a RemotePath>,
    /// The others.
    own: Vec<&'a RemotePath>,
    /// For each entry, the places of its own directories in that list.
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

/// Entries that are staged together. The first wave is smaller, so that its submission begins early; the second is staged
/// meanwhile.
fn waves(entries: &[Submission]) -> impl Iterator<Item = &[Submission]> {
    let first = if entries.len() < FEW { entries.len() } else { entries.len().div_ceil(4) };
    let (first, rest) = entries.split_at(first);
    [first, rest].into_iter().filter(|wave| !wave.is_empty())
}

/// The files of entries as a tar archive to extract at `/`, with their modes. A file for a temporary directory has `%` in its
/// path, which no [`RemotePath`] contains; the program replaces it.
fn archive(entries: &[Submission]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (entry, file) in entries.iter().flat_map(|entry| entry.files.iter().map(move |file| (entry, file))) {
        let (parent, name) = file.path.as_str().rsplit_once('/').unwrap_or_default();
        let parent = parent.trim_start_matches('/');
        let name = if entry.owns(file) { format!("{parent}/{name}") } else { format!("{parent}/%/{name}") };
        let mut header = tar::Header::new_gnu();
        header.set_size(file.bytes.len() as u64);
        header.set_mode(file.mode & 0o777);
        // Writing to memory does not fail, and a RemotePath has no `..`, which tar would refuse. The program notices a missing
        // file.
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

/// The program names inputs by their places, so its output never becomes a path.
fn missing(line: Line<'_>, inputs: &[RemotePath]) -> Result<SubmitAnswer, ParseError> {
    let place = |text: &str| text.parse::<usize>().ok().and_then(|place| inputs.get(place).cloned());
    let paths = line.rest().split(',').map(place).collect::<Option<Vec<_>>>();
    let paths = paths.ok_or_else(|| line.malformed("the place of an input is expected"))?;
    Ok(SubmitAnswer::MissingInputs { paths })
}

/// Nothing was submitted. A failure of the cluster itself keeps its class, because it affects more than this entry.
fn stage_failure(text: &str) -> Failure {
    let failure = slurm::failure::classify(text);
    if failure.class == FailureClass::Infra {
        failure
    } else {
        Failure { class: FailureClass::NotDone, rule_id: "staging", ..failure }
    }
}
