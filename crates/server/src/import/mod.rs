//! Configurations of other launchers as requests of this service.

mod config;
mod deployments;
mod evaluation;
mod export;
mod left_out;
mod merge;
mod nemo_evaluator;
mod variables;

pub(crate) use nemo_evaluator::{Form, Options, nemo_evaluator};
