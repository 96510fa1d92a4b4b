//! Where everything of a job lies on the cluster: the one place that knows the layout.

use slurm::{InvalidName, RemotePath};

use crate::job::{
    attempt::{Attempt, AttemptNo, AttemptPlace},
    id::JobId,
    log_file::{LogFile, LogRole},
};

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

/// The base directory that a configured results directory means: results go into the `results` below the base, so
/// a directory that is called so itself is that one. TAO has three rules for this that disagree, and a job of its own
/// then waits for ever for a status in another place.
pub fn base_of(results_dir: RemotePath) -> RemotePath {
    match results_dir.parent() {
        Some(parent) if results_dir.file_name() == "results" => parent,
        _ => results_dir,
    }
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
            results: Self::results_of(base, id)?,
            results_root,
            base: base.clone(),
            id,
        })
    }

    /// [`results`](Self::results) alone.
    pub fn results_of(base: &RemotePath, id: JobId) -> Result<RemotePath, InvalidName> {
        base.join(&format!("results/{id}"))
    }

    /// [`state_of`](Self::state_of) alone.
    pub fn state_below(base: &RemotePath, id: JobId, attempt: AttemptNo) -> Result<RemotePath, InvalidName> {
        base.join(&format!("state/{id}/{attempt}"))
    }

    /// Claim, Slurm id, markers and the open ends of the logs of one attempt.
    pub fn state(&self, attempt: &Attempt) -> Result<RemotePath, InvalidName> {
        self.state_of(attempt.no)
    }

    /// The same by the attempt's number.
    pub fn state_of(&self, attempt: AttemptNo) -> Result<RemotePath, InvalidName> {
        Self::state_below(&self.base, self.id, attempt)
    }

    /// Where a log of the batch script may be, best first.
    pub fn log(&self, attempt: &Attempt, file: &str) -> Result<Vec<RemotePath>, InvalidName> {
        self.main_log(&AttemptPlace::from(attempt), file)
    }

    /// Where a log may be, best first; nowhere as long as Slurm has not given the attempt its id.
    pub fn log_file(&self, place: &AttemptPlace, file: &LogFile) -> Result<Vec<RemotePath>, InvalidName> {
        match file {
            LogFile::Main(_) => self.main_log(place, &file.to_string()),
            LogFile::Task { .. } => {
                let directory = self.documented_logs(place)?;
                directory.iter().map(|directory| directory.join(&file.to_string())).collect()
            }
        }
    }

    /// The directory with the logs of a role's tasks.
    pub fn role_logs(&self, place: &AttemptPlace, role: &LogRole) -> Result<Option<RemotePath>, InvalidName> {
        self.documented_logs(place)?.map(|directory| directory.join(role.as_str())).transpose()
    }

    /// Its documented path, then the file that Slurm itself opened, which is all there is when the job never came
    /// to run.
    fn main_log(&self, place: &AttemptPlace, file: &str) -> Result<Vec<RemotePath>, InvalidName> {
        let opened = self.state_of(place.no)?.join(file)?;
        Ok(match self.documented_logs(place)? {
            Some(directory) => vec![directory.join(file)?, opened],
            None => vec![opened],
        })
    }

    /// The documented directory of the attempt's logs, once it has a Slurm id.
    pub fn log_dir(&self, attempt: &Attempt) -> Result<Option<RemotePath>, InvalidName> {
        self.documented_logs(&AttemptPlace::from(attempt))
    }

    /// `slurm-logs/<slurm_job_name>-<slurm_job_id>`, as TAO documents it.
    pub fn documented_logs(&self, place: &AttemptPlace) -> Result<Option<RemotePath>, InvalidName> {
        let directory = place.slurm_id.map(|id| self.log_root.join(&format!("{}-{id}", place.token)));
        directory.transpose()
    }

    /// The files that hold secrets.
    pub fn secret_files(&self) -> Vec<RemotePath> {
        vec![self.env_json.clone(), self.env_shell.clone(), self.meta.clone()]
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use test_case::test_case;

    use super::*;

    fn place(slurm_id: Option<u32>) -> AttemptPlace {
        AttemptPlace {
            no: AttemptNo::FIRST.next(),
            token: "tao-job-x-r2".parse().unwrap(),
            job_dir: "/lustre/tao".parse().unwrap(),
            slurm_id: slurm_id.and_then(slurm::SlurmJobId::new),
        }
    }

    #[test_case("/lustre/tao", "/lustre/tao/results" ; "a base")]
    #[test_case("/lustre/tao/results", "/lustre/tao/results" ; "its results")]
    #[test_case("/lustre/tao/results/", "/lustre/tao/results" ; "with a slash")]
    #[test_case("/lustre/tess", "/lustre/tess/results" ; "a name of the same letters")]
    #[test_case("/results", "/results/results" ; "one without a parent is a base")]
    #[test_case("/lustre/my-results", "/lustre/my-results/results" ; "a name that only ends so")]
    fn results_have_one_place(configured: &str, root: &str) {
        let id = JobId::new(Uuid::nil());
        let paths = JobPaths::new(&base_of(configured.parse().unwrap()), id).unwrap();
        assert_eq!(paths.results_root.as_str(), root);
        assert_eq!(paths.results.as_str(), format!("{root}/{id}"));
    }

    #[test]
    fn logs_lie_below_the_name_and_id_of_their_own_attempt() {
        let paths = JobPaths::new(&"/lustre/tao".parse().unwrap(), JobId::new(Uuid::nil())).unwrap();
        let shown = |id, file: &str| -> Vec<String> {
            let found = paths.log_file(&place(id), &file.parse().unwrap()).unwrap();
            found.iter().map(ToString::to_string).collect()
        };
        let opened = "/lustre/tao/state/00000000-0000-0000-0000-000000000000/2/main.err";
        assert_eq!(shown(Some(7), "main.err"), ["/lustre/tao/slurm-logs/tao-job-x-r2-7/main.err", opened]);
        assert_eq!(shown(None, "main.err"), [opened]);
        assert_eq!(shown(Some(7), "policy/3.out"), ["/lustre/tao/slurm-logs/tao-job-x-r2-7/policy/3.out"]);
        assert_eq!(shown(None, "policy/3.out"), Vec::<String>::new());
        let role = "policy".parse().unwrap();
        let directory = paths.role_logs(&place(Some(7)), &role).unwrap().unwrap();
        assert_eq!(directory.as_str(), "/lustre/tao/slurm-logs/tao-job-x-r2-7/policy");
        assert_eq!(paths.role_logs(&place(None), &role).unwrap(), None);
    }
}
