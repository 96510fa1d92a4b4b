//! Submission: intent first, then one remote command for the whole batch.

use domain::{After, Job, Phase, Sent, Status, plan_submission, sent};
use persistence::{Lease, StepRecord, StoreError};
use slurm::{Cancel, SlurmJobId, SubmitAnswer, SubmitBatch};

use crate::{
    link::{ClusterLink, LinkError},
    steps::done,
    worker::{Site, Worker},
};

/// A job whose intent is about to be stored, and whether the claim of an earlier try may be taken over.
struct Intent {
    job: Job,
    retake: bool,
}

impl<L: ClusterLink> Worker<L> {
    pub(crate) async fn submit(
        &self,
        site: &Site<L>,
        lease: &Lease,
        jobs: Vec<Job>,
    ) -> Result<(), StoreError> {
        if jobs.is_empty() {
            return Ok(());
        }
        let intents = self.store_intents(lease, jobs).await?;
        let (jobs, batch) = self.stage(site, lease, intents).await?;
        if jobs.is_empty() {
            return Ok(());
        }
        let answers = site.target.link.submit(&batch).await;
        let steps = self.judge(&jobs, &answers);
        self.record(lease, &steps).await?;
        self.cancel_doubles(site, &answers).await;
        // The poll finds out soon what became of them, instead of at the pace of a quiet cluster.
        self.store.poll_soon(&site.target.cluster.name, site.target.pace.min).await?;
        site.wake_poll();
        Ok(())
    }

    /// Commits the attempts before anything remote happens. Jobs whose lease was lost drop out here.
    async fn store_intents(&self, lease: &Lease, jobs: Vec<Job>) -> Result<Vec<Intent>, StoreError> {
        let now = self.clock.now();
        let mut intents = Vec::with_capacity(jobs.len());
        for mut job in jobs {
            let attempt = match job.attempt.take().filter(|attempt| attempt.ended_at.is_none()) {
                Some(attempt) => Ok(attempt),
                None => job.new_attempt(now),
            };
            match attempt {
                Ok(mut attempt) => {
                    // From here on a crash leaves a claim that nobody may take over without looking.
                    let retake = std::mem::take(&mut attempt.retake);
                    attempt.sent_at = Some(now);
                    job.attempt = Some(attempt);
                    job.phase = Phase::Submitting;
                    "Being submitted to Slurm.".clone_into(&mut job.message);
                    intents.push(Intent { job, retake });
                }
                Err(error) => tracing::error!(job.id = %job.id, error = %error, "no token can be made"),
            }
        }
        let records: Vec<_> = intents.iter().map(|intent| done(intent.job.clone(), Some(now))).collect();
        let stored = self.store.record_intents(lease, &records, now).await?;
        intents.retain(|intent| stored.contains(&intent.job.id));
        Ok(intents)
    }

    /// Makes the files and scripts. A job that cannot be put into files ends here, with the reason.
    async fn stage(
        &self,
        site: &Site<L>,
        lease: &Lease,
        intents: Vec<Intent>,
    ) -> Result<(Vec<Job>, SubmitBatch), StoreError> {
        let ids: Vec<_> = intents.iter().map(|intent| intent.job.id).collect();
        let secrets = self.store.open_secrets(&ids).await?;
        let (mut jobs, mut entries, mut scripts, mut refused) = (vec![], vec![], vec![], vec![]);
        for Intent { job, retake } in intents {
            let Some(attempt) = &job.attempt else { continue };
            let of_job = secrets.get(&job.id).cloned().unwrap_or_default();
            match plan_submission(&job, attempt, &site.target.cluster, &of_job, retake) {
                Ok(entry) => {
                    let script = entry.files.iter().find(|file| file.path == entry.script_path);
                    let text = script.map(|file| String::from_utf8_lossy(&file.bytes).into_owned());
                    scripts.push((job.id, attempt.no.get(), text.unwrap_or_default()));
                    entries.push(entry);
                    jobs.push(job);
                }
                Err(error) => refused.push(done(unstageable(&job, &error, self.clock.now()), None)),
            }
        }
        self.record(lease, &refused).await?;
        self.store.record_scripts(&scripts).await?;
        Ok((jobs, SubmitBatch::new(entries)))
    }

    fn judge(&self, jobs: &[Job], answers: &Result<Vec<SubmitAnswer>, LinkError>) -> Vec<StepRecord> {
        let now = self.clock.now();
        let outcome = |index: usize| match answers {
            Ok(answers) => match answers.get(index) {
                Some(answer) => Sent::Answered(answer),
                None => Sent::Lost { why: "the answer was incomplete" },
            },
            Err(LinkError::NotSent { why }) => Sent::NotSent { why },
            Err(LinkError::Lost { why }) => Sent::Lost { why },
        };
        let record = |(index, job): (usize, &Job)| {
            let After { job, due_at } = sent(job, outcome(index), now);
            done(job, due_at)
        };
        jobs.iter().enumerate().map(record).collect()
    }

    /// More than one Slurm job with one token: all but the adopted one are cancelled. Their own claim has kept
    /// them from running the work twice.
    async fn cancel_doubles(&self, site: &Site<L>, answers: &Result<Vec<SubmitAnswer>, LinkError>) {
        let Ok(answers) = answers else { return };
        let ids: Vec<SlurmJobId> = answers
            .iter()
            .flat_map(|answer| match answer {
                SubmitAnswer::Submitted { extra, .. } => extra.clone(),
                _ => Vec::new(),
            })
            .collect();
        if ids.is_empty() {
            return;
        }
        metrics::counter!("submit_duplicates_detected_total").increment(ids.len() as u64);
        tracing::warn!(?ids, "one token has several Slurm jobs; cancelling all but one");
        if let Err(error) = site.target.link.cancel(&Cancel { ids, names: Vec::new() }).await {
            tracing::warn!(error = %error, "the duplicates could not be cancelled");
        }
    }
}

fn unstageable(job: &Job, error: &domain::StagingError, now: domain::Timestamp) -> Job {
    let mut job = job.canceled_unsubmitted(now);
    job.status = Status::Error;
    job.message = format!("The job cannot be put into files: {error}. This is a defect of the service.");
    job
}
