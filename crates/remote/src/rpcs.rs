//! The requests that Slurm's commands make, measured on 24.11 with `sdiag`. sacct and sacctmgr ask the accounting daemon, which has
//! no limit of requests; each command counts as one.

/// The jobs, the partitions and the federation.
pub(crate) const SQUEUE: u32 = 3;
pub(crate) const SACCT: u32 = 1;
pub(crate) const SACCTMGR: u32 = 1;
pub(crate) const SBATCH: u32 = 1;
/// For each job, however many one scancel has.
pub(crate) const CANCEL: u32 = 1;
/// The job and what is changed.
pub(crate) const UPDATE: u32 = 1;
/// Slurm also pings its controller.
pub(crate) const SHOW_CONFIG: u32 = 2;
pub(crate) const SHOW_PARTITION: u32 = 1;
/// The partitions and the nodes.
pub(crate) const SINFO: u32 = 2;
pub(crate) const PING: u32 = 1;
/// `sbatch --test-only`: the federation and the job.
pub(crate) const TEST_ONLY: u32 = 2;

/// The requests of so many commands.
pub(crate) fn times(commands: usize, rpcs: u32) -> u32 {
    u32::try_from(commands).unwrap_or(u32::MAX).saturating_mul(rpcs)
}
