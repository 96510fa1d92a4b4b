//! Times and durations as Slurm writes them.

pub(crate) mod run_time;
pub(crate) mod wall_time;
