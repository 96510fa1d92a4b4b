//! What a due job needs, carried out in batches: submit, locate, cancel, conclude, purge.

mod ahead;
pub(crate) mod batch;
pub(crate) mod cancel;
pub(crate) mod checkpoints;
pub(crate) mod conclude;
pub(crate) mod explain_requeue;
pub(crate) mod images;
pub(crate) mod locate;
pub(crate) mod needs;
pub(crate) mod pending_cleanup;
pub(crate) mod purge;
pub(crate) mod record;
pub(crate) mod relax_exclusions;
mod results;
pub(crate) mod submit;
mod tend;
