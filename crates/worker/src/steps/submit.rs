//! Submits jobs: the intents first, then one remote command for the whole batch.

use std::time::Duration;

use domain::{
    Attempt, DEFAULT_MAX_ARRAY_SIZE, Job, Phase, Secrets, SubmitOutcome, after_submit, excluded,
    plan_submission,
};
use persistence::{Lease, WorkStore};
use remote::{AttemptKey, Cancel, How, SubmitAnswer, SubmitBatch};
use slurm::SlurmJobId;

use crate::{
    Result,
    cluster_runtime::{Runtime, Turn},
    link::{
        cluster_link::{ClusterLink, LinkError},
        counted,
    },
    steps::{images::Settled, pending_cleanup::Unsubmitted, record::done},
    worker::Worker,
};

/// A job about to be submitted.
struct Intent {
    job: Job,
    /// The attempt as it was before: an earlier submission may be uncertain.
    before: Option<Attempt>,
    /// The attempt that may have queued this one ahead.
    queued_by: Option<Attempt>,
}

impl Intent {
    /// The attempt that has queued this one ahead, if Slurm had it before anything was submitted.
    fn adopted_from(&self, answer: Option<&SubmitAnswer>) -> Option<&Attempt> {
        match answer? {
            SubmitAnswer::Submitted { how: How::Replay | How::Adopted, .. } => self.queued_by.as_ref(),
            _ => None,
        }
    }
}

impl<L: ClusterLink, S: WorkStore> Worker<L, S> {
    pub(crate) async fn submit(
        &self,
        runtime: &Runtime<L>,
        lease: &Lease,
        jobs: Vec<Job>,
        mut turn: Option<Turn<'_>>,
    ) -> Result {
        let settled = self.settle_images(runtime, lease, jobs).await?;
        if settled.jobs.is_empty() {
            return Ok(());
        }
        let intents = self.store_intents(runtime, lease, settled).await?;
        let (intents, answers) = if let Some(away) = runtime.target.link.out_of_reach() {
            // It would be rendered in vain, and again after each pause.
            (intents, Err(away))
        } else {
            let (intents, batch) = self.stage(runtime, lease, intents).await?;
            let answers = self.send(runtime, batch, turn.as_deref_mut()).await;
            (intents, answers)
        };
        drop(turn);
        if intents.is_empty() {
            return Ok(());
        }
        self.keep_scripts_of_adopted(&intents, &answers).await?;
        let steps = self.judge(&intents, &answers);
        counted::submissions(
            &runtime.target.cluster.name,
            steps.iter().map(Unsubmitted::job),
            self.clock.now(),
        );
        self.record_unsubmitted(runtime, lease, steps).await?;
        self.cancel_doubles(runtime, &intents, &answers).await;
        if after_budget(&answers).is_some() {
            // Nothing was sent. A poll would take what the next submission needs.
            return Ok(());
        }
        // A poll follows soon, instead of at the pace of a quiet cluster.
        self.poll_soon(runtime).await
    }

    async fn send(
        &self,
        runtime: &Runtime<L>,
        mut batch: SubmitBatch,
        swept: Option<&mut Option<Duration>>,
    ) -> Result<Vec<SubmitAnswer>, LinkError> {
        if batch.entries.is_empty() {
            return Ok(Vec::new());
        }
        let now = self.clock.uptime();
        batch.sweep = swept.as_deref().is_some_and(|swept| is_to_sweep(*swept, now));
        let answers = runtime.target.link.call(&batch).await;
        if let Some(swept) = swept.filter(|_| batch.sweep && answers.is_ok()) {
            *swept = Some(now);
        }
        answers
    }

    /// Commits the attempts before anything remote happens. Jobs with a lost lease are dropped here.
    async fn store_intents(
        &self,
        runtime: &Runtime<L>,
        lease: &Lease,
        settled: Settled,
    ) -> Result<Vec<Intent>> {
        let now = self.clock.now();
        let Settled { jobs, mut images } = settled;
        let failed: Vec<&Job> = jobs.iter().filter(|job| !job.failures.is_empty()).collect();
        let spare = self.spare_nodes(runtime, &failed).await;
        let max_array_size = self.max_array_size(runtime, &jobs).await?;
        let mut intents = Vec::with_capacity(jobs.len());
        for mut job in jobs {
            let before = job.attempt.clone().filter(|_| !job.needs_attempt());
            let queued_by = job.attempt.clone().filter(|_| before.is_none() && job.goes_on_ahead());
            if before.is_none() {
                match job.new_attempt(runtime.target.cluster.base_dir.clone(), now) {
                    Ok(mut attempt) => {
                        let spare = spare.get(&job.id).copied();
                        attempt.excluded = excluded(&job, &self.graces(runtime).retry, spare, now);
                        let ahead = || job.images_ahead().map(<[_]>::to_vec).unwrap_or_default();
                        attempt.images = images.remove(&job.id).unwrap_or_else(ahead);
                        job.assign_tasks(&mut attempt, max_array_size);
                        job.begin_attempt(attempt);
                    }
                    Err(error) => {
                        tracing::error!(job.id = %job.id, error = %error, "the Slurm job name is not valid");
                        continue;
                    }
                }
            }
            if let Some(attempt) = &mut job.attempt {
                attempt.fence.begin();
            }
            job.phase = Phase::Submitting;
            "Being submitted to Slurm.".clone_into(&mut job.message);
            intents.push(Intent { job, before, queued_by });
        }
        let records: Vec<_> = intents.iter().map(|intent| done(intent.job.clone(), Some(now))).collect();
        let stored = self.store.record_intents(lease, &records, now).await?;
        intents.retain_mut(|intent| {
            // At the end of the step another version means that somebody else has changed the job.
            intent.job.version += 1;
            stored.contains(&intent.job.id)
        });
        Ok(intents)
    }

