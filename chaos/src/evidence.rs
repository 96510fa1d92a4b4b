//! Collects the final state of the cluster and of the service.

use std::{collections::HashMap, fmt, fs, thread, time::Duration};

use anyhow::Context;
use chrono::DateTime;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    jobs::Kind,
    ledger::{JobRecord, Ledger},
    now,
    repeat::repeat,
    sandbox::{Sandbox, run_dir},
    service::Service,
    truth::{Case, ExitRecord, Needed, Reported, Row, Run},
};

#[derive(Debug)]
pub(crate) struct Evidence {
    /// By the job's id; of a task with its number after it.
    pub(crate) cases: Vec<(String, Case)>,
    /// Slurm jobs with our prefix that belong to no job of the service.
    pub(crate) unknown_jobs: Vec<String>,
    pub(crate) refused: Vec<String>,
}

pub(crate) fn gather(
    sandbox: &Sandbox,
    service: &Service,
    ledger: &Ledger,
    run: &str,
) -> anyhow::Result<Evidence> {
    let queue = sandbox.ask(&["squeue", "-h", "-o", "%A %j"]).context("squeue at the end")?;
    let queue: Vec<(u64, &str)> = queue
        .lines()
        .filter_map(|row| row.split_once(' '))
        .filter_map(|(id, name)| Some((id.parse().ok()?, name)))
        .collect();
    let (jobs, faults, refused) = {
        let inner = ledger.lock();
        (inner.jobs.clone(), inner.faults.clone(), inner.refused.clone())
    };
    let disk_full: Vec<(f64, f64)> = faults
        .iter()
        .filter(|one| one.fault == "disk full")
        .map(|one| (one.from, one.to.unwrap_or_else(now)))
        .collect();
    let controller_killed = faults.iter().any(|one| one.fault == "slurmctld killed");
    let mut known = Vec::new();
    for (id, record) in jobs.iter().filter(|(_, record)| record.accepted.is_some()) {
        let of_job = repeat(|| reported(service, *id), || thread::sleep(Duration::from_secs(1)))?;
        known.push((id, record, of_job));
    }
    let attempts = known.iter().flat_map(|(.., of_job)| of_job).flat_map(|reported| &reported.attempts);
    let rows = accounting(sandbox, ledger, &attempts.filter_map(|(_, id)| *id).collect::<Vec<_>>())?;
    let mut cases = Vec::new();
    for (id, record, of_job) in known {
        let told = of_job.iter().flat_map(|reported: &Reported| reported.attempts.clone());
        let told: Vec<(u64, u32)> =
            told.filter_map(|(attempt, slurm_id)| Some((slurm_id?, attempt))).collect();
        let tasks: Vec<Option<u32>> =
            record.kind.tasks().map_or(vec![None], |tasks| tasks.map(Some).collect());
        for task in tasks {
            let place = Place { id: *id, task };
            let reported = match (task, &of_job) {
                (Some(task), Some(of_job)) => repeat(
                    || reported_task(service, *id, task, of_job),
                    || thread::sleep(Duration::from_secs(1)),
                )?,
                (_, of_job) => of_job.clone(),
            };
            let exit_records =
                of_job.as_ref().map(|of_job| exit_records(sandbox, place, of_job)).unwrap_or_default();
            let rows = rows.get(&place).cloned().unwrap_or_default();
            let attempts: Vec<(u64, u32)> =
                told.iter().copied().chain(rows.iter().map(|row| (row.slurm_id, row.attempt))).collect();
            let own = queue.iter().filter(|(_, name)| job_of(name).is_some_and(|(own, _)| own == *id));
            cases.push((
                place.to_string(),
                Case {
                    kind: task.map_or(record.kind, |task| record.kind.of_task(task)),
                    cancel_sent: record.cancel_sent,
                    runs: runs(sandbox, run, place, &attempts),
                    rows,
                    exit_records,
                    queued: own.map(|(id, _)| *id).collect(),
                    disk_full: disk_full.clone(),
                    controller_killed,
                    needed: None,
                    reported,
                },
            ));
        }
    }
    let ends: HashMap<String, Needed> =
        cases.iter().map(|(place, case)| (place.clone(), Needed::of(case))).collect();
    for (place, case) in &mut cases {
        let (id, task) = place.split_once('/').map_or((place.as_str(), None), |(id, task)| (id, Some(task)));
        let needs = id.parse().ok().and_then(|id: Uuid| jobs.get(&id)?.needs);
        // An array has no case of its own: a task needs its counterpart, and another job the whole array.
        case.needed = needs.and_then(|other| {
            let counterpart = task.and_then(|task| ends.get(&format!("{other}/{task}")));
            counterpart.or_else(|| ends.get(&other.to_string())).cloned()
        });
    }
    let known = |name: &str| job_of(name).is_none_or(|(id, _)| jobs.contains_key(&id));
    let unknown_jobs =
        queue.iter().filter(|(_, name)| !known(name)).map(|(id, name)| format!("{id} {name}")).collect();
    Ok(Evidence { cases, unknown_jobs, refused })
}

