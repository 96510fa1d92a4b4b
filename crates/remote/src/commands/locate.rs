//! Finds the Slurm jobs of uncertain submissions.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use crate::{
    AttemptKey, Call, ParseError, RawOutput, RemoteCommand, Repeat, Subject,
    answer::{Answer, Line},
    commands::markers::MarkerReader,
    rpcs,
    stdin_writer::StdinWriter,
    subject::subjects,
};
use slurm::{RemotePath, SlurmJobId, SlurmState};

const PROGRAM: &str = program!("preamble", "state_dirs", "locate");

/// 36 s for the fences, twice 68 s for squeue and sacct, 36 s for the ids, 61 s for the claims of scripts, and some to
/// check that the file system is there.
const DEADLINE: Duration = Duration::from_secs(287);

/// The names in one query.
const NAMES_AT_ONCE: usize = 200;

/// Looks for attempts in the queue, the saved id, the claim of the batch script, and accounting. First it claims the newest
/// fence of each attempt, so that a submission still on its way has no effect.
#[derive(Debug, Clone)]
pub struct Locate {
    /// The attempts.
    pub jobs: Vec<Sought>,
    /// How far back accounting is searched, in seconds since 1970. Choose some time before the intent, because clocks differ.
    pub since_unix: i64,
}

/// An attempt with an uncertain submission.
#[derive(Debug, Clone)]
pub struct Sought {
    /// The attempt.
    pub key: AttemptKey,
    /// Where its id and its claim are.
    pub state_dir: RemotePath,
    /// The base directory of all our files: it shows whether the file system is there.
    pub base_dir: RemotePath,
    /// As in its newest [`Submission`](crate::Submission).
    pub send: u32,
    /// As in its newest [`Submission`](crate::Submission).
    pub cleared: u32,
}

/// What was found about all attempts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocateAnswer {
    /// One for each attempt, in the order of `jobs`.
    pub located: Vec<Located>,
    /// The cluster's clock, in seconds since 1970, before the search.
    pub remote_time: i64,
    /// Whether squeue answered about all the names. If not, an empty `squeue` below means nothing.
    pub controller_answered: bool,
}

/// What was found about one attempt. If none of its submissions has begun, no Slurm job exists. Otherwise absence in all
/// places is proof only if the controller answered and the files were readable, and only after every sbatch that may have
/// been running at that moment has reached its time limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located {
    /// The attempt's name in Slurm.
    pub key: String,
    /// The jobs of that name in the queue, including those that ended recently.
    pub squeue: Vec<(SlurmJobId, SlurmState)>,
    /// The id that a submission has saved.
    pub id_file: Option<SlurmJobId>,
    /// The job whose batch script holds the claim.
    pub run_claim: Option<SlurmJobId>,
    /// Whether the two above are reliable and no submission begins any more: the file system was there, and no search, read
    /// or claim failed or timed out.
    pub readable: bool,
    /// No submission that is not cleared has begun or will begin.
    pub unbegun: bool,
    /// The jobs of that name in accounting, which is seconds behind the queue; `None` if it did not answer. A cluster without
    /// accounting answers with an empty list.
    pub sacct: Option<Vec<SlurmJobId>>,
}

impl Located {
    /// Any Slurm id that was found.
    fn any_id(&self) -> Option<SlurmJobId> {
        let queued = || self.squeue.first().map(|(id, _)| *id);
        let accounted = || self.sacct.as_ref()?.first().copied();
        self.id_file.or(self.run_claim).or_else(queued).or_else(accounted)
    }
}

impl RemoteCommand for Locate {
    type Output = LocateAnswer;

    const NAME: &'static str = "locate";
    const REPEAT: Repeat = Repeat::Safe;

    fn render(&self) -> Call {
        let mut stdin = StdinWriter::default();
        stdin.field(self.jobs.len()).field(self.since_unix.max(0)).end_line();
        for (index, job) in self.jobs.iter().enumerate() {
            stdin.field(index).field(&job.key.name).field(&job.state_dir).field(&job.base_dir);
            stdin.field(job.send).field(job.cleared).end_line();
        }
        stdin.call(PROGRAM, DEADLINE, super::STDOUT_BASE + self.jobs.len() * 8 * 1024)
    }

