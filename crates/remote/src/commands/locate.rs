//! Finding jobs whose submission had no answer.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use crate::{
    AttemptKey, Call, ParseError, RawOutput, RemoteCommand, Repeat, Subject,
    answer::{Answer, Line},
    commands::markers::MarkerReader,
    stdin_writer::StdinWriter,
    subject::subjects,
};
use slurm::{RemotePath, SlurmJobId, SlurmState};

const PROGRAM: &str = concat!(
    include_str!("../programs/preamble.sh"),
    include_str!("../programs/say_file.sh"),
    include_str!("../programs/search.sh"),
    include_str!("../programs/read_each.sh"),
    include_str!("../programs/markers.sh"),
    include_str!("../programs/locate.sh"),
);

/// 36 s for the claims of sends, twice 68 s for the scheduler and the accounting, 36 s for the ids, 61 s for the claims of
/// scripts, and some for looking whether the file system is there.
const DEADLINE: Duration = Duration::from_secs(287);

/// Looks for attempts in every place where one can be: the queue, the id we kept, the claim of the batch script, the
/// accounting. Before that it claims the newest send of each attempt, so that one that is still on its way comes too late.
#[derive(Debug, Clone)]
pub struct Locate {
    /// Which attempts.
    pub jobs: Vec<Sought>,
    /// How far back the accounting is searched, in seconds since 1970. Take some time before the intent: clocks differ.
    pub since_unix: i64,
}

/// An attempt whose submission had no answer.
#[derive(Debug, Clone)]
pub struct Sought {
    /// The attempt or conversion.
    pub key: AttemptKey,
    /// Where its id and its claim are.
    pub state_dir: RemotePath,
    /// The directory above all that is ours: it shows whether the file system is there.
    pub base_dir: RemotePath,
    /// As in its newest [`Submission`](crate::Submission).
    pub send: u32,
    /// As in its newest [`Submission`](crate::Submission).
    pub cleared: u32,
}

/// What was found, for all attempts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocateAnswer {
    /// One for each attempt, in the order of the question.
    pub located: Vec<Located>,
    /// The cluster's clock, in seconds since 1970, before anything was looked at.
    pub remote_time: i64,
    /// Whether squeue answered about all the names. If not, an empty `squeue` below says nothing.
    pub controller_answered: bool,
}

/// What was found of one attempt. If none of its sends has begun, that is the proof that there is nothing. Else all absent
/// proves absence only if the controller answered and the files could be looked at, and only once every sbatch that may have
/// been under way when they first could has run into its time limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located {
    /// Our token.
    pub key: String,
    /// The jobs of that name in the queue, those that ended lately among them.
    pub squeue: Vec<(SlurmJobId, SlurmState)>,
    /// The id that a submission has kept.
    pub id_file: Option<SlurmJobId>,
    /// The job whose batch script has claimed the attempt.
    pub run_claim: Option<SlurmJobId>,
    /// Whether the two above could be looked for, and no send of it begins any more: the file system was there, and no
    /// search, no read and no claim failed or ran out of time.
    pub readable: bool,
    /// Of the sends that are not cleared none has begun, and none will.
    pub unbegun: bool,
    /// The jobs of that name in the accounting; `None` when it did not answer. It is seconds behind the queue. A site
    /// without accounting has none, and that is an answer.
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
        let mut stdin = StdinWriter::new();
        stdin.field(self.jobs.len()).field(self.since_unix.max(0)).end_line();
        for (index, job) in self.jobs.iter().enumerate() {
            stdin.field(index).field(&job.key.name).field(&job.state_dir).field(&job.base_dir);
            stdin.field(job.send).field(job.cleared).end_line();
        }
        stdin.call(PROGRAM, DEADLINE, super::STDOUT_BASE + self.jobs.len() * 8 * 1024)
    }

    fn parse(&self, raw: &RawOutput) -> Result<Self::Output, ParseError> {
        let answer = Answer::read(Self::NAME, raw)?;
        let mut found = Found::default();
        let mut markers = MarkerReader::new();
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
                b"UNREAD" => {
                    found.unread.insert(line.index(self.jobs.len())?);
                }
                b"UNBEGUN" => {
                    found.unbegun.insert(line.index(self.jobs.len())?);
                }
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
        subjects(self.jobs.iter().map(|job| &job.key), |place| {
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
    /// `id|state|name`. A row that is not understood costs only itself.
    fn queue_row(&mut self, line: &Line<'_>) {
        let row = line.rest();
        let mut fields = row.splitn(3, '|');
        let id = fields.next().and_then(|id| id.trim().parse().ok());
        if let (Some(id), Some(state), Some(name)) = (id, fields.next(), fields.next()) {
            let Ok(state) = state.parse();
            self.queue.entry(name.to_owned()).or_default().push((id, state));
        }
    }

    /// `id|name`. While a job's record is being made it is called `allocation` (22.05), and is not ours yet.
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
