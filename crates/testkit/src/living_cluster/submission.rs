//! What the submission program does to one entry, in the parts that take effect at different moments.

use std::{collections::BTreeSet, sync::OnceLock};

use remote::{How, RemoteCommand, Submission, SubmitAnswer, SubmitBatch};
use slurm::{Failure, FailureClass, JobName, SlurmJobId, TaskSet};
use uuid::Uuid;

use super::{
    LivingCluster, Site, TOO_MANY,
    entrance::Born,
    life::{Chain, Script},
};

/// What the controller makes of an sbatch that has reached it.
#[derive(Debug)]
pub enum Accepting {
    Taken(SlurmJobId),
    Refused(SubmitAnswer),
}

impl LivingCluster {
    /// The answer to an entry that needs no sbatch, or must not have one.
    pub fn known(&self, entry: &Submission) -> Option<SubmitAnswer> {
        let mut site = self.site();
        if site.weather.files_gone {
            return None;
        }
        let dir = entry.state_dir.as_str();
        let state = site.login_disk.states.get(dir).cloned().unwrap_or_default();
        if let Some(id) = state.slurm_id {
            return Some(SubmitAnswer::Submitted { id, how: How::Replay, extra: Vec::new() });
        }
        if state.is_contested(entry.send, entry.cleared) || state.fence.contains_key(&entry.send) {
            return Some(site.adopt(entry).unwrap_or(SubmitAnswer::Uncertain));
        }
        if entry.cleared == 0 {
            return None;
        }
        match site.adopt(entry) {
            Some(SubmitAnswer::Uncertain) => Some(nothing_begun("squeue: no answer")),
            found => found,
        }
    }

    /// Makes the directories and writes the files.
    pub fn stage(&self, entry: &Submission) -> Result<(), SubmitAnswer> {
        let mut site = self.site();
        if site.weather.files_gone {
            return Err(nothing_begun("mkdir: cannot create directory"));
        }
        site.on_both(entry.state_dir.as_str(), |_| {});
        let private = entry.files.iter().filter(|file| file.mode == 0o600);
        let paths: Vec<String> = private.map(|file| file.path.to_string()).collect();
        site.login_disk.private.extend(paths);
        Ok(())
    }

    /// Claims the entry, for one who is about to call sbatch.
    pub fn claim(&self, entry: &Submission) -> Result<(), SubmitAnswer> {
        let mut site = self.site();
        if site.weather.files_gone {
            return Err(nothing_begun("mkdir: cannot create directory"));
        }
        let dir = entry.state_dir.as_str();
        let taken =
            site.login_disk.states.get(dir).is_some_and(|state| state.fence.contains_key(&entry.send));
        if !taken || !program().claims {
            site.on_both(dir, |state| {
                state.fence.insert(entry.send, true);
            });
        }
        let state = site.login_disk.states.entry(entry.state_dir.to_string()).or_default();
        let contested = state.is_contested(entry.send, entry.cleared);
        if (taken && program().claims) || (contested && program().yields) {
            return Err(site.adopt(entry).unwrap_or(SubmitAnswer::Uncertain));
        }
        Ok(())
    }

    /// The controller hears of it.
    pub fn accept(&self, entry: &Submission) -> Accepting {
        let mut site = self.site();
        let refused = |class, text: &str| {
            let failure = Failure { class, rule_id: "simulated", excerpt: text.to_owned() };
            Accepting::Refused(SubmitAnswer::Refused { failure, rc: 1 })
        };
        if site.weather.scheduler_silent {
            return refused(FailureClass::Infra, "Unable to contact slurm controller");
        }
        if site.weather.rate_limited {
            let failure = slurm::failure::classify(TOO_MANY);
            return Accepting::Refused(SubmitAnswer::Refused { failure, rc: 1 });
        }
        if site.weather.full {
            return refused(FailureClass::Capacity, "Job violates accounting/QOS policy");
        }
        match site.enter(&born(entry)) {
            Some(id) => Accepting::Taken(id),
            None => refused(FailureClass::Infra, "no more ids"),
        }
    }

    /// The program keeps the id where the next call finds it.
    pub fn keep_id(&self, entry: &Submission, id: SlurmJobId) {
        let mut site = self.site();
        let is_gone = site.weather.files_gone;
        // Into a directory that was removed meanwhile nothing is written.
        if let Some(state) = site.login_disk.states.get_mut(entry.state_dir.as_str()).filter(|_| !is_gone) {
            state.slurm_id = Some(id);
        }
    }

    /// What comes next of this attempt comes later than any bound allows.
    pub fn excuse(&self, name: &JobName) {
        self.site().truth.beyond_bound.insert(name.to_string());
    }
}

/// Nothing has been submitted, surely.
fn nothing_begun(why: &str) -> SubmitAnswer {
    SubmitAnswer::StageFailed(Failure::known(FailureClass::NotDone, "staging", why))
}

