//! Submits conversions, and looks up uncertain submissions.

use std::error::Error as _;

use chrono::TimeDelta;
use domain::{
    Conversion, ConversionRun, ConversionTransition, Lookup, conversion_after_lookup,
    conversion_after_submit, conversion_unplannable, plan_conversion,
};
use persistence::{ConversionLease, WorkStore};
use remote::{Locate, Sought, SubmitBatch};

use super::warn_of;
use crate::{
    Result,
    cluster_runtime::Runtime,
    link::cluster_link::ClusterLink,
    steps::{
        locate::{copies_of, sought},
        submit::{after_budget, extra, outcome},
    },
    worker::Worker,
};

impl<L: ClusterLink, S: WorkStore> Worker<L, S> {
    pub(super) async fn submit_conversions(
        &self,
        runtime: &Runtime<L>,
        lease: &ConversionLease,
        conversions: Vec<Conversion>,
    ) -> Result {
        let now = self.clock.now();
        // Committed before anything remote happens. The state before decides how to read the answer.
        let intents = conversions
            .iter()
            .map(|one| ConversionTransition { conversion: one.submitting(), due_at: Some(now) });
        let stored = self.store_conversions(runtime, lease, intents.collect(), false).await?;
        let (mut sent, mut entries, mut unplannable) = (vec![], vec![], vec![]);
        for before in conversions.iter().filter(|one| stored.contains(&one.id)) {
            // The intent has raised the version.
            let intent = Conversion { version: before.version + 1, ..before.submitting() };
            let Some(run) = &intent.run else { continue };
            let unanswered = before.run.as_ref().is_some_and(ConversionRun::is_uncertain);
            match plan_conversion(&intent, run, &runtime.target.cluster) {
                Ok(entry) => {
                    entries.push(entry);
                    sent.push((intent, unanswered));
                }
                // The jobs that wait for it continue with the image itself, or end.
                Err(error) => {
                    let why =
                        error.source().map_or_else(|| error.to_string(), |why| format!("{error}: {why}"));
                    unplannable.push(conversion_unplannable(&intent, unanswered, &why, now));
                }
            }
        }
        self.store_moved(runtime, lease, unplannable).await?;
        if sent.is_empty() {
            return Ok(());
        }
        let answers = runtime.target.link.call(&SubmitBatch::new(entries)).await;
        let now = self.clock.now();
        let step = |(index, (intent, unanswered)): (usize, &(Conversion, bool))| {
            let next = conversion_after_submit(intent, *unanswered, outcome(&answers, index), now);
            let due_at = after_budget(&answers).map_or(next.due_at, |wait| Some(now + wait));
            ConversionTransition { due_at, ..next }
        };
        let moved: Vec<_> = sent.iter().enumerate().map(step).collect();
        let key = |intent: &Conversion| Some(intent.run.as_ref()?.key(intent.id));
        let copies =
            answers.iter().flatten().zip(&sent).flat_map(|(answer, (intent, _))| extra(answer, key(intent)));
        let copies = copies.collect();
        self.store_moved(runtime, lease, moved).await?;
        self.cancel_copies(runtime, copies).await;
        self.poll_soon(runtime).await
    }

    pub(super) async fn locate_conversions(
        &self,
        runtime: &Runtime<L>,
        lease: &ConversionLease,
        conversions: Vec<Conversion>,
    ) -> Result {
        let runs = conversions.iter().filter_map(|one| one.run.as_ref());
        let Some(since) = runs.map(|run| run.intended_at).min() else { return Ok(()) };
        // An hour earlier than the first intent: the clocks of the cluster and of this host may differ.
        let since = since - TimeDelta::hours(1);
        let command =
            Locate { jobs: conversions.iter().filter_map(lost).collect(), since_unix: since.timestamp() };
        let answer = runtime.target.link.call(&command).await;
        if let Err(error) = &answer {
            warn_of(&conversions, error, "the uncertain submission of a conversion could not be looked up");
        }
        let now = self.clock.now();
        let step = |one: &Conversion| {
            let token = one.run.as_ref().map(|run| &run.token);
            let found = answer.as_ref().map_or(Lookup::Unclear, |answer| sought(token, answer));
            conversion_after_lookup(one, found, now)
        };
        let moved: Vec<_> = conversions.iter().map(step).collect();
        let mut copies = Vec::new();
        for ConversionTransition { conversion, .. } in &moved {
            if let (Ok(answer), Some(run)) = (&answer, &conversion.run)
                && let Some(adopted) = run.slurm_id
            {
                copies.extend(copies_of(answer, &run.key(conversion.id), adopted));
            }
        }
        self.store_moved(runtime, lease, moved).await?;
        self.cancel_copies(runtime, copies).await;
        self.poll_soon(runtime).await
    }
}

/// The search for a run with an uncertain submission.
fn lost(conversion: &Conversion) -> Option<Sought> {
    let run = conversion.run.as_ref()?;
    // Four levels above its state directory, because the configured base directory may have changed.
    let mut base_dir = run.state_dir.clone();
    for _ in 0..4 {
        base_dir = base_dir.parent().unwrap_or(base_dir);
    }
    let (send, cleared) = (run.fence.newest, run.fence.cleared);
    let key = run.key(conversion.id);
    Some(Sought { key, state_dir: run.state_dir.clone(), base_dir, send, cleared })
}
