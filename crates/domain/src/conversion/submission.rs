//! The submission of a conversion. The rules are the same as for jobs.

use std::{collections::BTreeSet, sync::Arc};

use remote::{
    BatchScript, Component, Directives, ScriptError, StagedFile, Submission, launcher::Plain,
    script::CONVERSION,
};
use slurm::{Failure, FailureClass, Memory, MemoryRequest, RemotePath, SlurmJobId, SubmitOptions, WallTime};

use super::{Conversion, ConversionRun, ConversionState, ConversionTransition, DEMAND_INTERVAL};
use crate::{
    clock::Timestamp,
    cluster::target::Cluster,
    job::submit_fence::LOOKUP_INTERVAL,
    launch::StagingError,
    request::spec::DEFAULT_MASTER_PORT,
    run::{
        sentence::sentence,
        submission::{CAPACITY_WAIT, Effect, INTERRUPTED, Lookup, SubmitOutcome, setback_wait},
    },
};

/// The submission of the conversion's newest run.
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
    let program = run.state_dir.join("convert.sh")?;
    let uri = conversion.image.enroot();
    let argv = ["bash", program.as_str(), &uri, run.target.as_str(), temp_root.as_str()];
    let argv = argv.map(str::to_owned).to_vec();
    let component = Component::step("convert".parse()?, 1, Arc::new(Plain), argv);
    let script = BatchScript {
        directives: directives(run, cluster)?,
        state_dir: run.state_dir.clone(),
        // Its logs stay in the state directory: users do not look for them.
        log_root: None,
        results_dir: None,
        env_file: None,
        soft_timeout: None,
        max_requeues: 0,
        port: Some(DEFAULT_MASTER_PORT),
        array: None,
        variables: Vec::new(),
        components: vec![component],
    };
    let path = run.state_dir.join("convert.sbatch")?;
    let file = |path: &RemotePath, text: String| StagedFile {
        path: path.clone(),
        mode: 0o644,
        bytes: text.into_bytes(),
    };
    let files = vec![file(&program, CONVERSION.to_owned()), file(&path, script.render()?)];
    let make_dirs: BTreeSet<RemotePath> =
        run.target.parent().into_iter().chain([run.state_dir.clone()]).collect();
    Ok(Submission {
        key: run.key(conversion.id),
        state_dir: run.state_dir.clone(),
        files,
        script_path: path,
        make_dirs: make_dirs.into_iter().collect(),
        results_dir: None,
        base_dir: cluster.base_dir.clone(),
        inputs: Vec::new(),
        send: run.fence.newest,
        cleared: run.fence.cleared,
    })
}

fn directives(run: &ConversionRun, cluster: &Cluster) -> Result<Directives, StagingError> {
    let settings = &cluster.images;
    // Some sites refuse the option.
    let memory_gb = Some(settings.conversion_memory_gb).filter(|_| !cluster.submit.options.drops("mem"));
    let memory = memory_gb.map(|memory_gb| format!("{memory_gb}G").parse::<Memory>()).transpose()?;
    Ok(Directives {
        array: None,
        job_name: run.token.clone(),
        partitions: Some(settings.conversion_partition.as_str().parse()?),
        nodes: 1,
        tasks_per_node: 1,
        gpus_per_node: 0,
        gpu_request: cluster.submit.gpu_request,
        cpus_per_task: 1,
        time: WallTime::from_minutes(settings.conversion_minutes)
            .ok_or(ScriptError::Zero { what: "the minutes of a conversion" })?,
        requeue: true,
        exclusive: false,
        all_memory: false,
        exclude: Vec::new(),
        begin: None,
        deadline: None,
        options: SubmitOptions {
            account: cluster.account.clone(),
            memory: memory.map(MemoryRequest::PerNode),
            ..SubmitOptions::default()
        },
        mail: None,
        trace: None,
        login_environment: true,
        warning_seconds: 0,
    })
}

impl Conversion {
    /// The conversion, before its submission command starts.
    #[must_use]
    pub fn submitting(&self) -> Self {
        let mut next = self.clone();
        if let Some(run) = &mut next.run {
            run.fence.begin();
        }
        next
    }