/// A job, or a task of its array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Place {
    id: Uuid,
    task: Option<u32>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.task {
            Some(task) => write!(f, "{}/{task}", self.id),
            None => self.id.fmt(f),
        }
    }
}

/// The job and the attempt of a Slurm job name, if it is ours.
pub(crate) fn job_of(name: &str) -> Option<(Uuid, u32)> {
    let rest = name.strip_prefix("tao-job-")?;
    let (id, more) = rest.split_at_checked(36)?;
    let attempt = if more.is_empty() { 1 } else { more.strip_prefix("-r")?.parse().ok()? };
    Some((id.parse().ok()?, attempt))
}

/// The exit codes of a batch script that found that it must not start, or need not.
const STOPPED: [&str; 4] = ["113:0", "119:0", "120:0", "123:0"];

/// The rows of the run, and those of the Slurm jobs with these ids: in a window of time sacct leaves out jobs that were canceled before
/// they could begin, and a controller that has lost its state may cancel a job that has run.
fn accounting(sandbox: &Sandbox, ledger: &Ledger, ids: &[u64]) -> anyhow::Result<HashMap<Place, Vec<Row>>> {
    let minutes = ((now() - ledger.began()) / 60.0).ceil() + 1.0;
    let since = format!("now-{minutes:.0}minutes");
    let ids = ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    let ask = |which: &[&str]| {
        let columns = "JobID,JobName,State,End,ExitCode";
        let command = ["env", "SLURM_TIME_FORMAT=%s", "sacct", "-a", "-D", "-X", "-n", "-P", "-o", columns];
        sandbox.ask(&[&command, which].concat()).context("sacct at the end")
    };
    let mut text = ask(&["-S", &since])?;
    if !ids.is_empty() {
        text += &ask(&["-j", &ids])?;
    }
    let mut rows: HashMap<Place, Vec<Row>> = HashMap::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split('|').collect();
        let [slurm_id, name, state, ended, exit] = fields[..] else { continue };
        let (Some((id, attempt)), Some((slurm_id, task))) = (job_of(name), slurm_place(slurm_id)) else {
            continue;
        };
        let state = state.split(' ').next().unwrap_or_default().to_owned();
        let stopped = STOPPED.contains(&exit);
        let row = Row { slurm_id, attempt, state, ended: ended.parse().ok(), stopped };
        let rows = rows.entry(Place { id, task }).or_default();
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    Ok(rows)
}

/// The id of a Slurm job, or of an array with the index of a task, which is the task's number here. None for tasks that are still in
/// one row: they have not begun.
pub(crate) fn slurm_place(text: &str) -> Option<(u64, Option<u32>)> {
    Some(match text.split_once('_') {
        Some((array, index)) => (array.parse().ok()?, Some(index.parse().ok()?)),
        None => (text.parse().ok()?, None),
    })
}