impl Site {
    /// Looks for what an earlier call may have done; none if there is surely nothing.
    fn adopt(&mut self, entry: &Submission) -> Option<SubmitAnswer> {
        if self.weather.scheduler_silent || self.weather.rate_limited {
            return Some(SubmitAnswer::Uncertain);
        }
        let named = self.jobs.values().filter(|job| job.queued && job.name == entry.key.name);
        let found: BTreeSet<SlurmJobId> = named.map(|job| job.id).collect();
        let state = self.login_disk.states.entry(entry.state_dir.to_string()).or_default();
        let id = state.run.or_else(|| found.first().copied())?;
        state.slurm_id = Some(id);
        let extra = found.into_iter().filter(|other| *other != id).collect();
        Some(SubmitAnswer::Submitted { id, how: How::Adopted, extra })
    }
}

/// What the real program does.
#[derive(Debug, Clone, Copy)]
struct Program {
    /// It opens its claim such that one of several succeeds.
    claims: bool,
    /// It yields to other sends once it has its own claim.
    yields: bool,
}

fn program() -> Program {
    static PROGRAM: OnceLock<Program> = OnceLock::new();
    *PROGRAM.get_or_init(|| {
        let program = SubmitBatch::new(Vec::new()).render().program;
        Program {
            claims: program.contains("  set -C\n  if ! : >\"${state[$1]}/submit.${send[$1]}\"; then\n"),
            yields: program.contains("  if is_contested \"$1\"; then\n    yield \"$1\"\n  fi\n"),
        }
    })
}

fn script(text: &str) -> Script {
    let is_array = text.contains("#SBATCH --array=");
    Script {
        claims: text.contains(r#"ln -sT -- "$_tao_holder" "$_tao_state/run""#)
            && text.contains("_tao_stop_here 120 ")
            && (!is_array || text.contains(r#"ln -sT -- "${SLURM_ARRAY_JOB_ID:?}" "$_tao_attempt/run""#)),
        looks: text.contains("\n[ -n \"$_tao_fence\" ] || _tao_stop_here 120 "),
        notes: text.contains(r#""$_tao_state/status_from""#),
        chain: text.contains("\n  _tao_queue_next &\n").then(|| chain(text)),
    }
}

fn chain(text: &str) -> Chain {
    let causes = text.lines().find_map(|line| line.strip_prefix("readonly _tao_causes=")).unwrap_or_default();
    Chain {
        decides: text.contains("\n  elif ! _tao_goes_on; then\n") && text.contains("\n    exit 113\n"),
        after_timeout: causes.contains("TIMEOUT"),
        after_preemption: causes.contains("PREEMPTED"),
    }
}

/// The indices of the array that a script asks for, and the task that index 0 stands for.
fn array(text: &str) -> Option<(TaskSet, u32)> {
    let indices = text.lines().find_map(|line| line.strip_prefix("#SBATCH --array="))?;
    let base = text.split("export TAO_TASK=$((SLURM_ARRAY_TASK_ID + ").nth(1)?.split(')').next()?;
    Some((indices.split('%').next()?.parse().ok()?, base.parse().ok()?))
}

fn born(entry: &Submission) -> Born {
    let text = entry.files.iter().find(|file| file.path == entry.script_path);
    let text = text.map(|file| String::from_utf8_lossy(&file.bytes)).unwrap_or_default();
    let word = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.trim_matches('\'').to_owned()).filter(|word| !word.is_empty())
    };
    // Of a conversion: the image's name for Enroot, the file, and the parent of temporary directories.
    let target = || {
        let program = entry.files.iter().find(|file| file.path.as_str().ends_with("/command.sh"))?;
        let program = String::from_utf8_lossy(&program.bytes);
        let words = shlex::split(program.lines().next()?.split_once("; set -- ")?.1)?;
        words.into_iter().nth(1)
    };
    let owner = || entry.key.name.as_str().strip_prefix("tao-job-")?.get(..36)?.parse::<Uuid>().ok();
    Born {
        name: entry.key.name.clone(),
        owner: owner(),
        script: script(&text),
        state_dir: entry.state_dir.to_string(),
        // Each task has a directory in it.
        results: word("readonly _tao_results=").map(|dir| dir.trim_end_matches("/\"$TAO_TASK\"").to_owned()),
        image: target(),
        array: array(&text),
        after: None,
    }
}

#[cfg(test)]
mod tests {
    use super::{program, script};

    /// A guard that is worded anew, and so no longer found here, would weaken the simulated cluster without a word.
    #[test]
    fn the_real_program_has_the_guards_that_the_simulated_one_copies() {
        let found = program();
        assert!(found.claims && found.yields, "{found:?}");
        // A test of its own keeps these files the same as the scripts that are submitted.
        for text in [
            include_str!("../../../remote/tests/rendered/plain.sbatch"),
            include_str!("../../../remote/tests/rendered/array.sbatch"),
        ] {
            let found = script(text);
            assert!(found.claims && found.looks && found.notes, "{found:?}");
        }
        let ahead = script(include_str!("../../../remote/tests/rendered/chain.sbatch")).chain;
        assert!(
            ahead.is_some_and(|chain| chain.decides && chain.after_timeout && !chain.after_preemption),
            "{ahead:?}"
        );
    }
}