    /// Slurm's `MaxArraySize`, if a job has an array.
    async fn max_array_size(&self, runtime: &Runtime<L>, jobs: &[Job]) -> Result<u32> {
        if jobs.iter().all(|job| job.array.is_none()) {
            return Ok(DEFAULT_MAX_ARRAY_SIZE);
        }
        let known = self.store.partitions().await?;
        let reported = known.get(&runtime.target.cluster.name).and_then(|known| known.max_array_size);
        Ok(reported.unwrap_or(DEFAULT_MAX_ARRAY_SIZE))
    }

    /// Renders files and scripts. A job that cannot be rendered ends here, with the reason.
    async fn stage(
        &self,
        runtime: &Runtime<L>,
        lease: &Lease,
        intents: Vec<Intent>,
    ) -> Result<(Vec<Intent>, SubmitBatch)> {
        let ids: Vec<_> = intents.iter().map(|intent| intent.job.id).collect();
        let mut secrets = self.store.open_secrets(&ids).await?;
        let jobs: Vec<&Job> = intents.iter().map(|intent| &intent.job).collect();
        let checkpoints = self.checkpoints(runtime, &jobs).await;
        let needing: Vec<_> =
            jobs.iter().filter(|job| !job.spec.needs.is_empty()).map(|job| job.id).collect();
        let needed = self.store.needed(&needing).await?;
        let (mut staged, mut entries, mut scripts, mut refused) = (vec![], vec![], vec![], vec![]);
        for intent in intents {
            let job = &intent.job;
            let Some(attempt) = &job.attempt else { continue };
            let of_job = match secrets.remove(&job.id) {
                None => Secrets::default(),
                Some(Ok(opened)) => opened,
                Some(Err(_)) => {
                    refused.push(self.not_stageable(&intent, LOST_KEY));
                    continue;
                }
            };
            let told = needed.get(&job.id).map(|needed| job.with_needed(needed, &runtime.target.cluster));
            let told = told.as_ref().unwrap_or(job);
            let from = checkpoints.get(&job.id).map(|checkpoint| told.resumed_from(checkpoint));
            match plan_submission(from.as_ref().unwrap_or(told), attempt, &runtime.target.cluster, &of_job) {
                Ok(entry) => {
                    let script = entry.files.iter().find(|file| file.path == entry.script_path);
                    let text = script.map(|file| String::from_utf8_lossy(&file.bytes).into_owned());
                    scripts.push((job.id, attempt.no.get(), text));
                    entries.push(entry);
                    staged.push(intent);
                }
                Err(error) => {
                    let why = format!(
                        "The job's files cannot be rendered: {error}. This is a defect of the service."
                    );
                    refused.push(self.not_stageable(&intent, &why));
                }
            }
        }
        self.record_unsubmitted(runtime, lease, refused).await?;
        self.store.record_scripts(&scripts).await?;
        Ok((staged, SubmitBatch::new(entries)))
    }

    /// Ends the job, unless an earlier submission is uncertain: that one is looked up first.
    fn not_stageable(&self, intent: &Intent, why: &str) -> Unsubmitted {
        if intent.before.as_ref().is_some_and(Attempt::is_uncertain) {
            let (before, outcome) = (intent.before.as_ref(), SubmitOutcome::NotRun { why });
            return Unsubmitted::new(
                &intent.job,
                after_submit(&intent.job, before, outcome, self.clock.now()),
            );
        }
        Unsubmitted::new(&intent.job, intent.job.unstageable(why, self.clock.now()))
    }

    fn judge(&self, intents: &[Intent], answers: &Result<Vec<SubmitAnswer>, LinkError>) -> Vec<Unsubmitted> {
        let now = self.clock.now();
        let record = |(index, intent): (usize, &Intent)| {
            let mut step = after_submit(&intent.job, intent.before.as_ref(), outcome(answers, index), now);
            if let Some(queued_by) = intent.adopted_from(answer(answers, index)) {
                step.job.takes_over(queued_by);
            }
            let wait = after_budget(answers).map(|wait| now + wait);
            step.due_at = wait.or(step.due_at);
            if let Some(array) = &mut step.job.array {
                array.not_before = array.not_before.max(wait);
            }
            say_images(&mut step.job);
            Unsubmitted::new(&intent.job, step)
        };
        intents.iter().enumerate().map(record).collect()
    }