    fn rpcs(&self) -> u32 {
        match self.jobs.len().div_ceil(NAMES_AT_ONCE) {
            0 => 0,
            queries => rpcs::times(queries, rpcs::SQUEUE) + rpcs::SACCT,
        }
    }

    fn parse(&self, raw: &RawOutput) -> Result<Self::Output, ParseError> {
        let answer = Answer::read(Self::NAME, raw)?;
        let mut found = Found::default();
        let mut markers = MarkerReader::default();
        for mut line in answer.lines() {
            match line.tag {
                b"TIME" => found.remote_time = Some(line.value()?),
                b"SQUEUE" => found.controller_answered = Some(line.value::<i32>()? == 0),
                b"SACCT" => {
                    let (code, failure) = line.failure()?;
                    found.accounting_answered = Some(code == 0 || failure.is_accounting_disabled());
                }
                b"ROW" => found.queue_row(&line),
                b"RECORD" => found.record(&line),
                b"ID" => {
                    let index = line.index(self.jobs.len())?;
                    if let Ok(id) = line.rest().parse() {
                        found.ids.insert(index, id);
                    }
                }
                b"CLAIM" => markers.claim(line, self.jobs.len())?,
                b"UNREAD" => found.unread.extend([line.index(self.jobs.len())?]),
                b"UNBEGUN" => found.unbegun.extend([line.index(self.jobs.len())?]),
                _ => return Err(line.malformed("an unknown kind of line")),
            }
        }
        let lacks = || answer.lacks("a part of the answer");
        let accounting_answered = found.accounting_answered.ok_or_else(lacks)?;
        let located = self.jobs.iter().enumerate().map(|(index, job)| Located {
            key: job.key.as_str().to_owned(),
            squeue: found.queue.remove(job.key.as_str()).unwrap_or_default(),
            id_file: found.ids.remove(&index),
            run_claim: markers.take(index).and_then(|marks| marks.run_claim),
            readable: !found.unread.contains(&index),
            unbegun: found.unbegun.contains(&index) && !found.unread.contains(&index),
            sacct: accounting_answered.then(|| found.records.remove(job.key.as_str()).unwrap_or_default()),
        });
        Ok(LocateAnswer {
            located: located.collect(),
            remote_time: found.remote_time.ok_or_else(lacks)?,
            controller_answered: found.controller_answered.ok_or_else(lacks)?,
        })
    }

    fn subjects(&self, answer: Option<&LocateAnswer>) -> Vec<(Subject, Option<String>)> {
        subjects(self.jobs.iter().map(|job| job.key.subject.clone()), |place| {
            let id = answer?.located.get(place)?.any_id();
            Some(id.map_or_else(|| "not found".to_owned(), |id| format!("found as {id}")))
        })
    }
}

#[derive(Default)]
struct Found {
    remote_time: Option<i64>,
    controller_answered: Option<bool>,
    accounting_answered: Option<bool>,
    queue: HashMap<String, Vec<(SlurmJobId, SlurmState)>>,
    records: HashMap<String, Vec<SlurmJobId>>,
    ids: HashMap<usize, SlurmJobId>,
    unread: HashSet<usize>,
    unbegun: HashSet<usize>,
}

impl Found {
    /// `id|state|name`. A malformed row is skipped.
    fn queue_row(&mut self, line: &Line<'_>) {
        let row = line.rest();
        let mut fields = row.splitn(3, '|');
        let id = fields.next().and_then(|id| id.trim().parse().ok());
        if let (Some(id), Some(state), Some(name)) = (id, fields.next(), fields.next()) {
            let Ok(state) = state.parse();
            self.queue.entry(name.to_owned()).or_default().push((id, state));
        }
    }

    /// `id|name`. Slurm 22.05 names a record `allocation` until it is complete.
    fn record(&mut self, line: &Line<'_>) {
        let row = line.rest();
        if let Some((id, name)) = row.split_once('|')
            && let Ok(id) = id.parse()
        {
            let ids = self.records.entry(name.to_owned()).or_default();
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
    }
}
