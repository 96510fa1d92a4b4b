//! A cluster behind SSH: renders commands, sends them, reads the answers.

use std::{collections::HashMap, time::Instant};

use domain::{ClusterName, CommandResult};
use persistence::CommandRun;
use remote::{
    Cancel, Canceled, CheckImages, Checkpoints, Conclude, Concluded, EarlierRun, Exclude, Excluded,
    ImageFile, Locate, LocateAnswer, LogAnswer, NodeHealth, NodeHealthAnswer, Poll, PollAnswer, Purge,
    Purged, RawOutput, ReadLogs, Remove, Removed, Requeued, SubmitAnswer, SubmitBatch,
};
use slurm::{RemotePath, SlurmJobId};
use ssh::{Command, Effect, SshError, SshPool};
use tracing::Instrument;

use crate::link::{
    cluster_link::{ClusterLink, LinkError},
    timeline::{Concerns, Timeline, UnderWay},
};

/// The link that the service uses.
#[derive(Debug, Clone)]
pub struct SshLink {
    cluster: ClusterName,
    pool: SshPool,
    timeline: Option<Timeline>,
}

/// Whether a command may be sent again, perhaps to another login host, when its answer was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Repeat {
    Safe,
    /// A submission is made safe by its claim, but its answer has to be looked for, not asked for again.
    Never,
}

/// What is known of a command that has ended, beside its answer.
#[derive(Debug, Default)]
struct Trail {
    host: Option<String>,
    exit_code: Option<i32>,
    bytes: Option<u64>,
}

impl SshLink {
    pub fn new(cluster: ClusterName, pool: SshPool) -> Self {
        Self { cluster, pool, timeline: None }
    }

    /// The same, whose commands are noted in the timelines of their jobs.
    #[must_use]
    pub fn noting(self, timeline: Timeline) -> Self {
        Self { timeline: Some(timeline), ..self }
    }

    pub fn pool(&self) -> &SshPool {
        &self.pool
    }

    /// Parts of logs, an answer for each question.
    pub async fn read_logs(&self, command: &ReadLogs) -> Result<Vec<LogAnswer>, LinkError> {
        self.call(command, Repeat::Safe).await
    }

    async fn call<C: Concerns>(&self, command: &C, repeat: Repeat) -> Result<C::Output, LinkError> {
        let name: &'static str = C::CLASS.into();
        let under_way = self.timeline.as_ref().map(Timeline::begin);
        let began = Instant::now();
        let span = traces::command(&self.cluster, name);
        let (trail, answer) = self.ask(command, repeat).instrument(span.clone()).await;
        if let (Some(timeline), Some(UnderWay { since, .. })) = (&self.timeline, &under_way) {
            timeline.note(CommandRun {
                cluster: self.cluster.clone(),
                class: C::CLASS,
                host: trail.host,
                started_at: *since,
                duration: began.elapsed(),
                result: answer.as_ref().map_or_else(|(result, _)| *result, |_| CommandResult::Ok),
                exit_code: trail.exit_code,
                bytes: trail.bytes,
                jobs: command.jobs(),
                subjects: command.subjects(answer.as_ref().ok()),
            });
        }
        let answer = answer.map_err(|(_, error)| error);
        let outcome = match &answer {
            Ok(_) => "ok",
            Err(LinkError::NotSent { .. }) => "not_sent",
            Err(LinkError::AuthRequired { .. }) => "auth_required",
            Err(LinkError::Lost { .. }) => "lost",
        };
        span.record("outcome", outcome);
        if answer.is_err() {
            span.record("otel.status_code", "ERROR");
        }
        metrics::counter!(
            "slurm_commands_total",
            "cluster" => self.cluster.to_string(), "command" => name, "outcome" => outcome
        )
        .increment(1);
        answer
    }

