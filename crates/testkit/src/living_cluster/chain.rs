//! Attempts that queue the next one ahead.

use slurm::{ExitCode, SlurmJobId, SlurmState};

use super::{
    Site,
    entrance::Born,
    life::{Chain, Turn},
};

impl Site {
    /// Whether an attempt runs that was queued ahead by `before`, which has ended.
    pub(super) fn goes_on(&self, chain: Chain, before: u32) -> bool {
        let Some(before) = self.jobs.get(&before) else { return false };
        let state = self.nodes_disk.states.get(&before.state_dir);
        let began = state.is_some_and(|state| state.started.is_some());
        let file = before.results.as_ref().and_then(|results| self.nodes_disk.status.get(results));
        began
            && !file.is_some_and(|file| has_reported(&file.bytes))
            && match before.state {
                SlurmState::Timeout => chain.after_timeout,
                SlurmState::Preempted => chain.after_preemption,
                _ => false,
            }
    }

    /// What a script does when it begins: Slurm gets the next attempt, unless somebody has begun that.
    pub(super) fn queue_next(&mut self, id: u32) {
        let Some(job) = self.jobs.get(&id) else { return };
        let next = || {
            let (jobs_dir, number) = job.state_dir.rsplit_once('/')?;
            let number = number.parse::<u32>().ok()? + 1;
            let first = job.name.as_str().split("-r").next()?;
            Some((format!("{jobs_dir}/{number}"), format!("{first}-r{number}").parse().ok()?))
        };
        let Some((state_dir, name)) = next() else { return };
        if self.nodes_disk.states.contains_key(&state_dir) {
            return;
        }
        let born = Born {
            name,
            owner: job.owner,
            script: job.script,
            state_dir: state_dir.clone(),
            results: job.results.clone(),
            image: None,
            array: None,
            after: Some(id),
        };
        self.on_both(&state_dir, |state| {
            state.fence.insert(1, true);
        });
        let weather = &self.weather;
        if weather.full || weather.scheduler_silent || weather.rate_limited {
            return;
        }
        let Some(next) = self.enter(&born) else { return };
        // The script may be killed before it has kept the id.
        if self.dice.chance(900) {
            self.on_both(&state_dir, |state| state.slurm_id = Some(next));
        }
    }

    /// Slurm starts the attempts that wait for the end of this one, or deletes them if it has succeeded.
    pub(super) fn release_next(&mut self, id: u32, state: &SlurmState) {
        let waits = |job: &&super::SlurmJob| job.after == Some(id) && job.state == SlurmState::Pending;
        let waiting: Vec<SlurmJobId> = self.jobs.values().filter(waits).map(|job| job.id).collect();
        for next in waiting {
            if *state == SlurmState::Completed {
                self.end(next.get(), &SlurmState::Cancelled, Some(ExitCode { code: 0, signal: 0 }));
                continue;
            }
            let job = self.jobs.get(&next.get());
            if let Some((wait, era)) = job.map(|job| (job.run.wait, job.era)) {
                self.plan(wait, Turn::Start { id: next.get(), era });
            }
        }
    }
}

/// Whether the newest status line says that the job has ended.
fn has_reported(lines: &[u8]) -> bool {
    let newest = lines.rsplit(|byte| *byte == b'\n').find(|line| !line.is_empty());
    newest
        .map(String::from_utf8_lossy)
        .is_some_and(|line| line.contains("SUCCESS") || line.contains("FAILURE"))
}
