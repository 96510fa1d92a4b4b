//! What the service promises, as values and pure functions.
//!
//! A request becomes a [`JobSpec`] (`request` → `spec`), a job's spec and attempt become files and a batch
//! script (`staging`), and what a poll saw becomes the job's next state (`observe`, `conclude`). Nothing here
//! reads a clock, a socket or a file; time, ids and evidence are arguments.

#![deny(clippy::wildcard_enum_match_arm)]

mod clock;
mod cluster;
mod conversion;
#[cfg(test)]
mod fixtures;
mod image;
mod job;
mod launch;
mod progress;
mod request;
mod run;
mod server_clock;
mod violation;

pub use clock::{Clock, Ids, Timestamp};
pub use cluster::{
    identity::ClusterIdentity,
    key_name::{InvalidKeyName, KeyName},
    mount::{InvalidMount, Mount},
    policy::{BatchSettings, ImagePolicy, ImageSettings, RetrySettings, SbatchExport},
    preflight,
    resources::Resources,
    target::{Cluster, ClusterChoice, ClusterName, InvalidClusterName, choose_cluster},
};
pub use conversion::{
    Abandoned, Conversion, ConversionFindings, ConversionRun, ConversionState, ConversionStep,
    ConversionTransition, Demand, ImageChoice, LaunchImage, cached_image, choose_image, conversion_concluded,
    conversion_located, conversion_seen, conversion_sent, conversion_step, conversion_unplannable,
    plan_conversion, run_unconverted, wants_fresh,
};
pub use image::{ImageRef, InvalidImage};
pub use job::{
    active_job::ActiveJob,
    attempt::{Attempt, AttemptNo, AttemptPlace, Outcome, Verdict},
    id::JobId,
    log_file::{LogFile, LogRole, LogStream, NoLogName},
    log_position::{LogPosition, LogSight},
    paths::{JobPaths, base_of},
    removal::{PendingCleanup, removal_may_come},
    resend::RetryRequest,
    status::{Phase, Source, Status},
    stored::{DesiredState, Job, Owner},
    submit_fence::SubmitFence,
};
pub use launch::staging::{StagingError, plan_submission};
pub use progress::{
    status_file::{StatusLine, StatusWord, read_lines},
    status_files::{StatusEvent, StatusEventKind, StatusFiles},
    summary::Progress,
};
pub use request::{
    body::{BackendDetails, BackendType, ContainerRequest, JobRequest, ResourcesRequest, RetryBudget},
    container_job::{ContainerImages, ContainerJob, ResultsDir, container_job_pointer},
    cosmos, limits,
    secret::{Secrets, is_secret_key},
    spec::{DEFAULT_MASTER_PORT, JobSpec, Work},
    text::{Label, Word},
    warnings::Warning,
    webhook::{InvalidNetwork, Network, Networks, Webhook, WebhookRequest, retry_after, webhook_wait},
};
pub use run::{
    activity::{Activity, wants_signs_of_life},
    conclude::{Ending, Findings, conclude},
    diagnosis::{
        Cause, Diagnosis, Evidence, RULES as FAILURE_RULES, Rule as FailureRule, SickNode, diagnose,
    },
    exclusion::{RelaxedExclusions, excluded, relax_exclusions},
    observe::{Graces, Next, Observation, Records, observe, quiet_until},
    orphans::{
        MOST_ORPHANS, OUR_NAMES, Origin, Orphan, OrphanKind, Record, Review, Stray, orphan_kind,
        review_orphans,
    },
    pending::{explain_wait, queue_wait},
    purge::purge_again,
    reroute::{ExplainedRequeue, explain_requeue},
    retry::{PastFailure, RetryTerms},
    submission::{Located, Sent, Step, Transition, located, plan, sent},
};
pub use server_clock::ServerClock;
pub use violation::{Violation, pointer};