    async fn ask<C: Concerns>(
        &self,
        command: &C,
        repeat: Repeat,
    ) -> (Trail, Result<C::Output, (CommandResult, LinkError)>) {
        let call = command.render();
        let sent = Command {
            program: call.program,
            stdin: call.stdin,
            deadline: call.deadline,
            stdout_limit: call.stdout_limit,
            repeatable: repeat == Repeat::Safe,
        };
        match self.pool.run(sent).await {
            Ok(output) => {
                let name: &'static str = C::CLASS.into();
                metrics::histogram!(
                    "slurm_command_duration_seconds", "cluster" => self.cluster.to_string(), "command" => name
                )
                .record(output.elapsed.as_secs_f64());
                let trail = Trail {
                    host: Some(output.host.to_string()),
                    exit_code: Some(output.exit_code),
                    bytes: u64::try_from(output.stdout.len()).ok(),
                };
                let raw =
                    RawOutput { stdout: output.stdout, stderr: output.stderr, exit_code: output.exit_code };
                let answer = command.parse(&raw);
                (trail, answer.map_err(|error| (error.class().into(), LinkError::from_answer(&error))))
            }
            Err(error) => {
                let host = match &error {
                    SshError::OutcomeUnknown { host, .. } | SshError::OutputTooLarge { host, .. } => {
                        Some(host.to_string())
                    }
                    _ => None,
                };
                (Trail { host, ..Trail::default() }, Err(not_answered(&error)))
            }
        }
    }
}

fn not_answered(error: &SshError) -> (CommandResult, LinkError) {
    let why = format!("{error}. {}", error.advice());
    match error.effect() {
        Effect::None if error.is_login_failure() => {
            let why = format!("it wants a login that this service does not have (auth_required). {why}");
            (CommandResult::AuthRequired, LinkError::AuthRequired { why })
        }
        Effect::None => (CommandResult::NotSent, LinkError::NotSent { why }),
        Effect::Unknown => (CommandResult::Lost, LinkError::Lost { why }),
    }
}

impl ClusterLink for SshLink {
    async fn submit(&self, command: &SubmitBatch) -> Result<Vec<SubmitAnswer>, LinkError> {
        self.call(command, Repeat::Never).await
    }

    async fn locate(&self, command: &Locate) -> Result<LocateAnswer, LinkError> {
        self.call(command, Repeat::Safe).await
    }

    async fn poll(&self, command: &Poll) -> Result<PollAnswer, LinkError> {
        self.call(command, Repeat::Safe).await
    }

    async fn conclude(&self, command: &Conclude) -> Result<Vec<Concluded>, LinkError> {
        self.call(command, Repeat::Safe).await
    }

    async fn cancel(&self, command: &Cancel) -> Result<Canceled, LinkError> {
        self.call(command, Repeat::Safe).await
    }

    async fn check_images(&self, command: &CheckImages) -> Result<Vec<ImageFile>, LinkError> {
        self.call(command, Repeat::Safe).await
    }

    async fn remove(&self, command: &Remove) -> Result<Removed, LinkError> {
        self.call(command, Repeat::Safe).await
    }

    async fn purge(&self, command: &Purge) -> Result<Purged, LinkError> {
        self.call(command, Repeat::Safe).await
    }

    async fn node_health(&self, command: &NodeHealth) -> Result<NodeHealthAnswer, LinkError> {
        self.call(command, Repeat::Safe).await
    }

    async fn requeued(&self, command: &Requeued) -> Result<HashMap<SlurmJobId, EarlierRun>, LinkError> {
        self.call(command, Repeat::Safe).await
    }

    async fn partitions(&self, command: &remote::Partitions) -> Result<remote::PartitionsAnswer, LinkError> {
        self.call(command, Repeat::Safe).await
    }

    async fn checkpoints(&self, command: &Checkpoints) -> Result<Vec<Option<RemotePath>>, LinkError> {
        self.call(command, Repeat::Safe).await
    }

    async fn exclude(&self, command: &Exclude) -> Result<Excluded, LinkError> {
        self.call(command, Repeat::Safe).await
    }
}
