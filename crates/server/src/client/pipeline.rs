//! A pipeline on a terminal: its jobs, what each one needs, and how far they have come.

use std::collections::HashMap;

use anstream::adapter::strip_str;
use domain::Status;
use serde::Deserialize;

use super::{
    status::exit_code,
    text::{on_one_line, seconds, table},
};

/// The most needs of a job that its line names.
const NEEDS_SHOWN: usize = 5;

/// A pipeline in a list.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct PipelineSummary {
    pub(crate) id: String,
    name: Option<String>,
    status: Status,
    jobs_by_status: Counts,
    #[serde(default)]
    created_on: String,
}

/// How many jobs are in which state.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
struct Counts {
    total: u32,
    pending: u32,
    running: u32,
    done: u32,
    error: u32,
    canceled: u32,
    skipped: u32,
}

/// A pipeline with its jobs.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct PipelineDocument {
    #[serde(flatten)]
    pub(crate) summary: PipelineSummary,
    jobs: Vec<Job>,
}

#[derive(Debug, Clone, Deserialize)]
struct Job {
    name: String,
    id: String,
    status: Status,
    #[serde(default)]
    message: String,
    #[serde(default)]
    skipped: bool,
    #[serde(default)]
    needs: Vec<Need>,
}

#[derive(Debug, Clone, Deserialize)]
struct Need {
    job: String,
    #[serde(default)]
    when: String,
}

impl Counts {
    /// `3 jobs: 1 done, 2 pending`.
    fn text(self) -> String {
        let Self { total, pending, running, done, error, canceled, skipped } = self;
        let states = [
            (done, "done"),
            (running, "running"),
            (pending, "pending"),
            (error, "failed"),
            (canceled, "canceled"),
            (skipped, "skipped"),
        ];
        let parts =
            states.into_iter().filter(|(jobs, _)| *jobs > 0).map(|(jobs, state)| format!("{jobs} {state}"));
        let parts: Vec<String> = parts.collect();
        let jobs = if total == 1 { "job" } else { "jobs" };
        if parts.is_empty() {
            format!("{total} {jobs}")
        } else {
            format!("{total} {jobs}: {}", parts.join(", "))
        }
    }
}

impl PipelineSummary {
    /// Its row in the list of pipelines.
    pub(crate) fn row(&self) -> [String; 5] {
        [
            self.id.clone(),
            self.status.to_string(),
            seconds(&self.created_on),
            self.jobs_by_status.text(),
            self.name.clone().unwrap_or_default(),
        ]
    }

    /// The status of the whole, and how many jobs are in which state.
    fn line(&self) -> String {
        let name = self.name.as_ref().map(|name| format!("{name}: ")).unwrap_or_default();
        on_one_line(&format!("{name}{}, {}", self.status, self.jobs_by_status.text()))
    }
}

impl PipelineDocument {
    /// The exit code of `--watch`; none until the pipeline has ended.
    pub(crate) fn exit_code(&self) -> Option<u8> {
        exit_code(self.summary.status)
    }

    /// One line for each job, with its id, and one for the whole.
    pub(crate) fn drawing(&self) -> String {
        let names = self.names();
        let rows = self.jobs.iter().map(|job| {
            let [name, rest @ ..] = job.row(&names);
            let [status, needs, message] = rest;
            [name, job.id.clone(), status, needs, message]
        });
        table(["JOB", "ID", "STATUS", "NEEDS", "MESSAGE"], rows) + &self.summary.line() + "\n"
    }

    /// As [`Self::drawing`], for a terminal with this many columns and lines. Jobs that have ended give way to the others.
    pub(crate) fn live(&self, columns: usize, lines: usize) -> String {
        // The headers, the line of jobs that are not shown, that of the whole, and the cursor's.
        let room = lines.saturating_sub(4).max(1);
        let fits = self.jobs.len() <= room;
        let mut left = room;
        let names = self.names();
        let shown = self.jobs.iter().filter(|job| {
            let is_shown = fits || (exit_code(job.status).is_none() && left > 0);
            left = left.saturating_sub(usize::from(is_shown));
            is_shown
        });
        let jobs = table(["JOB", "STATUS", "NEEDS", "MESSAGE"], shown.map(|job| job.row(&names)));
        let more = if fits {
            String::new()
        } else {
            format!("… and {} more jobs\n", self.jobs.len() - (room - left))
        };
        let cut = |line: &str| super::status::cut(line, columns) + "\n";
        // Without colours, which have no width.
        let drawing = jobs + &more + &self.summary.line();
        strip_str(&drawing).to_string().lines().map(cut).collect()
    }

    /// The lines that are new since `before`.
    pub(crate) fn changes(&self, before: &Self) -> String {
        let known: HashMap<&str, String> =
            before.jobs.iter().map(|job| (job.id.as_str(), job.line())).collect();
        let jobs =
            self.jobs.iter().filter(|job| known.get(job.id.as_str()) != Some(&job.line())).map(Job::line);
        let whole = Some(self.summary.line()).filter(|line| *line != before.summary.line());
        jobs.chain(whole).map(|line| line + "\n").collect()
    }

    fn names(&self) -> HashMap<&str, &str> {
        self.jobs.iter().map(|job| (job.id.as_str(), job.name.as_str())).collect()
    }
}

impl Job {
    fn row(&self, names: &HashMap<&str, &str>) -> [String; 4] {
        [self.name.clone(), self.status_text(), self.needs_text(names), self.reason().to_owned()]
    }

    fn line(&self) -> String {
        let parts = [self.name.as_str(), &self.status_text(), self.reason()];
        on_one_line(parts.map(str::trim).join(" ").trim_end())
    }

    fn status_text(&self) -> String {
        let skipped = if self.skipped { " (skipped)" } else { "" };
        format!("{}{skipped}", self.status)
    }

    /// `← prep, clean (failed)`. Jobs of other pipelines have only their id.
    fn needs_text(&self, names: &HashMap<&str, &str>) -> String {
        let need = |need: &Need| {
            let name = names.get(need.job.as_str()).copied().unwrap_or(&need.job);
            match need.when.as_str() {
                "" | "succeeded" => name.to_owned(),
                when => format!("{name} ({when})"),
            }
        };
        let mut shown: Vec<String> = self.needs.iter().take(NEEDS_SHOWN).map(need).collect();
        if self.needs.len() > NEEDS_SHOWN {
            shown.push(format!("{} more", self.needs.len() - NEEDS_SHOWN));
        }
        if shown.is_empty() { String::new() } else { format!("← {}", shown.join(", ")) }
    }

    /// Why it waits, or why it did not succeed.
    fn reason(&self) -> &str {
        match self.status {
            Status::Done | Status::Running => "",
            _ => &self.message,
        }
    }
}

#[cfg(test)]
mod tests;
