//! All that a worker needs from the database. [`Store`] provides it in the service; tests put another store behind a worker,
//! or a gate between the two.
//!
//! Each family of calls is a trait beside its SQL.

use std::fmt::Debug;

use crate::{
    clusters::{
        allocations::AllocationRecords, partitions::PartitionTurns, rpc_budgets::RpcBudgets,
        stored::Incarnations,
    },
    images::Images,
    jobs::{
        deletions::Purges,
        leases::DueJobs,
        needs::Needs,
        steps::StepRecords,
        tasks::{ended::TaskRecords, polled::TaskPolls},
    },
    polls::{observations::Observations, orphans::OrphanRecords, turns::PollTurns},
    store::Store,
};

pub trait WorkStore:
    DueJobs
    + StepRecords
    + TaskPolls
    + TaskRecords
    + Needs
    + Purges
    + PollTurns
    + Observations
    + OrphanRecords
    + Images
    + PartitionTurns
    + AllocationRecords
    + RpcBudgets
    + Incarnations
    + Clone
    + Debug
    + Send
    + Sync
    + 'static
{
}

impl WorkStore for Store {}
