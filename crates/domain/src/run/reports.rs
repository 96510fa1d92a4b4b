//! What a running job reports of itself beside its status files: the states of its services, and its progress file.

use remote::{ReportFiles, Reports, ServicesMarker, UsageMarker, WaitingService, WaitingState};
use serde_json::Value;
use slurm::{RemotePath, SlurmJobId};

use crate::{
    progress::summary::Progress,
    request::{
        progress::ProgressFile,
        spec::{JobSpec, Work},
    },
};

/// What a job may report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reporting {
    /// It has services with rules.
    pub services: bool,
    /// Its progress file, below the results directory.
    pub progress: Option<String>,
}

impl Reporting {
    pub fn of(spec: &JobSpec) -> Self {
        let services = match &spec.work {
            Work::Components { list } => list.iter().any(|one| !one.service.is_default()),
            Work::Tao { .. } | Work::Command { .. } => false,
        };
        Self { services, progress: spec.progress.as_ref().map(|file| file.path.clone()) }
    }

    /// The files of one task. `results`: its results directory. `measures`: its use is asked for.
    pub fn files(&self, results: &RemotePath, measures: bool) -> ReportFiles {
        let progress = self.progress.as_ref().and_then(|file| results.join(file).ok());
        let usage = measures.then_some(UsageMarker::MOST_BYTES);
        ReportFiles { services: self.services, progress, usage }
    }
}

/// Takes in what a running job reports. What could not be read stays as it was.
pub(super) fn absorb(
    progress: &mut Progress,
    seen: &Reports,
    file: Option<&ProgressFile>,
    id: Option<SlurmJobId>,
) {
    if let Some(marker) = seen.services.as_ref().filter(|marker| Some(marker.slurm_id) == id) {
        progress.waiting = marker.waiting.iter().map(|service| in_words(service, marker)).collect();
    }
    if let Some((text, file)) = seen.progress.as_deref().zip(file) {
        absorb_progress(progress, text, file);
    }
}

/// Takes in the text of the progress file.
pub(super) fn absorb_progress(progress: &mut Progress, text: &str, file: &ProgressFile) {
    if let Some((done, total)) = measured(text, file) {
        progress.measure(done, total);
    }
}

fn in_words(service: &WaitingService, marker: &ServicesMarker) -> String {
    let WaitingService { name, state } = service;
    match state {
        WaitingState::Starting { since, limit } => {
            let seconds = marker.at.saturating_sub(*since).max(0);
            format!("{name}: loading, {seconds} s of {limit}")
        }
        WaitingState::Failing { missed, most } => format!("{name}: no answer to {missed} of {most} probes"),
        WaitingState::Ending => format!("{name}: ending, starts again"),
    }
}

/// What the file says: how much is done, of how much.
fn measured(text: &str, file: &ProgressFile) -> Option<(f64, f64)> {
    let total = Value::from(file.total.get()).as_f64()?;
    let value: Value = serde_json::from_str(text.trim()).ok()?;
    let (done, total) = match (value.as_object(), value.get("percent")) {
        (None, _) => (value.as_f64()?, total),
        (Some(_), Some(percent)) => (percent.as_f64()?, 100.0),
        (Some(fields), None) => {
            (fields.get("done")?.as_f64()?, fields.get("total").map_or(Some(total), Value::as_f64)?)
        }
    };
    let is_number = |number: f64| (0.0..1e15).contains(&number);
    (is_number(done) && is_number(total) && total > 0.0).then_some((done, total))
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use test_case::test_case;

    use super::*;

    fn after(reports: &Reports) -> Progress {
        let mut progress = Progress::default();
        let file = ProgressFile { path: "progress".to_owned(), total: NonZeroU64::new(200).unwrap() };
        absorb(&mut progress, reports, Some(&file), SlurmJobId::new(42));
        progress
    }

    #[test_case("37", Some((37.0, 200.0, 18)); "a number")]
    #[test_case(" 200\n", Some((200.0, 200.0, 100)); "all")]
    #[test_case("250", Some((250.0, 200.0, 100)); "more than all")]
    #[test_case("0.5", Some((0.5, 200.0, 0)); "a fraction")]
    #[test_case(r#"{"percent": 41.7, "eta": "soon"}"#, Some((41.7, 100.0, 41)); "percent")]
    #[test_case(r#"{"done": 3, "total": 4}"#, Some((3.0, 4.0, 75)); "both numbers")]
    #[test_case(r#"{ "done": 50 }"#, Some((50.0, 200.0, 25)); "of the total that was asked for")]
    #[test_case("", None; "an empty file")]
    #[test_case("-1", None; "a negative number")]
    #[test_case("NaN", None; "no number")]
    #[test_case("1e999", None; "no number of this size")]
    #[test_case("1e308", None; "too large a number")]
    #[test_case(r#"{"done": 3, "total": 0}"#, None; "of nothing")]
    #[test_case(r#"{"done": "3"}"#, None; "a text")]
    #[test_case("[3]", None; "a list")]
    fn the_file_tells_how_far_it_is(text: &str, expected: Option<(f64, f64, u8)>) {
        let progress = after(&Reports { progress: Some(text.to_owned()), ..Reports::default() });
        let found = progress.done.zip(progress.total).zip(progress.percent);
        assert_eq!(found.map(|((done, total), percent)| (done, total, percent)), expected);
    }

    #[test]
    fn services_that_are_not_ready_are_told_in_words() {
        let service = |name: &str, state| WaitingService { name: name.parse().unwrap(), state };
        let marker = |id| ServicesMarker {
            slurm_id: SlurmJobId::new(id).unwrap(),
            at: 1000,
            waiting: vec![
                service("model", WaitingState::Starting { since: 786, limit: 3600 }),
                service("judge", WaitingState::Failing { missed: 2, most: 3 }),
                service("late", WaitingState::Starting { since: 2000, limit: 60 }),
                service("old", WaitingState::Ending),
            ],
        };
        let told = |id| after(&Reports { services: Some(marker(id)), ..Reports::default() }).waiting;
        let words = [
            "model: loading, 214 s of 3600",
            "judge: no answer to 2 of 3 probes",
            "late: loading, 0 s of 60",
            "old: ending, starts again",
        ];
        assert_eq!(told(42), words);
        assert!(told(41).is_empty(), "it is of another job");
    }
}