/// Reads the job's own records: `begin ID RESTART TIME`, `beat ID RESTART TIME` while it runs, and `end ID RESTART CODE TIME`.
fn runs(sandbox: &Sandbox, run: &str, place: Place, attempts: &[(u64, u32)]) -> Vec<Run> {
    let Place { id, task } = place;
    let name = task.map_or(id.to_string(), |task| format!("{id}.{task}"));
    let text = fs::read_to_string(sandbox.local(&format!("{}/{name}", run_dir(run)))).unwrap_or_default();
    read_runs(&text, attempts)
}

/// `attempts` are Slurm ids with their attempts. If several attempts have one id, each ran once.
fn read_runs(notes: &str, attempts: &[(u64, u32)]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for line in notes.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [what, slurm_id, restart, ref more @ ..] = words[..] else { continue };
        let (Ok(slurm_id), Ok(restart)) = (slurm_id.parse::<u64>(), restart.parse::<u32>()) else { continue };
        let is_this = |run: &Run| (run.slurm_id, run.restart) == (slurm_id, restart);
        match (what, more) {
            ("begin", [at]) => {
                let before = runs.iter().filter(|run| is_this(run)).count();
                let mut with_this_id: Vec<u32> =
                    attempts.iter().filter(|(id, _)| *id == slurm_id).map(|(_, attempt)| *attempt).collect();
                with_this_id.sort_unstable();
                with_this_id.dedup();
                let attempt = with_this_id.get(before).or(with_this_id.last()).copied().unwrap_or_default();
                if let Ok(began) = at.parse() {
                    runs.push(Run { slurm_id, attempt, restart, began, beat: began, ended: None });
                }
            }
            ("beat", [at]) => {
                if let (Some(run), Ok(at)) = (runs.iter_mut().rfind(|run| is_this(run)), at.parse()) {
                    run.beat = at;
                }
            }
            ("end", [code, at]) => {
                if let Some(run) = runs.iter_mut().rfind(|run| is_this(run)) {
                    run.ended = code.parse().ok().zip(at.parse().ok());
                }
            }
            _ => {}
        }
    }
    runs
}

/// The service's report of a job, or `None` if it does not know the job. No answer is neither.
fn reported(service: &Service, id: Uuid) -> anyhow::Result<Option<Reported>> {
    let Some(status) = service.read(&format!("/jobs/{id}/status"))? else { return Ok(None) };
    let Some(attempts) = service.read(&format!("/jobs/{id}/attempts"))? else { return Ok(None) };
    let text = |key: &str| status[key].as_str().unwrap_or_default().to_owned();
    let attempts = attempts["attempts"].as_array().into_iter().flatten();
    Ok(Some(Reported {
        status: text("status"),
        message: text("message"),
        finished: DateTime::parse_from_rfc3339(&text("finished_on")).ok().map(|time| {
            #[expect(clippy::cast_precision_loss, reason = "milliseconds of this century")]
            let millis = time.timestamp_millis() as f64;
            millis / 1000.0
        }),
        attempts: attempts
            .filter_map(|attempt| {
                let number = attempt["number"].as_u64().and_then(|number| u32::try_from(number).ok())?;
                Some((number, attempt["slurm_job_id"].as_str().and_then(|id| id.parse().ok())))
            })
            .collect(),
    }))
}

/// The service's report of a task of a job.
fn reported_task(
    service: &Service,
    id: Uuid,
    task: u32,
    of_job: &Reported,
) -> anyhow::Result<Option<Reported>> {
    let Some(found) = service.read(&format!("/jobs/{id}/tasks/{task}"))? else { return Ok(None) };
    let status = match found["status"].as_str().unwrap_or_default() {
        "done" => "Done",
        "error" => "Error",
        "canceled" => "Canceled",
        other => other,
    };
    let newest = found["attempt"].as_u64().and_then(|number| u32::try_from(number).ok());
    let attempts = of_job.attempts.iter().filter(|(attempt, _)| Some(*attempt) == newest);
    Ok(Some(Reported {
        status: status.to_owned(),
        message: found["message"].as_str().unwrap_or_default().to_owned(),
        finished: None,
        attempts: attempts.copied().collect(),
    }))
}

