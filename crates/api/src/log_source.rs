//! How the bytes of a log reach us: through a trait, because this crate does not know SSH.

use std::pin::Pin;

use domain::ClusterName;
use slurm::{LogFrom, RemotePath};

/// Reads logs on a cluster.
pub trait LogSource: Send + Sync + 'static {
    /// The asked part of the first of the request's files that exists; `None` when none of them does yet.
    fn read(
        &self,
        request: LogRequest,
    ) -> Pin<Box<dyn Future<Output = Result<Option<LogBytes>, LogUnavailable>> + Send + '_>>;
}

/// Which part of which file.
#[derive(Debug, Clone)]
pub struct LogRequest {
    /// The cluster that has the file.
    pub cluster: ClusterName,
    /// Where the file may be, best first.
    pub paths: Vec<RemotePath>,
    /// Where to begin.
    pub from: LogFrom,
    /// The most bytes to read.
    pub max_bytes: u64,
}

/// A part of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogBytes {
    /// The size of the whole file, in bytes.
    pub size: u64,
    /// Where `bytes` begins in it.
    pub start: u64,
    /// The bytes as they are in the file.
    pub bytes: Vec<u8>,
}

/// The cluster did not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct LogUnavailable {
    /// Why, in words for the caller.
    pub detail: String,
}
