//! The layout of a job's files on the cluster. No other module knows it.

use slurm::{ComponentName, InvalidName, RemotePath};

use crate::{
    job::{
        attempt::{Attempt, AttemptPlace},
        identity::{AttemptNo, JobId},
        logs::{LogFile, LogRole},
    },
    request::{results::LogStream, spec::JobSpec},
};

/// The paths of one job below the cluster's base directory.
#[derive(Debug, Clone)]
pub struct JobPaths {
    pub specs: RemotePath,
    /// The container's environment as JSON, for TAO's entry point; 0600, removed at the end.
    pub env_json: RemotePath,
    /// The same as a shell file for the job's program; 0600, removed at the end.
    pub env_shell: RemotePath,
    /// TAO's cloud metadata; 0600, removed at the end.
    pub meta: RemotePath,
    pub script: RemotePath,
    pub log_root: RemotePath,
    /// `results/<job_id>`: the job's output.
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
            results: Self::results_of(base, id)?,
            results_root,
            base: base.clone(),
            id,
        })
    }

    /// [`results`](Self::results), without the other paths.
    pub fn results_of(base: &RemotePath, id: JobId) -> Result<RemotePath, InvalidName> {
        base.join(&format!("results/{id}"))
    }

    /// [`state_of`](Self::state_of), without the other paths.
    pub fn state_below(base: &RemotePath, id: JobId, attempt: AttemptNo) -> Result<RemotePath, InvalidName> {
        base.join(&format!("state/{id}/{attempt}"))
    }

    /// The directory with the claim, Slurm id, marker files and raw logs of one attempt.
    pub fn state(&self, attempt: &Attempt) -> Result<RemotePath, InvalidName> {
        self.state_of(attempt.no)
    }

    /// The same by the attempt's number.
    pub fn state_of(&self, attempt: AttemptNo) -> Result<RemotePath, InvalidName> {
        Self::state_below(&self.base, self.id, attempt)
    }

    /// The directory with the claim and markers of a task of an array, below that of its attempt.
    pub fn task_state(&self, attempt: AttemptNo, task: u32) -> Result<RemotePath, InvalidName> {
        self.state_of(attempt)?.join(&format!("tasks/{task}"))
    }

    /// The results of a task of an array.
    pub fn task_results(&self, task: u32) -> Result<RemotePath, InvalidName> {
        self.results.join(&task.to_string())
    }

    /// The possible paths of a log of the batch script, best first.
    pub fn log(&self, attempt: &Attempt, stream: LogStream) -> Result<Vec<RemotePath>, InvalidName> {
        self.main_log(&AttemptPlace::from(attempt), stream)
    }

    /// The possible paths of a log, best first. A role's log has none before the attempt has its Slurm id.
    pub fn log_file(&self, place: &AttemptPlace, file: &LogFile) -> Result<Vec<RemotePath>, InvalidName> {
        match file {
            LogFile::Main(stream) => self.main_log(place, *stream),
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

    /// The documented path, then the file that Slurm itself opens: the only one when the job never ran.
    fn main_log(&self, place: &AttemptPlace, stream: LogStream) -> Result<Vec<RemotePath>, InvalidName> {
        let file = LogFile::Main(stream).to_string();
        let opened = place.index.map_or_else(|| file.clone(), |index| format!("{index}.{stream}"));
        let opened = self.state_of(place.no)?.join(&opened)?;
        Ok(match self.documented_logs(place)? {
            Some(directory) => vec![directory.join(&file)?, opened],
            None => vec![opened],
        })
    }

    /// The documented directory of the attempt's logs, once it has a Slurm id.
    pub fn log_dir(&self, attempt: &Attempt) -> Result<Option<RemotePath>, InvalidName> {
        self.documented_logs(&AttemptPlace::from(attempt))
    }

    /// `slurm-logs/<slurm_job_name>-<slurm_job_id>`, as TAO documents it; of a task with `_<index>`.
    pub fn documented_logs(&self, place: &AttemptPlace) -> Result<Option<RemotePath>, InvalidName> {
        let AttemptPlace { token, index, .. } = place;
        let directory = place.slurm_id.map(|id| match index {
            Some(index) => self.log_root.join(&format!("{token}-{id}_{index}")),
            None => self.log_root.join(&format!("{token}-{id}")),
        });
        directory.transpose()
    }

    /// The variables of one component as a shell file; 0600, removed at the end.
    pub fn component_env(&self, component: &ComponentName) -> Result<RemotePath, InvalidName> {
        self.base.join(&format!("env/{}.{component}.sh", self.id))
    }

    /// The files that hold secrets, of a job with this specification.
    pub fn secret_files(&self, spec: &JobSpec) -> Vec<RemotePath> {
        let of_job = [&self.env_json, &self.env_shell, &self.meta].map(Clone::clone);
        let with_own = spec.components().iter().filter(|component| component.own.has_variables());
        let of_components = with_own.filter_map(|component| self.component_env(&component.name).ok());
        of_job.into_iter().chain(of_components).collect()
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn place(slurm_id: Option<u32>) -> AttemptPlace {
        AttemptPlace {
            no: AttemptNo::FIRST.next(),
            token: "tao-job-x-r2".parse().unwrap(),
            job_dir: "/lustre/tao".parse().unwrap(),
            slurm_id: slurm_id.and_then(slurm::SlurmJobId::new),
            index: None,
        }
    }

    #[test]
    fn results_are_below_the_base() {
        let id = JobId::new(Uuid::nil());
        let paths = JobPaths::new(&"/lustre/tao".parse().unwrap(), id).unwrap();
        assert_eq!(paths.results_root.as_str(), "/lustre/tao/results");
        assert_eq!(paths.results.as_str(), format!("/lustre/tao/results/{id}"));
    }

    #[test]
    fn logs_are_below_the_name_and_id_of_their_attempt() {
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
        let task = AttemptPlace { index: Some(3), ..place(Some(7)) };
        let found = paths.log_file(&task, &"main.out".parse().unwrap()).unwrap();
        let opened = "/lustre/tao/state/00000000-0000-0000-0000-000000000000/2/3.out";
        assert_eq!(found[0].as_str(), "/lustre/tao/slurm-logs/tao-job-x-r2-7_3/main.out");
        assert_eq!(found[1].as_str(), opened, "Slurm opens one file for each task");
        let role = "policy".parse().unwrap();
        let directory = paths.role_logs(&place(Some(7)), &role).unwrap().unwrap();
        assert_eq!(directory.as_str(), "/lustre/tao/slurm-logs/tao-job-x-r2-7/policy");
        assert_eq!(paths.role_logs(&place(None), &role).unwrap(), None);
    }
}
