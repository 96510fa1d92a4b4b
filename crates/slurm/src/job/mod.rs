//! One job of Slurm: its id, state, exit code, and the rows that describe it.

pub(crate) mod allocation;
pub(crate) mod exit_code;
pub(crate) mod id;
pub(crate) mod rows;
pub(crate) mod state;
pub(crate) mod task_set;
