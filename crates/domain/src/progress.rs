//! How far the training has come, folded from the lines of the status file.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    clock::Timestamp,
    status_file::{MAX_METRICS, StatusLine, StatusWord},
};

/// What the job itself has said so far.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Progress {
    pub epoch: Option<u64>,
    pub max_epoch: Option<u64>,
    /// Whole percent, from the epochs.
    pub percent: Option<u8>,
    /// As the job estimates it, in its own words.
    pub eta: Option<String>,
    /// As the job measures it, in its own words.
    pub time_per_epoch: Option<String>,
    /// The newest value of each metric.
    pub metrics: Map<String, Value>,
    /// The job's newest sentence.
    pub message: Option<String>,
    /// The newest of `STARTED`, `RUNNING`, `SUCCESS`, `FAILURE`.
    pub word: Option<String>,
    /// When SUCCESS or FAILURE was read, if it was the last word.
    pub last_word_at: Option<Timestamp>,
}

impl Progress {
    /// Takes in lines, oldest first, read at `now`.
    pub fn absorb(&mut self, lines: &[StatusLine], now: Timestamp) {
        for line in lines {
            self.epoch = line.epoch.or(self.epoch);
            self.max_epoch = line.max_epoch.or(self.max_epoch);
            self.eta = line.eta.clone().or(self.eta.take());
            self.time_per_epoch = line.time_per_epoch.clone().or(self.time_per_epoch.take());
            self.message = line.message.clone().or(self.message.take());
            self.word = line.word.map(|word| word.to_string()).or(self.word.take());
            for (key, value) in &line.metrics {
                // A job that names a metric anew at each step would otherwise grow its row without end.
                if self.metrics.len() < MAX_METRICS || self.metrics.contains_key(key) {
                    self.metrics.insert(key.clone(), value.clone());
                }
            }
        }
        self.last_word_at = match self.last_word() {
            Some(StatusWord::Success | StatusWord::Failure) => self.last_word_at.or(Some(now)),
            Some(StatusWord::Started | StatusWord::Running) | None => None,
        };
        self.percent = match (self.epoch, self.max_epoch) {
            (Some(epoch), Some(of)) if of > 0 => u8::try_from((epoch.saturating_mul(100) / of).min(100)).ok(),
            _ => None,
        };
    }

    /// Another run begins: what the last one said of its end is not about this one.
    pub fn begin_run(&mut self) {
        self.word = None;
        self.last_word_at = None;
    }

    /// The last word about the whole job.
    pub fn last_word(&self) -> Option<StatusWord> {
        self.word.as_deref().and_then(|word| word.parse().ok())
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;
    use crate::status_file::read_lines;

    #[test]
    fn the_newest_word_of_each_kind_stays() {
        let text = concat!(
            "{\"status\":\"STARTED\",\"message\":\"starting\"}\n",
            "{\"status\":\"RUNNING\",\"epoch\":1,\"max_epoch\":4,\"eta\":\"0:03\",\"kpi\":{\"loss\":0.5}}\n",
            "{\"status\":\"RUNNING\",\"epoch\":3,\"kpi\":{\"acc\":0.9}}\n",
            "{\"status\":\"SKIPPED\"}\n",
        );
        let mut progress = Progress::default();
        progress.absorb(&read_lines(text.as_bytes()).0, DateTime::UNIX_EPOCH);
        assert_eq!((progress.epoch, progress.max_epoch, progress.percent), (Some(3), Some(4), Some(75)));
        assert_eq!(progress.metrics.len(), 2);
        assert_eq!(progress.eta.as_deref(), Some("0:03"));
        assert_eq!(progress.message.as_deref(), Some("starting"));
        assert_eq!(progress.last_word(), Some(StatusWord::Running));
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
}
