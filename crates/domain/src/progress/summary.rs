//! The progress of a training, summarized from its status lines.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    clock::Timestamp,
    progress::{
        eta::{self, Pace},
        status_file::{MAX_METRICS, StatusLine, StatusWord},
    },
};

/// What the job has reported in its current run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Progress {
    pub epoch: Option<u64>,
    pub max_epoch: Option<u64>,
    pub cur_iter: Option<u64>,
    pub(crate) max_iter: Option<u64>,
    /// Whole percent: of the progress file, else from the iterations if their number is known, else from the epochs.
    pub percent: Option<u8>,
    /// The job's own estimate, as it writes it.
    pub eta: Option<String>,
    /// The job's own measurement, as it writes it.
    pub time_per_epoch: Option<String>,
    pub time_per_iter: Option<String>,
    /// The newest value of the job's key metric, if that was finite.
    pub key_metric: Option<f64>,
    /// The newest value of each metric; null if that was null or not finite.
    pub metrics: Map<String, Value>,
    /// The job's newest message.
    pub message: Option<String>,
    /// The message of the first FAILURE since the newest STARTED or SUCCESS. TAO's handler appends a FAILURE of its own
    /// that hides the reason.
    pub(crate) failure: Option<String>,
    /// The newest of `STARTED`, `RUNNING`, `SUCCESS`, `FAILURE`.
    pub word: Option<String>,
    /// What the job's progress file says: how much is done, of how much.
    pub done: Option<f64>,
    pub total: Option<f64>,
    /// The services that are not ready, in words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) waiting: Vec<String>,
    /// When SUCCESS or FAILURE was read, if it is the newest.
    pub final_status_at: Option<Timestamp>,
    /// The final status that the attempt before had read last.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<FinalStatus>,
    pace: Pace,
    /// The number of runs before this one: attempts, and requeues by Slurm.
    pub(crate) run: u32,
    /// The number of status lines of all runs that became events, and their size.
    pub(crate) events: u64,
    pub(crate) event_bytes: u64,
    /// No more lines become events.
    pub(crate) events_truncated: bool,
}

/// SUCCESS or FAILURE, with what goes with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct FinalStatus {
    word: String,
    message: Option<String>,
    failure: Option<String>,
    read_at: Timestamp,
}

impl Progress {
    /// Takes in lines, oldest first, that were read at `now`.
    pub fn absorb(&mut self, lines: &[StatusLine], now: Timestamp) {
        for line in lines {
            self.epoch = line.epoch.or(self.epoch);
            self.max_epoch = line.max_epoch.or(self.max_epoch);
            self.cur_iter = line.cur_iter.or(self.cur_iter);
            self.max_iter = line.max_iter.or(self.max_iter);
            self.eta = line.eta.clone().or(self.eta.take());
            self.time_per_epoch = line.time_per_epoch.clone().or(self.time_per_epoch.take());
            self.time_per_iter = line.time_per_iter.clone().or(self.time_per_iter.take());
            self.key_metric = line.key_metric.as_ref().map_or(self.key_metric, Value::as_f64);
            self.message = line.message.clone().or(self.message.take());
            match line.word {
                Some(StatusWord::Failure) => self.failure = self.failure.take().or(line.message.clone()),
                Some(StatusWord::Started | StatusWord::Success) => self.failure = None,
                Some(StatusWord::Running) | None => {}
            }
            self.word = line.word.map(|word| word.to_string()).or(self.word.take());
            if let Some(epoch) = line.epoch {
                self.pace.record(epoch, line.clock.unwrap_or_else(|| now.timestamp()));
            }
            // Without an earlier value it is not known to be a metric.
            for key in &line.nulls {
                if let Some(value) = self.metrics.get_mut(key) {
                    *value = Value::Null;
                }
            }
            for (key, value) in &line.metrics {
                // A job with a new metric name at each step would otherwise grow its row without limit.
                if self.metrics.len() < MAX_METRICS || self.metrics.contains_key(key) {
                    self.metrics.insert(key.clone(), value.clone());
                }
            }
        }
        self.final_status_at = self.final_status_at.or(Some(now)).filter(|_| self.is_final());
        self.set_percent();
    }

    /// Takes in what the progress file says: `done` of `total`, which is positive.
    pub(crate) fn measure(&mut self, done: f64, total: f64) {
        (self.done, self.total) = (Some(done), Some(total));
        self.set_percent();
    }

    fn set_percent(&mut self) {
        let share = self.done.zip(self.total).map(|(done, total)| done / total * 100.0);
        self.percent = share
            .map(whole_percent)
            .or(percent(self.cur_iter, self.max_iter))
            .or(percent(self.epoch, self.max_epoch));
    }

    /// Starts another run: the reports of the last one do not apply to it.
    pub fn begin_run(&mut self) {
        *self = Self {
            run: self.run.saturating_add(1),
            events: self.events,
            event_bytes: self.event_bytes,
            events_truncated: self.events_truncated,
            ..Self::default()
        };
    }

    /// Starts another attempt.
    pub(crate) fn begin_attempt(&mut self) {
        let before = self.word.clone().zip(self.final_status_at).map(|(word, read_at)| FinalStatus {
            word,
            message: self.message.clone(),
            failure: self.failure.clone(),
            read_at,
        });
        self.begin_run();
        self.before = before;
    }

