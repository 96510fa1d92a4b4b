//! How the bytes of logs reach us: through a trait, because this crate does not know SSH.

use std::pin::Pin;

use domain::ClusterName;
use remote::{LogAnswer, LogQuestion};

/// What becomes of a question about logs: an answer for each part of it, in the same order.
pub type LogReading = Pin<Box<dyn Future<Output = Result<Vec<LogAnswer>, LogUnavailable>> + Send>>;

/// Reads logs on clusters.
pub trait LogSource: Send + Sync + 'static {
    /// Asks one cluster, in one remote command. Dropping the future gives the question up.
    fn ask(&self, cluster: &ClusterName, questions: Vec<LogQuestion>) -> LogReading;
}

/// The cluster did not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct LogUnavailable {
    /// Why, in words for the caller.
    pub detail: String,
}
