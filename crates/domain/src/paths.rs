//! Where everything of a job lies on the cluster: the one place that knows the layout.

use slurm::{InvalidName, RemotePath, SlurmJobId};

use crate::{attempt::Attempt, id::JobId};

/// The paths of one job below the cluster's base directory.
#[derive(Debug, Clone)]
pub struct JobPaths {
    pub specs: RemotePath,
    /// The container's environment as JSON, for TAO's entry point; 0600, removed at the end.
    pub env_json: RemotePath,
    /// The same as a shell file that the batch script reads; 0600, removed at the end.
    pub env_shell: RemotePath,
    /// TAO's cloud metadata; 0600, removed at the end.
    pub meta: RemotePath,
    pub script: RemotePath,
    pub log_root: RemotePath,
    /// `results/<job_id>`: what the job makes.
    pub results: RemotePath,
    /// `results`: the container appends the job's id to it.
    pub results_root: RemotePath,
    base: RemotePath,
    id: JobId,
}

impl JobPaths {
    /// `base` is the attempt's [`job_dir`](Attempt::job_dir).
    pub fn new(base: &RemotePath, id: JobId) -> Result<Self, InvalidName> {
        let results_root = base.join("results")?;
        Ok(Self {
            specs: base.join(&format!("specs/{id}.json"))?,
            env_json: base.join(&format!("env/{id}.json"))?,
            env_shell: base.join(&format!("env/{id}.sh"))?,
            meta: base.join(&format!("meta/{id}.json"))?,
            script: base.join(&format!("sbatch/job_{id}.sbatch"))?,
            log_root: base.join("slurm-logs")?,
            results: results_root.join(&id.to_string())?,
            results_root,
            base: base.clone(),
            id,
        })
    }

    /// Claim, Slurm id, markers and the open ends of the logs of one attempt.
    pub fn state(&self, attempt: &Attempt) -> Result<RemotePath, InvalidName> {
        self.base.join(&format!("state/{}/{}", self.id, attempt.no))
    }

    /// Where a log may be, best first: its documented path, then the file that Slurm itself opened, which is
    /// all there is when the job never came to run.
    pub fn log(&self, attempt: &Attempt, file: &str) -> Result<Vec<RemotePath>, InvalidName> {
        let opened = self.state(attempt)?.join(file)?;
        Ok(match attempt.slurm_id {
            Some(id) => vec![self.documented_log(attempt, id)?.join(file)?, opened],
            None => vec![opened],
        })
    }

    /// `slurm-logs/<slurm_job_name>-<slurm_job_id>`, as TAO documents it.
    fn documented_log(&self, attempt: &Attempt, id: SlurmJobId) -> Result<RemotePath, InvalidName> {
        self.log_root.join(&format!("{}-{id}", attempt.token))
    }

    /// The files that hold secrets.
    pub fn secret_files(&self) -> Vec<RemotePath> {
        vec![self.env_json.clone(), self.env_shell.clone(), self.meta.clone()]
    }
}
