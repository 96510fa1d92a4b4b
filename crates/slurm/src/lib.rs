//! The language of Slurm: ids, names, states, times, node lists, the rows that its commands print, and the texts of its
//! failures.
//!
//! Pure text: nothing here does I/O, reads a clock, or knows about this service's jobs. All text from a cluster is
//! untrusted: sizes are capped, a malformed row is skipped, nothing panics.

#![deny(clippy::wildcard_enum_match_arm)]
#![deny(missing_docs)]

pub mod failure;
mod job;
mod names;
pub mod node_list;
mod number;
mod options;
mod partition;
pub mod pending_reason;
mod time;

pub use failure::{Failure, FailureClass, classify};
pub use job::{
    allocation::Allocation,
    exit_code::ExitCode,
    id::SlurmJobId,
    rows::{AccountingRow, PastRun, QueueRow},
    state::{SlurmState, Stage},
    task_set::TaskSet,
};
pub use names::{
    cuda_version::CudaVersion,
    invalid_name::{InvalidName, shown},
    mail_address::MailAddress,
    remote_path::RemotePath,
    trace_parent::TraceParent,
    words::{Account, ComponentName, EnvKey, JobName, NodeName, Partition, UserName},
};
pub use options::{
    constraint::Constraint,
    gres::{GpuRequest, Gres},
    memory::{Memory, MemoryRequest},
    named::{OptionName, OptionValue, Ownership},
    node_set::NodeSet,
    submit::SubmitOptions,
    text::OptionText,
    when::{Moment, SbatchTime},
    words::{GresName, GresType, Licenses, MpiPlugin, Qos, Reservation, Switches},
};
pub use partition::{
    associations::{Association, Associations},
    info::{NodeGroup, PartitionInfo},
    list::PartitionList,
    sinfo::PartitionSettings,
};
pub use time::{
    run_time::RunTime,
    timestamp::timestamp,
    wall_time::{TimeLimit, WallTime},
};
