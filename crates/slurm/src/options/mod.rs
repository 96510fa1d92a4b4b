//! Options of sbatch(1) that a job can ask for. Each type guarantees that its text is one harmless word.

pub(crate) mod constraint;
pub(crate) mod gres;
pub(crate) mod memory;
pub(crate) mod named;
pub(crate) mod node_set;
pub(crate) mod submit;
pub(crate) mod text;
pub(crate) mod when;
pub(crate) mod words;
