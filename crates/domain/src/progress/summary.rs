//! How far the training has come, folded from the lines of the status files.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    clock::Timestamp,
    progress::{
        eta::{self, Pace},
        status_file::{MAX_METRICS, StatusLine, StatusWord},
    },
};

/// What the job itself has said in its present run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Progress {
    pub epoch: Option<u64>,
    pub max_epoch: Option<u64>,
    pub cur_iter: Option<u64>,
    /// Whole percent, from the epochs.
    pub percent: Option<u8>,
    /// As the job estimates it, in its own words.
    pub eta: Option<String>,
    /// As the job measures it, in its own words.
    pub time_per_epoch: Option<String>,
    pub time_per_iter: Option<String>,
    /// The newest value of the metric that the job is judged by.
    pub key_metric: Option<f64>,
    /// The newest value of each metric.
    pub metrics: Map<String, Value>,
    /// The job's newest sentence.
    pub message: Option<String>,
    /// The newest of `STARTED`, `RUNNING`, `SUCCESS`, `FAILURE`.
    pub word: Option<String>,
    /// When SUCCESS or FAILURE was read, if it was the last word.
    pub final_status_at: Option<Timestamp>,
    pace: Pace,
    /// How many runs of the job came before this one: attempts, and requeues by Slurm.
    pub(crate) run: u32,
    /// How many lines of all runs have become events, and how many bytes they have.
    pub(crate) events: u64,
    pub(crate) event_bytes: u64,
    /// No more lines become events.
    pub(crate) events_truncated: bool,
}

impl Progress {
    /// Takes in lines, oldest first, read at `now`.
    pub fn absorb(&mut self, lines: &[StatusLine], now: Timestamp) {
        for line in lines {
            self.epoch = line.epoch.or(self.epoch);
            self.max_epoch = line.max_epoch.or(self.max_epoch);
            self.cur_iter = line.cur_iter.or(self.cur_iter);
            self.eta = line.eta.clone().or(self.eta.take());
            self.time_per_epoch = line.time_per_epoch.clone().or(self.time_per_epoch.take());
            self.time_per_iter = line.time_per_iter.clone().or(self.time_per_iter.take());
            self.key_metric = line.key_metric.or(self.key_metric);
            self.message = line.message.clone().or(self.message.take());
            self.word = line.word.map(|word| word.to_string()).or(self.word.take());
            if let Some(epoch) = line.epoch {
                self.pace.hear(epoch, line.clock.unwrap_or_else(|| now.timestamp()));
            }
            for (key, value) in &line.metrics {
                // A job that names a metric anew at each step would otherwise grow its row without end.
                if self.metrics.len() < MAX_METRICS || self.metrics.contains_key(key) {
                    self.metrics.insert(key.clone(), value.clone());
                }
            }
        }
        self.final_status_at = match self.final_status() {
            Some(StatusWord::Success | StatusWord::Failure) => self.final_status_at.or(Some(now)),
            Some(StatusWord::Started | StatusWord::Running) | None => None,
        };
        self.percent = match (self.epoch, self.max_epoch) {
            (Some(epoch), Some(of)) if of > 0 => u8::try_from((epoch.saturating_mul(100) / of).min(100)).ok(),
            _ => None,
        };
    }

    /// Another run begins: what the last one said is not about this one.
    pub fn begin_run(&mut self) {
        *self = Self {
            run: self.run.saturating_add(1),
            events: self.events,
            event_bytes: self.event_bytes,
            events_truncated: self.events_truncated,
            ..Self::default()
        };
    }

    /// The present run never began, and `before` is what the one before it has said. What was stored stays stored.
    pub(crate) fn resume_run(&mut self, before: Self) {
        *self = Self {
            events: self.events,
            event_bytes: self.event_bytes,
            events_truncated: self.events_truncated,
            ..before
        };
    }

    /// The last word about the whole job.
    pub fn final_status(&self) -> Option<StatusWord> {
        self.word.as_deref().and_then(|word| word.parse().ok())
    }

