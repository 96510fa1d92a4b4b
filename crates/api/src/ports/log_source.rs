//! The port to logs on clusters: this crate does not know SSH.

use std::pin::Pin;

use domain::ClusterName;
use remote::{LogAnswer, LogQuestion};

/// One answer for each question, in the same order.
pub type LogReading = Pin<Box<dyn Future<Output = Result<Vec<LogAnswer>, LogUnavailable>> + Send>>;

/// Reads logs on clusters.
pub trait LogSource: Send + Sync + 'static {
    /// Asks one cluster in one remote command. Dropping the future cancels the question.
    fn ask(&self, cluster: &ClusterName, questions: Vec<LogQuestion>) -> LogReading;
}

/// The cluster did not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct LogUnavailable {
    /// The reason, for the caller.
    pub detail: String,
}
