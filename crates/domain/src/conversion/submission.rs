//! What the answer to a conversion's submission means: the rules are those of jobs.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use remote::{ConversionScript, StagedFile, Submission, SubmitAnswer};
use slurm::{Failure, FailureClass, RemotePath, SlurmJobId};

use super::{Conversion, ConversionRun, ConversionState, ConversionTransition, LOOK_ROUND};
use crate::{
    clock::Timestamp,
    cluster::target::Cluster,
    job::submit_fence::LOOK_AGAIN,
    launch::staging::StagingError,
    run::submission::{LONGEST_SETBACK, Located, Sent},
};

/// What one remote command needs to submit the conversion's newest run.
pub fn plan_conversion(
    conversion: &Conversion,
    run: &ConversionRun,
    cluster: &Cluster,
) -> Result<Submission, StagingError> {
    let settings = &cluster.images;
    let temp_root = match &settings.temp_dir {
        Some(dir) => dir.clone(),
        None => settings.cache_dir.join(".enroot-tmp")?,
    };
    let script = ConversionScript {
        job_name: run.token.clone(),
        partition: settings.conversion_partition.clone(),
        account: cluster.account.clone(),
        minutes: settings.conversion_minutes,
        memory_gb: settings.conversion_memory_gb,
        state_dir: run.state_dir.clone(),
        uri: conversion.image.enroot(),
        target: run.target.clone(),
        temp_root,
    };
    let path = run.state_dir.join("convert.sbatch")?;
    let bytes = script.render()?.into_bytes();
    let make_dirs: BTreeSet<RemotePath> =
        run.target.parent().into_iter().chain([run.state_dir.clone()]).collect();
    Ok(Submission {
        key: run.key(conversion.id),
        state_dir: run.state_dir.clone(),
        files: vec![StagedFile { path: path.clone(), mode: 0o644, bytes }],
        script_path: path,
        make_dirs: make_dirs.into_iter().collect(),
        results_dir: None,
        base_dir: cluster.base_dir.clone(),
        inputs: Vec::new(),
        send: run.fence.newest,
        cleared: run.fence.cleared,
    })
}

impl Conversion {
    /// The conversion whose submission is about to be sent.
    #[must_use]
    pub fn sending(&self) -> Self {
        let mut next = self.clone();
        if let Some(run) = &mut next.run {
            run.fence.begin();
        }
        next
    }

    /// What was sent had no effect.
    fn clear(&mut self) {
        if let Some(run) = &mut self.run {
            run.fence.clear();
        }
    }

    fn submitted(&mut self, id: SlurmJobId, now: Timestamp) -> Timestamp {
        if let Some(run) = &mut self.run {
            (run.slurm_id, run.submitted_at, run.queued_since) = (Some(id), Some(now), Some(now));
            run.setbacks = 0;
        }
        self.state = ConversionState::InQueue;
        self.message = format!("Converting the image {}: Slurm job {id} waits for a node.", self.image);
        now + LOOK_ROUND
    }

    fn refused(&mut self, failure: &Failure, now: Timestamp) -> Option<Timestamp> {
        match failure.class {
            FailureClass::Permanent => {
                self.failed(format!("Slurm refuses the conversion's job: {}", failure.excerpt), now);
                None
            }
            FailureClass::Ambiguous => Some(self.uncertain(&failure.excerpt, now)),
            FailureClass::Capacity => {
                self.clear();
                self.message = format!("Slurm takes no conversion of the image now: {}", failure.excerpt);
                Some(now + TimeDelta::minutes(1))
            }
            FailureClass::NotDone | FailureClass::Infra => {
                Some(self.set_back(&format!("The image cannot be converted yet: {}", failure.excerpt), now))
            }
        }
    }

    fn set_back(&mut self, why: &str, now: Timestamp) -> Timestamp {
        self.clear();
        let setbacks = self.run.as_mut().map_or(1, |run| {
            run.setbacks = run.setbacks.saturating_add(1);
            run.setbacks
        });
        let wait = TimeDelta::seconds(1_i64 << setbacks.min(10)).min(LONGEST_SETBACK);
        self.message = format!("{why} Trying again in {} s.", wait.num_seconds());
        now + wait
    }

    fn uncertain(&mut self, why: &str, now: Timestamp) -> Timestamp {
        self.state = ConversionState::SubmitUncertain;
        self.message = format!(
            "Converting the image {}: the submission's answer was lost ({why}); looking for it before anything is sent \
             again.",
            self.image
        );
        now
    }
}

/// The conversion after its submission was sent. `unanswered` says whether an earlier one of the same run still was.
pub fn conversion_sent(
    conversion: &Conversion,
    unanswered: bool,
    outcome: Sent<'_>,
    now: Timestamp,
) -> ConversionTransition {
    let mut next = conversion.clone();
    let due_at = match outcome {
        Sent::Answered(SubmitAnswer::Skipped | SubmitAnswer::StageFailed(_)) | Sent::NotSent { .. }
            if unanswered =>
        {
            Some(next.uncertain("the service was interrupted", now))
        }
        Sent::Answered(SubmitAnswer::Submitted { id, .. }) => Some(next.submitted(*id, now)),
        Sent::Answered(SubmitAnswer::Refused { failure, .. } | SubmitAnswer::StageFailed(failure)) => {
            next.refused(failure, now)
        }
        // A conversion names no inputs, so none of them is missing.
        Sent::Answered(SubmitAnswer::Skipped | SubmitAnswer::MissingInputs { .. }) => {
            next.clear();
            Some(now)
        }
        Sent::Answered(SubmitAnswer::Uncertain) => Some(next.uncertain("no answer came back", now)),
        Sent::Lost { why } => Some(next.uncertain(why, now)),
        Sent::NotSent { why } => Some(next.set_back(&format!("The cluster cannot be reached: {why}"), now)),
    };
    ConversionTransition { conversion: next, due_at }
}

/// The conversion of which no submission can be made, and why. `unanswered` as above: an earlier submission of the run
/// is looked for first, since it may be under way.
pub fn conversion_unplannable(
    conversion: &Conversion,
    unanswered: bool,
    why: &dyn std::fmt::Display,
    now: Timestamp,
) -> ConversionTransition {
    let mut next = conversion.clone();
    if unanswered {
        let due_at = Some(next.uncertain("the service was interrupted", now));
        return ConversionTransition { conversion: next, due_at };
    }
    next.not_plannable(why, now)
}

/// The conversion after a look for its lost submission: absence is proved as it is for jobs.
pub fn conversion_located(conversion: &Conversion, found: Located, now: Timestamp) -> ConversionTransition {
    let mut next = conversion.clone();
    let due_at = match found {
        Located::Found(id) => next.submitted(id, now),
        Located::Unbegun => next.absent(now),
        Located::Absent if next.run.as_mut().is_none_or(|run| run.fence.are_absent(now)) => next.absent(now),
        Located::Absent | Located::Unclear => now + LOOK_AGAIN,
    };
    ConversionTransition { conversion: next, due_at: Some(due_at) }
}

impl Conversion {
    /// Nothing of it is on the cluster.
    fn absent(&mut self, now: Timestamp) -> Timestamp {
        self.clear();
        self.state = ConversionState::Submitting;
        self.message = format!("Converting the image {}: its job is being submitted again.", self.image);
        now
    }
}