    /// An adopted attempt runs the script of the attempt that has queued it.
    async fn keep_scripts_of_adopted(
        &self,
        intents: &[Intent],
        answers: &Result<Vec<SubmitAnswer>, LinkError>,
    ) -> Result {
        let adopted = intents.iter().enumerate().filter_map(|(index, intent)| {
            intent.adopted_from(answer(answers, index))?;
            Some((intent.job.id, intent.job.attempt.as_ref()?.no.get(), None))
        });
        let adopted: Vec<_> = adopted.collect();
        if adopted.is_empty() {
            return Ok(());
        }
        self.store.record_scripts(&adopted).await
    }

    /// Cancels all Slurm jobs with one name but the adopted one. The claim keeps them from running the work twice.
    async fn cancel_doubles(
        &self,
        runtime: &Runtime<L>,
        intents: &[Intent],
        answers: &Result<Vec<SubmitAnswer>, LinkError>,
    ) {
        let Ok(answers) = answers else { return };
        let key = |intent: &Intent| Some(intent.job.attempt.as_ref()?.key(intent.job.id));
        let copies = intents.iter().zip(answers).flat_map(|(intent, answer)| extra(answer, key(intent)));
        self.cancel_copies(runtime, copies.collect()).await;
    }

    /// Cancels extra Slurm jobs of an attempt.
    pub(crate) async fn cancel_copies(&self, runtime: &Runtime<L>, copies: Vec<(SlurmJobId, AttemptKey)>) {
        if copies.is_empty() {
            return;
        }
        let cluster = runtime.target.cluster.name.to_string();
        metrics::counter!("tao_slurm_submit_duplicates_detected_total", "cluster" => cluster)
            .increment(copies.len() as u64);
        tracing::warn!(?copies, "one attempt has several Slurm jobs; canceling all but one");
        if let Err(error) = runtime.target.link.call(&Cancel { jobs: copies, ..Cancel::default() }).await {
            tracing::warn!(error = %error, "the extra Slurm jobs could not be canceled; the claim keeps them from running");
        }
    }
}

/// Abandoned files are a day old, so a sweep once an hour is enough. Both times are uptimes.
fn is_to_sweep(swept: Option<Duration>, now: Duration) -> bool {
    swept.is_none_or(|swept| now.saturating_sub(swept) >= Duration::from_hours(1))
}

/// Adds to the message of a queued job why it runs without a cached file.
fn say_images(job: &mut Job) {
    let images = job.attempt.iter().flat_map(|attempt| &attempt.images);
    if job.phase == Phase::InQueue {
        for note in images.filter_map(|launch| launch.note.as_deref()) {
            job.message = format!("{} {note}", job.message);
        }
    }
}

/// The other Slurm jobs of the same name that a submission has found.
pub(crate) fn extra(answer: &SubmitAnswer, key: Option<AttemptKey>) -> Vec<(SlurmJobId, AttemptKey)> {
    match (answer, key) {
        (SubmitAnswer::Submitted { extra, .. }, Some(key)) => {
            extra.iter().map(|id| (*id, key.clone())).collect()
        }
        _ => Vec::new(),
    }
}

/// How long a submission waits for the RPC budget.
pub(crate) fn after_budget<T>(answers: &Result<T, LinkError>) -> Option<Duration> {
    match answers {
        Err(LinkError::OverBudget { wait }) => Some(*wait),
        _ => None,
    }
}

fn answer(answers: &Result<Vec<SubmitAnswer>, LinkError>, index: usize) -> Option<&SubmitAnswer> {
    answers.as_ref().ok()?.get(index)
}

/// The result of the submission of one entry.
pub(crate) fn outcome(answers: &Result<Vec<SubmitAnswer>, LinkError>, index: usize) -> SubmitOutcome<'_> {
    match answers {
        Ok(answers) => match answers.get(index) {
            Some(answer) => SubmitOutcome::Answered(answer),
            None => SubmitOutcome::Lost { why: "the answer was incomplete" },
        },
        Err(LinkError::NotSent { why } | LinkError::NotDone { why } | LinkError::AuthRequired { why }) => {
            SubmitOutcome::NotRun { why }
        }
        Err(LinkError::OverBudget { .. }) => SubmitOutcome::Answered(&SubmitAnswer::Skipped),
        Err(LinkError::Lost { why }) => SubmitOutcome::Lost { why },
    }
}

const LOST_KEY: &str = "The job's secrets cannot be opened with the service's present key, so it cannot be \
                        submitted. Send it again, or give the service the key that it had (secrets.key_file).";