    /// Takes over the final status that the attempt before has read, if this one ran by then and has read nothing: an attempt that is
    /// queued ahead does not run after a final status, so it has written that itself.
    pub(crate) fn claim_final_status(&mut self, started_at: Option<Timestamp>) {
        let read_since = |before: &FinalStatus| started_at.is_some_and(|at| at <= before.read_at);
        if let Some(before) = self.before.take_if(|before| read_since(before)).filter(|_| self.word.is_none())
        {
            (self.word, self.final_status_at) = (Some(before.word), Some(before.read_at));
            (self.message, self.failure) = (before.message, before.failure);
        }
    }

    /// Returns to the run before, since the current one never began. `before` is that run's progress. Stored events stay.
    pub(crate) fn resume_run(&mut self, before: Self) {
        *self = Self {
            events: self.events,
            event_bytes: self.event_bytes,
            events_truncated: self.events_truncated,
            ..before
        };
    }

    /// The newest status of the whole job.
    pub fn final_status(&self) -> Option<StatusWord> {
        self.word.as_deref().and_then(|word| word.parse().ok())
    }

    /// Whether the job has reported SUCCESS or FAILURE.
    pub(crate) fn is_final(&self) -> bool {
        matches!(self.final_status(), Some(StatusWord::Success | StatusWord::Failure))
    }

    /// Whether the job has reported FAILURE.
    pub(crate) fn has_failed(&self) -> bool {
        self.final_status() == Some(StatusWord::Failure)
    }

    /// Seconds until the last epoch is done: the job's own estimate, else from its time per epoch, else from the measured
    /// pace. `None` once the job has reported its final status.
    pub fn eta_seconds(&self) -> Option<u64> {
        if self.is_final() {
            return None;
        }
        let own = self.eta.as_deref().and_then(eta::seconds).and_then(eta::whole);
        let left = || self.max_epoch?.checked_sub(self.epoch?);
        own.or_else(|| eta::seconds_left(&self.pace, self.time_per_epoch.as_deref(), left()?))
    }

    /// The same for people: the job's own text, else in Python's format.
    pub fn eta_text(&self) -> Option<String> {
        self.eta.clone().or_else(|| self.eta_seconds().map(eta::text))
    }
}

/// Not rounded up: only what is done is 100.
fn whole_percent(share: f64) -> u8 {
    (0..=100).rev().find(|percent| f64::from(*percent) <= share).unwrap_or_default()
}

fn percent(done: Option<u64>, of: Option<u64>) -> Option<u8> {
    let (done, of) = done.zip(of.filter(|of| *of > 0))?;
    u8::try_from((done.saturating_mul(100) / of).min(100)).ok()
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use serde_json::json;
    use test_case::test_case;

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

    #[test_case("NaN"; "as Python writes it")]
    #[test_case("null"; "as other loggers write NaN")]
    #[test_case(r#"{"value":NaN}"#; "in an object")]
    #[test_case(r#"{"value":null}"#; "as null in an object")]
    fn a_metric_that_is_no_longer_finite_is_null(written: &str) {
        let healthy = "{\"kpi\":{\"loss\":0.5,\"acc\":0.9},\"key_metric\":0.9}\n";
        let diverged = format!("{{\"kpi\":{{\"loss\":{written}}},\"key_metric\":{written}}}\n");
        let progress = after(&format!("{healthy}{diverged}"));
        assert_eq!((&progress.metrics["loss"], &progress.metrics["acc"]), (&Value::Null, &0.9.into()));
        assert_eq!(progress.key_metric, None);
        let progress = after(&format!("{diverged}{healthy}"));
        assert_eq!((&progress.metrics["loss"], progress.key_metric), (&0.5.into(), Some(0.9)));
    }

    #[test]
    fn a_null_without_an_earlier_value_is_no_metric_and_hides_no_number() {
        assert!(after("{\"kpi\":{\"val_loss\":null,\"note\":null}}\n").metrics.is_empty());
        let both = "{\"kpi\":{\"loss\":0.5}}\n{\"kpi\":{\"loss\":null},\"graphical\":{\"loss\":0.25}}\n";
        assert_eq!(after(both).metrics["loss"], json!(0.25));
    }

    #[test]
    fn the_precision_of_each_of_eighty_classes_is_a_metric() {
        let classes: Map<String, Value> =
            (0..80).map(|class| (format!("AP of class {class}"), json!(0.5))).collect();
        let line = json!({"status": "RUNNING", "kpi": classes, "graphical": {"loss": 0.25}});
        assert_eq!(after(&format!("{line}\n")).metrics.len(), 81);
    }

    #[test]
    fn iterations_tell_the_percent_where_their_number_is_known() {
        let progress =
            after("{\"epoch\":0.67,\"max_epoch\":3,\"step\":100,\"max_step\":450}\n{\"epoch\":0.9}\n");
        assert_eq!((progress.epoch, progress.cur_iter, progress.percent), (Some(0), Some(100), Some(22)));
        assert_eq!(after("{\"epoch\":1.0,\"max_epoch\":3.0,\"max_step\":-1}\n").percent, Some(33));
    }

    #[test]
    fn the_first_failure_has_the_reason_until_the_job_starts_anew() {
        let failure = |why: &str| format!("{{\"status\":\"FAILURE\",\"message\":\"{why}\"}}\n");
        let running = "{\"status\":\"RUNNING\",\"message\":\"uploading\"}\n";
        let text = failure("the loss went away") + running + &failure("train action failed for dino");
        assert_eq!(after(&text).failure.as_deref(), Some("the loss went away"));
        assert_eq!(after(&text).message.as_deref(), Some("train action failed for dino"));
        let again = text + "{\"status\":\"STARTED\"}\n" + &failure("another one");
        assert_eq!(after(&again).failure.as_deref(), Some("another one"));
        assert_eq!(after("{\"status\":\"FAILURE\"}\n").failure, None);
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
