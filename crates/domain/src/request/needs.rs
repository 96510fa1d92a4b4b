//! What a job needs before it begins: other jobs, as far as they have come.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use strum::Display;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{request::text::Word, violation::Faults};

/// The most jobs that one job may need.
pub(crate) const MAX_NEEDS: usize = 1000;

/// Another job of the same owner that this one waits for, on any cluster.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NeedRequest {
    /// The id of the other job. In a pipeline, the name of another of its jobs may stand for it.
    pub job: String,
    /// What it waits for.
    #[serde(default)]
    pub when: NeedWhen,
    /// Names the variables that tell the job's program about the other job: `NEEDS_<NAME>_ID`, `NEEDS_<NAME>_STATUS` and
    /// `NEEDS_<NAME>_DIR`, its results directory; in upper case, with `_` for other characters. Default: the name of the other job in
    /// the pipeline, or the position in this list, from 1.
    #[schema(max_length = 100)]
    pub name: Option<String>,
}

/// What a job waits for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, Display, ToSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum NeedWhen {
    /// The other job has ended with `Done`.
    #[default]
    Succeeded,
    /// The other job has ended with `Error`.
    Failed,
    /// The other job has ended, whatever the result.
    Finished,
    /// The other job has begun to run.
    Started,
    /// Task by task: each task of this job waits until the task of the same number of the other job has succeeded. A task whose
    /// counterpart fails, is canceled or does not exist is canceled. Needs `array`.
    Each,
}

/// A job that this one needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = NeedView)]
pub struct Need {
    /// Names the variables about the other job: `NEEDS_<NAME>_DIR` and others.
    #[schema(value_type = String, example = "prep")]
    pub name: Word,
    /// The id of the other job.
    pub job: Uuid,
    /// What is waited for.
    pub when: NeedWhen,
}

impl Need {
    /// The name of a variable about the other job. `what`: `ID`, `STATUS` or `DIR`.
    pub(crate) fn variable(&self, what: &str) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
        let name: String = self.name.as_str().chars().map(plain).collect();
        format!("NEEDS_{name}_{what}")
    }
}

/// The validated needs of a request. `own`: the id of the job, if its caller has chosen one.
pub(super) fn needs(
    asked: &[NeedRequest],
    own: Option<Uuid>,
    has_array: bool,
    faults: &mut Faults,
) -> Vec<Need> {
    if asked.len() > MAX_NEEDS {
        faults.add("/needs", "too_many", format_args!("must have at most {MAX_NEEDS} jobs"));
    }
    let mut variables = BTreeSet::new();
    let mut needs = Vec::with_capacity(asked.len().min(MAX_NEEDS));
    for (at, need) in asked.iter().take(MAX_NEEDS).enumerate() {
        let Ok(job) = need.job.parse::<Uuid>() else {
            let detail = format_args!(
                "must be the id of a job, or in a pipeline the name of one of its jobs; got {}",
                slurm::shown(&need.job)
            );
            faults.add(format!("/needs/{at}/job"), "invalid", detail);
            continue;
        };
        if own == Some(job) {
            faults.add(format!("/needs/{at}/job"), "cycle", "is this job itself: a job cannot need itself");
        }
        if need.when == NeedWhen::Each && !has_array {
            faults.add(
                format!("/needs/{at}/when"),
                "unsupported",
                "needs `array`; without one use `succeeded`",
            );
        }
        let name = need.name.clone().unwrap_or_else(|| (at + 1).to_string());
        let Some(name) = faults.parse(&format!("/needs/{at}/name"), &name) else { continue };
        let need = Need { name, job, when: need.when };
        if !variables.insert(need.variable("ID")) {
            let detail = format_args!("is the second need whose variables are {}", need.variable("*"));
            faults.add(format!("/needs/{at}/name"), "repeated", detail);
        }
        needs.push(need);
    }
    needs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::violation::Violation;

    fn asked(job: &str, name: Option<&str>) -> NeedRequest {
        NeedRequest { job: job.to_owned(), name: name.map(str::to_owned), ..NeedRequest::default() }
    }

    fn faults(needs: &[NeedRequest], own: Option<Uuid>) -> Vec<(String, &'static str)> {
        let mut faults = Faults::default();
        super::needs(needs, own, false, &mut faults);
        faults.0.into_iter().map(|Violation { pointer, code, .. }| (pointer, code)).collect()
    }

    const ONE: &str = "01a21687-3d58-727b-af43-d5f40bfcf423";

    #[test]
    fn a_need_is_named_by_its_position_unless_it_has_a_name() {
        let mut found = Faults::default();
        let needs = super::needs(&[asked(ONE, None), asked(ONE, Some("prep-1"))], None, false, &mut found);
        assert!(found.0.is_empty());
        assert_eq!(needs[0].variable("DIR"), "NEEDS_1_DIR");
        assert_eq!(needs[1].variable("STATUS"), "NEEDS_PREP_1_STATUS");
        assert_eq!(needs[0].when, NeedWhen::Succeeded);
    }

    #[test]
    fn needs_that_make_no_sense_are_refused_with_their_place() {
        let at = |pointer: &str, code| vec![(pointer.to_owned(), code)];
        assert_eq!(faults(&[asked("prep", None)], None), at("/needs/0/job", "invalid"));
        assert_eq!(faults(&[asked(ONE, Some("-x"))], None), at("/needs/0/name", "invalid"));
        let twice = [asked(ONE, Some("a.b")), asked(ONE, Some("A-B"))];
        assert_eq!(faults(&twice, None), at("/needs/1/name", "repeated"));
        assert_eq!(faults(&[asked(ONE, None)], ONE.parse().ok()), at("/needs/0/job", "cycle"));
        let many: Vec<_> = (0..=MAX_NEEDS).map(|_| asked(ONE, None)).collect();
        assert_eq!(faults(&many, None), at("/needs", "too_many"));
        let each = NeedRequest { when: NeedWhen::Each, ..asked(ONE, None) };
        assert_eq!(faults(&[each], None), at("/needs/0/when", "unsupported"));
    }
}