/// The exit records, `ID RESTART CODE TIME`, one per attempt.
fn exit_records(sandbox: &Sandbox, Place { id, task }: Place, reported: &Reported) -> Vec<ExitRecord> {
    let Ok(base) = sandbox.var("SLURM_BASE_RESULTS_DIR") else { return Vec::new() };
    let record = |attempt: u32| {
        let below = task.map(|task| format!("/tasks/{task}")).unwrap_or_default();
        let file = sandbox.local(&format!("{base}/state/{id}/{attempt}{below}/exit"));
        let text = fs::read_to_string(file).ok()?;
        let words: Vec<&str> = text.lines().next()?.split(' ').collect();
        let [slurm_id, restart, code, at] = words[..] else { return None };
        Some(ExitRecord {
            attempt,
            slurm_id: slurm_id.parse().ok()?,
            restart: restart.parse().ok()?,
            code: code.parse().ok()?,
            at: at.parse().ok()?,
        })
    };
    reported.attempts.iter().filter_map(|(number, _)| record(*number)).collect()
}

impl Evidence {
    /// All evidence, to investigate a run that is not clean.
    /// The Slurm ids of all attempts that the service reports.
    pub(crate) fn slurm_ids(&self) -> impl Iterator<Item = u64> {
        let reported = self.cases.iter().filter_map(|(_, case)| case.reported.as_ref());
        reported.flat_map(|reported| &reported.attempts).filter_map(|(_, id)| *id)
    }

    pub(crate) fn json(&self) -> Value {
        let case = |(id, case): &(String, Case)| json!({"id": id, "case": format!("{case:?}"), "found": format!("{:?}", case.judge())});
        json!({"jobs": self.cases.iter().map(case).collect::<Vec<_>>(), "unknown_jobs": self.unknown_jobs, "refused": self.refused})
    }
}

/// The number of jobs per kind.
pub(crate) fn kinds(jobs: &HashMap<Uuid, JobRecord>) -> HashMap<&'static str, usize> {
    let mut counts = HashMap::new();
    for job in jobs.values() {
        *counts.entry(Kind::name(job.kind)).or_default() += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_of_two_attempts_belongs_to_one_run_of_each() {
        let notes = "begin 2 0 1.0\nbeat 2 0 1.5\nbegin 2 0 5.0\nbeat 2 0 6.0\nend 2 0 0 7.0\nnonsense\n";
        let attempts = |attempts: &[(u64, u32)]| {
            read_runs(notes, attempts)
                .iter()
                .map(|run| (run.attempt, run.beat, run.ended))
                .collect::<Vec<_>>()
        };
        let two = attempts(&[(2, 1), (2, 2), (2, 1), (3, 3)]);
        assert_eq!(two, [(1, 1.5, None), (2, 6.0, Some((0, 7.0)))]);
        let one = attempts(&[(2, 1), (3, 2)]);
        assert_eq!(one, [(1, 1.5, None), (1, 6.0, Some((0, 7.0)))], "the attempt ran twice");
    }

    #[test]
    fn the_tasks_of_an_array_have_its_id_and_their_index() {
        assert_eq!(slurm_place("25"), Some((25, None)));
        assert_eq!(slurm_place("25_3"), Some((25, Some(3))));
        assert_eq!(slurm_place("25_[2-3%2]"), None);
    }

    #[test]
    fn slurm_job_names_identify_the_job_and_the_attempt() {
        let id = "01a1fe76-0464-735a-9396-ed12edecf0e8";
        let uuid: Uuid = id.parse().unwrap();
        assert_eq!(job_of(&format!("tao-job-{id}")), Some((uuid, 1)));
        assert_eq!(job_of(&format!("tao-job-{id}-r3")), Some((uuid, 3)));
        assert_eq!(job_of("tao-job-x"), None);
        assert_eq!(job_of("neighbour"), None);
    }
}
