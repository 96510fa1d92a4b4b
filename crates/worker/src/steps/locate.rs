//! Finds the Slurm jobs of uncertain submissions.

use chrono::TimeDelta;
use domain::{Job, Lookup, Phase, after_lookup};
use persistence::{Lease, WorkStore};
use remote::{AttemptKey, Locate, LocateAnswer, Sought};
use slurm::{JobName, SlurmJobId, SlurmState};

use crate::{
    Result,
    cluster_runtime::Runtime,
    link::{cluster_link::ClusterLink, counted},
    steps::{pending_cleanup::Unsubmitted, record::warn_of_each},
    worker::Worker,
};

impl<L: ClusterLink, S: WorkStore> Worker<L, S> {
    pub(crate) async fn locate(&self, runtime: &Runtime<L>, lease: &Lease, jobs: Vec<Job>) -> Result {
        let since =
            jobs.iter().filter_map(|job| job.attempt.as_ref()).map(|attempt| attempt.intended_at).min();
        // An hour earlier than the first intent: the clocks of the cluster and of this host may differ.
        let since = since.unwrap_or_else(|| self.clock.now()) - TimeDelta::hours(1);
        let command = Locate { jobs: jobs.iter().filter_map(lost).collect(), since_unix: since.timestamp() };
        let answer = runtime.target.link.call(&command).await;
        if let Err(error) = &answer {
            warn_of_each(&jobs, error, "the uncertain submission could not be looked up");
        }
        let now = self.clock.now();
        let step = |before: &Job| -> Unsubmitted {
            let token = before.attempt.as_ref().map(|attempt| &attempt.token);
            let found = answer.as_ref().map_or(Lookup::Unclear, |answer| sought(token, answer));
            Unsubmitted::new(before, after_lookup(before, found, now))
        };
        let steps: Vec<_> = jobs.iter().map(step).collect();
        let copies = answer
            .iter()
            .flat_map(|answer| steps.iter().flat_map(|step| copies(step.job(), answer)))
            .collect();
        let adopted = steps.iter().map(Unsubmitted::job).filter(|job| job.phase == Phase::InQueue);
        counted::submissions(&runtime.target.cluster.name, adopted, now);
        self.record_unsubmitted(runtime, lease, steps).await?;
        self.cancel_copies(runtime, copies).await;
        self.poll_soon(runtime).await
    }
}

/// The search for a job with an uncertain submission.
fn lost(job: &Job) -> Option<Sought> {
    let attempt = job.attempt.as_ref()?;
    let paths = domain::JobPaths::new(&attempt.job_dir, job.id).ok()?;
    Some(Sought {
        key: attempt.key(job.id),
        state_dir: paths.state(attempt).ok()?,
        base_dir: attempt.job_dir.clone(),
        send: attempt.fence.newest,
        cleared: attempt.fence.cleared,
    })
}

/// The Slurm jobs of an attempt in the queue, without the adopted one.
fn copies(job: &Job, answer: &LocateAnswer) -> Vec<(SlurmJobId, AttemptKey)> {
    let Some(attempt) = &job.attempt else { return Vec::new() };
    let Some(adopted) = attempt.slurm_id else { return Vec::new() };
    copies_of(answer, &attempt.key(job.id), adopted)
}

/// The Slurm jobs of that name in the queue, without the adopted one. While no claim is visible, running jobs are left alone,
/// because one of them may hold the claim; the others stop when they find it.
pub(crate) fn copies_of(
    answer: &LocateAnswer,
    key: &AttemptKey,
    adopted: SlurmJobId,
) -> Vec<(SlurmJobId, AttemptKey)> {
    let found = answer.located.iter().filter(|found| found.key == key.name.as_str());
    let useless = found.flat_map(|found| {
        let claimed = found.run_claim.is_some();
        found
            .squeue
            .iter()
            .filter(move |(_, state)| *state == SlurmState::Pending || claimed && state.is_active())
    });
    useless.filter(|(id, _)| *id != adopted).map(|(id, _)| (*id, key.clone())).collect()
}

/// The conclusion from the four sources: the queue, the saved id, the script's claim, and accounting.
///
/// The job with the claim is the one that runs. Without a claim it is the oldest, and the others find its claim when they
/// start.
pub(crate) fn sought(token: Option<&JobName>, answer: &LocateAnswer) -> Lookup {
    let token = token.map(JobName::as_str);
    let Some(found) = answer.located.iter().find(|found| Some(found.key.as_str()) == token) else {
        return Lookup::Unclear;
    };
    let queued = || found.squeue.iter().map(|(id, _)| *id).min();
    let accounted = || found.sacct.as_ref().and_then(|ids| ids.iter().copied().min());
    let id: Option<SlurmJobId> = found.run_claim.or(found.id_file).or_else(queued).or_else(accounted);
    match id {
        Some(id) => Lookup::Found(id),
        None if found.unbegun => Lookup::NeverBegan,
        None if answer.controller_answered && found.sacct.is_some() && found.readable => Lookup::Absent,
        None => Lookup::Unclear,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u32) -> SlurmJobId {
        SlurmJobId::new(number).unwrap()
    }

    #[test]
    fn a_copy_that_runs_is_cancelled_only_if_it_surely_has_not_the_claim() {
        let subject = remote::Subject::Job(uuid::Uuid::nil());
        let token = AttemptKey { subject, name: "tao-job-x".parse().unwrap() };
        let found = |run_claim| remote::Located {
            key: token.name.to_string(),
            readable: true,
            unbegun: false,
            squeue: vec![
                (id(9), SlurmState::Running),
                (id(11), SlurmState::Running),
                (id(12), SlurmState::Pending),
                (id(13), SlurmState::Completed),
            ],
            id_file: None,
            run_claim,
            sacct: None,
        };
        let answer = |run_claim| LocateAnswer {
            located: vec![found(run_claim)],
            remote_time: 0,
            controller_answered: true,
        };
        let copies =
            |answer| copies_of(&answer, &token, id(9)).into_iter().map(|(id, _)| id).collect::<Vec<_>>();
        assert_eq!(copies(answer(None)), [id(12)]);
        assert_eq!(copies(answer(Some(id(9)))), [id(11), id(12)]);
    }
}
