//! One attempt to submit, with its files.

use std::fmt;

use slurm::RemotePath;

use crate::AttemptKey;

/// One attempt to submit.
#[derive(Debug, Clone)]
pub struct Submission {
    /// The attempt.
    pub key: AttemptKey,
    /// Where the claim, the Slurm id and the markers of this attempt are.
    pub state_dir: RemotePath,
    /// The files that sbatch needs, including the script.
    pub files: Vec<StagedFile>,
    /// The batch script.
    pub script_path: RemotePath,
    /// Directories to create, with their parents. The state directory is always created.
    pub make_dirs: Vec<RemotePath>,
    /// The results directory, if any; its parent must be among `make_dirs`. If it is missing it is created, with a marker
    /// file inside that allows [`Purge`](crate::Purge) to remove it.
    pub results_dir: RemotePath,
    /// Files and directories that must exist before anything is staged. They are not checked for an entry that has a job
    /// already.
    pub inputs: Vec<RemotePath>,
    /// The base directory of all our files. While it is unreadable, no input counts as missing.
    pub base_dir: RemotePath,
    /// The submit fence of this submission: the number of the submission within the attempt, from 1.
    pub send: u32,
    /// Fences up to this number are cleared: their claims do not count. squeue is still asked first and must answer. An
    /// uncertain submission is cleared only after [`Locate`](crate::Locate) has found nothing.
    pub cleared: u32,
}

impl Submission {
    /// Whether a file is in the attempt's own directory.
    pub(super) fn owns(&self, file: &StagedFile) -> bool {
        let below = file.path.as_str().strip_prefix(self.state_dir.as_str());
        below.is_some_and(|rest| rest.starts_with('/'))
    }
}

/// A file to write on the cluster: to a temporary directory beside its path, then moved. A call that is terminated removes
/// its temporary directories; after a call that is killed, a [sweep](crate::SubmitBatch::sweep) removes them a day later.
///
/// After a refusal the file stays: [`Remove`](crate::Remove) it if the entry is given up.
#[derive(Clone)]
pub struct StagedFile {
    /// Its path.
    pub path: RemotePath,
    /// Its mode: the permission bits.
    pub mode: u32,
    /// Its content. May be secret, so `Debug` does not show it.
    pub bytes: Vec<u8>,
}

impl fmt::Debug for StagedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StagedFile")
            .field("path", &self.path)
            .field("mode", &format_args!("{:o}", self.mode))
            .field("size", &self.bytes.len())
            .finish()
    }
}