    /// Seconds until the last epoch is done: as the job estimates it, else by its time for an epoch, else by the pace at
    /// which epochs were seen. None once it has said its last word.
    pub fn eta_seconds(&self) -> Option<u64> {
        if matches!(self.final_status(), Some(StatusWord::Success | StatusWord::Failure)) {
            return None;
        }
        let own = self.eta.as_deref().and_then(eta::seconds).and_then(eta::whole);
        let left = || self.max_epoch?.checked_sub(self.epoch?);
        own.or_else(|| eta::seconds_left(&self.pace, self.time_per_epoch.as_deref(), left()?))
    }

    /// The same for people: the job's own words, else as Python writes a duration.
    pub fn eta_text(&self) -> Option<String> {
        self.eta.clone().or_else(|| self.eta_seconds().map(eta::text))
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;
    use crate::progress::status_file::read_lines;

    fn after(text: &str) -> Progress {
        let mut progress = Progress::default();
        progress.absorb(&read_lines(text.as_bytes()).0, DateTime::UNIX_EPOCH);
        progress
    }

    #[test]
    fn the_newest_word_of_each_kind_stays() {
        let progress = after(concat!(
            "{\"status\":\"STARTED\",\"message\":\"starting\"}\n",
            "{\"status\":\"RUNNING\",\"epoch\":1,\"max_epoch\":4,\"eta\":\"0:03\",\"kpi\":{\"loss\":0.5},\"time_per_iter\":0.25}\n",
            "{\"status\":\"RUNNING\",\"epoch\":3,\"kpi\":{\"acc\":0.9},\"cur_iter\":17,\"key_metric\":0.9}\n",
            "{\"status\":\"SKIPPED\"}\n",
        ));
        assert_eq!((progress.epoch, progress.max_epoch, progress.percent), (Some(3), Some(4), Some(75)));
        assert_eq!(progress.metrics.len(), 2);
        assert_eq!((progress.eta_text().as_deref(), progress.eta_seconds()), (Some("0:03"), Some(3)));
        assert_eq!((progress.cur_iter, progress.key_metric), (Some(17), Some(0.9)));
        assert_eq!(progress.time_per_iter.as_deref(), Some("0.25"));
        assert_eq!(progress.message.as_deref(), Some("starting"));
        assert_eq!(progress.final_status(), Some(StatusWord::Running));
    }

    #[test]
    fn a_job_that_names_a_metric_anew_at_each_step_keeps_a_bounded_number() {
        let mut progress = Progress::default();
        for step in 0..1000 {
            let line = format!("{{\"kpi\":{{\"loss_step_{step}\":1}}}}\n");
            progress.absorb(&read_lines(line.as_bytes()).0, DateTime::UNIX_EPOCH);
        }
        assert_eq!(progress.metrics.len(), MAX_METRICS);
    }

    #[test]
    fn without_an_estimate_of_its_own_the_pace_tells() {
        let line = |epoch: u32, second: u32| {
            format!(
                "{{\"date\":\"1/2/2026\",\"time\":\"3:4:{second}\",\"status\":\"RUNNING\",\"epoch\":{epoch},\"max_epoch\":10}}\n"
            )
        };
        let mut text = line(1, 5) + &line(2, 25);
        assert_eq!(
            (after(&text).eta_seconds(), after(&text).eta_text().as_deref()),
            (Some(160), Some("0:02:40"))
        );
        text += "{\"status\":\"SUCCESS\"}\n";
        assert_eq!(after(&text).eta_seconds(), None);
    }

    #[test]
    fn another_run_starts_from_nothing_but_the_count_of_its_events() {
        let mut progress = after("{\"status\":\"FAILURE\",\"message\":\"no\",\"epoch\":3,\"max_epoch\":4}\n");
        (progress.events, progress.event_bytes) = (5, 50);
        progress.begin_run();
        let expected = Progress { run: 1, events: 5, event_bytes: 50, ..Progress::default() };
        assert_eq!(progress, expected);
    }
}
