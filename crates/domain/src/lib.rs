//! What the service promises, as values and pure functions.
//!
//! A request becomes a [`JobSpec`] (`request` → `spec`), a job's spec and attempt become files and a batch
//! script (`staging`), and what a poll saw becomes the job's next state (`observe`, `conclude`). Nothing here
//! reads a clock, a socket or a file; time, ids and evidence are arguments.

#![deny(clippy::wildcard_enum_match_arm)]

mod active_job;
mod activity;
mod attempt;
mod checkpoint;
mod clock;
mod cluster;
mod cluster_identity;
mod conclude;
mod container_job;
mod conversion;
pub mod cosmos;
mod datasets;
mod diagnosis;
#[cfg(test)]
mod edge_tests;
mod eta;
mod exclusion;
#[cfg(test)]
mod fixtures;
mod id;
mod image;
mod job;
mod key_name;
pub mod limits;
mod log_file;
mod log_position;
mod mount;
mod observe;
mod orphans;
mod paths;
mod pending;
mod policy;
pub mod preflight;
mod progress;
mod purge;
mod reckoning;
#[cfg(test)]
mod recorded_tests;
mod remote_commands;
mod removal;
mod request;
mod reroute;
mod resend;
mod resources;
mod retry;
mod secret;
mod sends;
mod settle;
mod spec;
mod staging;
mod status;
mod status_file;
mod status_files;
mod submission;
mod text;
mod uri;
mod violation;
mod warnings;
mod webhook;

pub use active_job::ActiveJob;
pub use activity::{Activity, wants_signs_of_life};
pub use attempt::{Attempt, AttemptNo, AttemptPlace, Outcome, Verdict};
pub use clock::{Clock, Ids, Timestamp};
pub use cluster::{Cluster, ClusterChoice, ClusterName, InvalidClusterName, choose_cluster};
pub use cluster_identity::ClusterIdentity;
pub use conclude::{Ending, Findings, conclude};
pub use container_job::{ContainerImages, ContainerJob, ResultsDir, container_job_pointer};
pub use conversion::{
    Abandoned, Conversion, ConversionFindings, ConversionRun, ConversionState, ConversionStep, Demand,
    ImageChoice, LaunchImage, Moved, cached_image, choose_image, conversion_concluded, conversion_located,
    conversion_seen, conversion_sent, conversion_step, conversion_unplannable, plan_conversion,
    run_unconverted, wants_fresh,
};
pub use diagnosis::{
    Cause, Diagnosis, Evidence, RULES as FAILURE_RULES, Rule as FailureRule, SickNode, diagnose,
};
pub use exclusion::{Relief, excluded, relief};
pub use id::JobId;
pub use image::{ImageRef, InvalidImage};
pub use job::{Job, Owner, Wanted};
pub use key_name::{InvalidKeyName, KeyName};
pub use log_file::{LogFile, LogRole, LogStream, NoLogName};
pub use log_position::{LogPosition, LogSight};
pub use mount::{InvalidMount, Mount};
pub use observe::{Graces, Next, Records, Sighting, observe, quiet_until};
pub use orphans::{
    MOST_ORPHANS, OUR_NAMES, Origin, Orphan, OrphanKind, Record, Review, Stray, orphan_kind, review_orphans,
};
pub use paths::JobPaths;
pub use paths::base_of;
pub use pending::{explain_wait, queue_wait};
pub use policy::{BatchSettings, ImagePolicy, ImageSettings, RetrySettings, SbatchExport};
pub use progress::Progress;
pub use purge::purge_again;
pub use reckoning::Reckoning;
pub use remote_commands::{CommandClass, CommandResult};
pub use removal::{Kept, removal_may_come};
pub use request::{BackendDetails, BackendType, ContainerRequest, JobRequest, ResourcesRequest, RetryBudget};
pub use reroute::{Rerouted, rerouted};
pub use resend::RetryRequest;
pub use resources::Resources;
pub use retry::{PastFailure, RetryTerms};
pub use secret::{Secrets, is_secret_key};
pub use sends::Sends;
pub use spec::{DEFAULT_MASTER_PORT, JobSpec, Work};
pub use staging::{StagingError, plan_submission};
pub use status::{Phase, Source, Status};
pub use status_file::{StatusLine, StatusWord, read_lines};
pub use status_files::{StatusEvent, StatusEventKind, StatusFiles};
pub use submission::{After, Located, Sent, Step, located, plan, sent};
pub use text::{Label, Word};
pub use violation::{Violation, pointer};
pub use warnings::Warning;
pub use webhook::{InvalidNetwork, Network, Networks, Webhook, WebhookRequest, retry_after, webhook_wait};
