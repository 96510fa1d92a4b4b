//! Times and durations in Slurm's formats.

pub(crate) mod run_time;
pub(crate) mod timestamp;
pub(crate) mod wall_time;
