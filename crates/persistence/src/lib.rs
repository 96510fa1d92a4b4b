//! Postgres: the only crate that knows SQL.
//!
//! Rows become domain values and back (`rows`); the right to act on a row is a [`Lease`], and every statement
//! that acts checks its token. Nothing here is held across the network: a lease outlives its transaction.

mod again;
mod callers;
mod clusters;
mod conversions;
mod error;
mod events;
mod jobs;
mod listen;
mod polls;
mod seal;
mod store;
mod webhooks;
mod work_store;
mod workload;

pub use callers::{
    idempotency::{Known, Once},
    tokens::{NewToken, Scopes, Token},
};
pub use clusters::{
    kept::{ClusterChange, ClusterKept, ClusterListener, ClusterWork, KeptCluster, NewCluster, Revision},
    partitions::KnownPartitions,
};
pub use conversions::{ConversionLease, ConversionRecord, ImageRequest};
pub use error::StoreError;
pub use events::{
    feed::{FeedEvent, FeedFilter, FeedPage},
    of_job::JobEvent,
    timeline::{CommandRun, TimelineEntry, TimelinePlace},
};
pub use jobs::{
    desired_state::Requested,
    leases::{Lane, Lease, LeaseTerms},
    listing::{JobFilter, JobPage},
    purges::Remains,
    steps::StepRecord,
    stored::{Along, Inserted, NewJob, Viewer},
    versions::JobVersion,
};
pub use listen::{DueListener, DueNotice, JobListener, JobNotice};
pub use polls::{
    states::PollState,
    turns::{PollLease, PollResult, Pulse},
};
pub use seal::Sealer;
pub use store::{MIGRATOR, Store, StoreOptions};
pub use webhooks::{DeadLetter, DeliveryResult, TurnTerms, WebhookDelivery, WebhookHistory, WebhookTurn};
pub use work_store::{
    Call, DueJobs, DueNotices, ImageConversions, Incarnations, OrphanRecords, PartitionTurns, PollTurns,
    StepRecords, WorkStore,
};
pub use workload::{Connections, Workload};
