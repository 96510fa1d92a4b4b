//! The domain: jobs, attempts and cached images, as values and pure functions.
//!
//! A request becomes a [`JobSpec`] (`request`), a job's spec and attempt become files and a batch script (`launch`), and
//! a poll's observation becomes the job's next state (`run`). Nothing here reads a clock, a socket or a file: time, ids
//! and evidence are arguments.
//!
//! A room uses only the rooms before it: image, cluster, request, progress, job, run, launch, conversion.

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
mod violation;

pub use clock::{Clock, Ids, ServerClock, Timestamp, comes_round};
pub use cluster::{
    idle::{ClusterIdlePolicy, IdleAction, IdlePolicy},
    key_name::{InvalidKeyName, KeyName},
    mount::{InvalidMount, Mount},
    policy::{
        BatchSettings, ContainerRuntime, ImagePolicy, ImageSettings, RetrySettings, SbatchExport,
        SubmitSettings,
    },
    preflight,
    resources::{Resources, counted},
    rpc_budget::{RpcBudget, RpcTokens, Urgency},
    target::{Cluster, ClusterIdentity, ClusterName, InvalidClusterName, base_of},
};
pub use conversion::{
    CachedImage, Conversion, ImageChoice, Looked, cached_images, choose_image, conversion_job, given_up,
    run_unconverted,
};
pub use image::{ImageRef, InvalidImage, LaunchImage};
pub use job::{
    array::{ArrayState, AttemptTally, NewestRun, TaskCounts, TaskOutcome, TaskStatus, Told},
    attempt::{Attempt, AttemptPlace, Outcome, PastFailure, Verdict},
    cleanup::{PendingCleanup, cleanup_is_retried, next_purge_wait},
    failure::{Failure, FailureCategory, FollowedLine, LogPlace},
    identity::{AttemptNo, JobId, OUR_NAMES, Origin, PipelineId},
    log_excerpt::LogExcerpt,
    logs::{InvalidLogName, LogContinuity, LogFile, LogPosition, LogRole},
    paths::JobPaths,
    pipeline::{Pipeline, PipelineCounts},
    results::TaskResult,
    retry_request::RetryRequest,
    rewrites::last_rewrites,
    run::{Activity, Run},
    status::{Phase, Source, Status},
    stored::{ActiveJob, DesiredState, Job, Owner},
    submit_fence::SubmitFence,
    task_selection::{CancelRequest, TaskSelection},
};
pub use launch::{StagingError, plan_submission};
pub use progress::{
    series::{MOST_METRICS, MetricAxis, MetricCollector, MetricPoint, MetricSeries},
    status_file::{StatusLine, StatusWord, read_lines},
    status_files::{StatusEvent, StatusEventKind, StatusFiles},
    summary::Progress,
    usage::{Bucket, Held, Usage, mean_of, notes},
};
pub use request::{
    array::{ArrayRequest, ArrayTasks, DEFAULT_MAX_ARRAY_SIZE, JobArray, value_text},
    body::{BackendDetails, BackendType, JobRequest, RetryBudget},
    component::JobComponent,
    component_body::ComponentRequest,
    component_settings::ComponentSettings,
    container::ContainerRequest,
    container_job::{ContainerImages, ContainerJob, ResultsDir, container_job_pointer},
    cosmos,
    files::{FileRequest, JobFile},
    idle::IdleRequest,
    launcher::{Launcher, LauncherBody, LauncherSettings},
    limits,
    needs::{Need, NeedRequest, NeedWhen},
    options::cluster_options,
    options_body::{GresRequest, MemoryBody, ResourcesRequest},
    pipeline::{PipelineJob, PipelineRequest},
    program::ProgramSettings,
    progress::{ProgressFile, ProgressRequest},
    restart::{Restart, RestartCause, RestartRequest},
    results::{LogOf, LogStream, ResultRequest, ResultRule, ResultSource},
    secret::{Secrets, is_secret_key},
    service::{Ready, ReadyBy, ServicePort, ServiceSettings},
    spec::{DEFAULT_MASTER_PORT, JobSpec, Note, PipelineMember, Work},
    text::{Label, Word},
    warnings::Warning,
    webhook::{Networks, Webhook, WebhookRequest, retry_after, webhook_wait},
};
pub use run::{
    activity::wants_signs_of_life,
    conclude::{Ending, Findings, conclude, next_conclusion, status_backlog},
    diagnosis::{FileFault, UnhealthyNode, cached_file_faults},
    evidence::{Observation, Records},
    exclusion::{
        RelaxedExclusions, excluded, is_cramped, relax_attempt, relax_exclusions, with_own_exclusions,
    },
    graces::{Graces, RetryTerms},
    needs::{NeededJob, NeededTasks, after_needs},
    observe::{ObservedChange, observe, unchanged_until},
    orphans::{Ahead, MOST_ORPHANS, Orphan, OrphanKind, Record, Review, Stray, orphan_kind, review_orphans},
    pending::{blames_nodes, explain_wait, queue_wait},
    plan::{Step, Transition, plan, released_at},
    reports::Reporting,
    requeue::{ExplainedRequeue, explain_requeue},
    results::{ResultPlaces, parts_at_the_end, progress_at_the_end, read_results},
    submission::{Lookup, SubmitOutcome, after_lookup, after_submit},
    tasks::{EndedRun, TaskEnding, TaskTemplate, share_failed_launch, waits_only},
};
pub use violation::{Violation, pointer};
