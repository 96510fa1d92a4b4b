//! The way to a cluster, as the loop sees it: a remote command, and three kinds of outcome.

use std::{collections::HashMap, future::Future};

use remote::{
    Cancel, Canceled, CheckImages, Checkpoints, Conclude, Concluded, EarlierRun, Exclude, Excluded,
    ImageFile, Locate, LocateAnswer, NodeHealth, NodeHealthAnswer, ParseError, Poll, PollAnswer, Purge,
    Purged, Remove, Removed, Requeued, SubmitAnswer, SubmitBatch,
};
use slurm::{FailureClass, RemotePath, SlurmJobId};

/// A command that brought no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LinkError {
    /// It surely had no effect.
    #[error("{why}")]
    NotSent { why: String },
    /// The same, because the cluster accepts no key that we have: only a person can mend it.
    #[error("{why}")]
    AuthRequired { why: String },
    /// It may have had its effect; nobody knows.
    #[error("{why}")]
    Lost { why: String },
}

impl LinkError {
    pub(crate) fn from_answer(error: &ParseError) -> Self {
        let why = error.to_string();
        match error.class() {
            FailureClass::NotDone | FailureClass::Capacity | FailureClass::Infra => Self::NotSent { why },
            FailureClass::Ambiguous | FailureClass::Permanent => Self::Lost { why },
        }
    }
}

/// What the loop asks of a cluster. Real ones are reached by SSH; tests put a fake here.
pub trait ClusterLink: Clone + Send + Sync + 'static {
    fn submit(
        &self,
        command: &SubmitBatch,
    ) -> impl Future<Output = Result<Vec<SubmitAnswer>, LinkError>> + Send;
    fn locate(&self, command: &Locate) -> impl Future<Output = Result<LocateAnswer, LinkError>> + Send;
    fn poll(&self, command: &Poll) -> impl Future<Output = Result<PollAnswer, LinkError>> + Send;
    fn conclude(&self, command: &Conclude) -> impl Future<Output = Result<Vec<Concluded>, LinkError>> + Send;
    fn cancel(&self, command: &Cancel) -> impl Future<Output = Result<Canceled, LinkError>> + Send;
    fn check_images(
        &self,
        command: &CheckImages,
    ) -> impl Future<Output = Result<Vec<ImageFile>, LinkError>> + Send;
    fn remove(&self, command: &Remove) -> impl Future<Output = Result<Removed, LinkError>> + Send;
    fn purge(&self, command: &Purge) -> impl Future<Output = Result<Purged, LinkError>> + Send;
    fn node_health(
        &self,
        command: &NodeHealth,
    ) -> impl Future<Output = Result<NodeHealthAnswer, LinkError>> + Send;
    fn requeued(
        &self,
        command: &Requeued,
    ) -> impl Future<Output = Result<HashMap<SlurmJobId, EarlierRun>, LinkError>> + Send;
    fn partitions(
        &self,
        command: &remote::Partitions,
    ) -> impl Future<Output = Result<remote::PartitionsAnswer, LinkError>> + Send;
    fn checkpoints(
        &self,
        command: &Checkpoints,
    ) -> impl Future<Output = Result<Vec<Option<RemotePath>>, LinkError>> + Send;
    fn exclude(&self, command: &Exclude) -> impl Future<Output = Result<Excluded, LinkError>> + Send;
}
