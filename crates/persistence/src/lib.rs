//! Postgres: the only crate that knows SQL.
//!
//! Rows become domain values and back (`rows`); the right to act on a row is a [`Lease`], and every statement
//! that acts checks its token. Nothing here is held across the network: a lease outlives its transaction.

mod again;
mod attempt_place;
mod attempts;
mod changes;
mod cluster_polls;
mod clusters;
mod conversions;
mod error;
mod events;
mod feed;
mod jobs;
mod leases;
mod listen;
mod listing;
mod once;
mod orphans;
mod partitions;
mod polls;
mod purges;
mod record;
mod retention;
mod rows;
mod seal;
mod sightings;
mod store;
mod timeline;
mod tokens;
mod versions;
mod webhooks;
mod wishes;
mod work_store;
mod workload;

pub use cluster_polls::PollState;
pub use clusters::{
    ClusterChange, ClusterKept, ClusterListener, ClusterWork, KeptCluster, NewCluster, Revision,
};
pub use conversions::{ConversionLease, ConversionRecord, ImageWish};
pub use error::StoreError;
pub use events::JobEvent;
pub use feed::{FeedEvent, FeedFilter, FeedPage};
pub use jobs::{Along, Inserted, NewJob, Viewer};
pub use leases::{Lane, Lease, LeaseTerms};
pub use listen::{DueListener, DueNotice, JobListener, JobNotice};
pub use listing::{JobFilter, JobPage};
pub use once::{Known, Once};
pub use partitions::KnownPartitions;
pub use polls::{PollLease, PollResult, Pulse};
pub use purges::Remains;
pub use record::StepRecord;
pub use seal::Sealer;
pub use store::{MIGRATOR, Store, StoreOptions};
pub use timeline::{CommandRun, Subject, TimelineEntry, TimelinePlace, Whose};
pub use tokens::{NewToken, Scopes, Token};
pub use versions::JobVersion;
pub use webhooks::{DeadLetter, DeliveryResult, TurnTerms, WebhookDelivery, WebhookHistory, WebhookTurn};
pub use wishes::Wished;
pub use work_store::{
    Call, DueJobs, DueNotices, ImageConversions, Incarnations, OrphanRecords, PartitionTurns, PollTurns,
    StepRecords, WorkStore,
};
pub use workload::{Connections, Workload};
