//! Postgres: the only crate that knows SQL.
//!
//! Rows become domain values and back (`jobs::rows`, `values`). The right to act on a row is a [`Lease`], and every statement
//! that acts checks its token. No transaction stays open during network calls: a lease outlives its transaction.

mod callers;
mod clusters;
mod error;
mod events;
mod images;
mod jobs;
mod listen;
mod pipelines;
mod polls;
mod schema;
mod seal;
mod statements;
mod store;
mod values;
mod webhooks;
mod work_store;
mod workload;

pub use callers::{
    idempotency::{Known, Once},
    tokens::{NewToken, Scopes, Token, random_token},
};
pub use clusters::{
    allocations::AllocationRecords,
    partitions::{KnownPartitions, PartitionTurns},
    rpc_budgets::{RpcBudgets, RpcState},
    stored::{
        ClusterAdded, ClusterChange, ClusterListener, ClusterWork, Incarnations, NewCluster, Revision,
        StoredCluster,
    },
};
pub use error::{SchemaError, StoreError};
pub use events::{
    feed::{FeedEvent, FeedFilter, FeedPage},
    job_events::JobEvent,
    status_lines::MetricLine,
    timeline::{CommandRun, TimelineEntry, TimelinePlace},
};
pub use images::{ImageRecord, ImageRequest, Images, Wait};
pub use jobs::{
    deletions::{PurgeTarget, Purges},
    desired_state::{Requested, Retry},
    failures::RunFailure,
    insert::{InsertWith, Inserted, NewJob},
    lane::Lane,
    leases::{DueJobs, Lease, LeaseTerms},
    listing::{FacetCount, JobFacet, JobFilter, JobOrder, JobPage},
    needs::Needs,
    queries::{JobVersion, Viewer},
    results::StoredResults,
    stats::{JobFigures, JobStats, StatsBuckets, StatsFilter, StatsGroup},
    steps::StepRecords,
    tasks::{
        ended::{ConcludedTask, EndedTask, TaskRecords},
        newest::TaskRun,
        polled::{ActiveArray, ObservedTask, TaskPolls},
    },
    usage::JobAccount,
};
pub use listen::{DueListener, DueNotice, DueNotices, JobListener, JobNotice};
pub use pipelines::{InsertedPipeline, NewPipeline, PipelinePage};
pub use polls::{
    observations::Observations,
    orphans::OrphanRecords,
    turns::{PollLease, PollResult, PollState, PollTurns, Pulse},
};
pub use schema::version::MIGRATOR;
pub use seal::Sealer;
pub use store::{Call, Store, StoreOptions};
pub use webhooks::{
    DeadLetter, DeliveryResult, DeliveryTerms, WebhookDelivery, WebhookHistory, WebhookLease,
};
pub use work_store::WorkStore;
pub use workload::{Connections, Workload};