    /// The submission had no effect.
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
        self.message = format!("Converting the image {}: Slurm job {id} is waiting for a node.", self.image);
        now + DEMAND_INTERVAL
    }

    fn refused(&mut self, failure: &Failure, now: Timestamp) -> Option<Timestamp> {
        match failure.class {
            FailureClass::Permanent => {
                self.failed(format!("Slurm rejected its job: {}", failure.excerpt), now);
                None
            }
            FailureClass::Capacity => {
                self.clear();
                self.message = format!("Slurm accepts no more jobs at the moment: {}", failure.excerpt);
                Some(now + CAPACITY_WAIT)
            }
            FailureClass::NotDone | FailureClass::Infra | FailureClass::Ambiguous => {
                Some(self.set_back(&format!("The image cannot be converted yet: {}", failure.excerpt), now))
            }
        }
    }

    fn set_back(&mut self, why: &str, now: Timestamp) -> Timestamp {
        self.clear();
        let wait = setback_wait(self.run.as_mut().map(|run| &mut run.setbacks));
        self.message = format!("{} Retrying in {} s.", sentence(why), wait.num_seconds());
        now + wait
    }

    fn uncertain(&mut self, why: &str, now: Timestamp) -> Timestamp {
        self.state = ConversionState::SubmitUncertain;
        self.message = format!(
            "Converting the image {}: the reply to the submission was lost ({why}); checking whether Slurm has the job.",
            self.image
        );
        now
    }
}

/// The conversion after its submission. `uncertain`: the outcome of an earlier submission of the run is unknown.
pub fn conversion_after_submit(
    conversion: &Conversion,
    uncertain: bool,
    outcome: SubmitOutcome<'_>,
    now: Timestamp,
) -> ConversionTransition {
    let mut next = conversion.clone();
    let due_at = match outcome.effect(uncertain) {
        Effect::Submitted(id, _) => Some(next.submitted(id, now)),
        Effect::Refused(failure) => next.refused(failure, now),
        // A conversion has no inputs, so none is missing.
        Effect::Skipped | Effect::MissingInputs(_) => {
            next.clear();
            Some(now)
        }
        Effect::Uncertain(why) => Some(next.uncertain(why, now)),
        Effect::Unreachable(why) => Some(next.set_back(&format!("The cluster is unreachable: {why}"), now)),
    };
    ConversionTransition { conversion: next, due_at }
}

/// The conversion, if its submission cannot be planned. If an earlier submission of the run is uncertain, that one is looked
/// for first.
pub fn conversion_unplannable(
    conversion: &Conversion,
    uncertain: bool,
    why: &dyn std::fmt::Display,
    now: Timestamp,
) -> ConversionTransition {
    let mut next = conversion.clone();
    if uncertain {
        let due_at = Some(next.uncertain(INTERRUPTED, now));
        return ConversionTransition { conversion: next, due_at };
    }
    next.not_plannable(why, now)
}

/// The conversion after a lookup for its lost submission. Absence is proven as for jobs.
pub fn conversion_after_lookup(
    conversion: &Conversion,
    found: Lookup,
    now: Timestamp,
) -> ConversionTransition {
    let mut next = conversion.clone();
    let due_at = match found {
        Lookup::Found(id) => next.submitted(id, now),
        Lookup::NeverBegan => next.absent(now),
        Lookup::Absent if next.run.as_mut().is_none_or(|run| run.fence.are_absent(now)) => next.absent(now),
        Lookup::Absent | Lookup::Unclear => now + LOOKUP_INTERVAL,
    };
    ConversionTransition { conversion: next, due_at: Some(due_at) }
}

impl Conversion {
    /// Slurm does not have the run.
    fn absent(&mut self, now: Timestamp) -> Timestamp {
        self.clear();
        self.state = ConversionState::Submitting;
        self.message = format!("Converting the image {}: submitting its Slurm job again.", self.image);
        now
    }
}
