//! A cluster behind SSH: renders commands, sends them, reads the answers.

use std::time::Instant;

use domain::ClusterName;
use persistence::CommandRun;
use remote::{CommandResult, RawOutput, RemoteCommand, Repeat};
use ssh::{Command, SshError, SshPool};
use tracing::Instrument;

use crate::link::{
    cluster_link::{CallError, ClusterLink, LinkError},
    timeline::Timeline,
};

/// The link that the service uses.
#[derive(Debug, Clone)]
pub struct SshLink {
    cluster: ClusterName,
    pool: SshPool,
    timeline: Option<Timeline>,
}

/// What is known about a command that has ended, beside its answer.
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

    /// The same link, which writes its commands to the timelines of their subjects.
    #[must_use]
    pub fn noting(self, timeline: Timeline) -> Self {
        Self { timeline: Some(timeline), ..self }
    }

    pub fn pool(&self) -> &SshPool {
        &self.pool
    }

    /// As [`ClusterLink::call`], with the cause of a failure.
    pub async fn try_call<C: RemoteCommand>(&self, command: &C) -> Result<C::Output, CallError> {
        let under_way = self.timeline.as_ref().map(Timeline::begin);
        let began = Instant::now();
        let span = traces::command(&self.cluster, C::NAME);
        let (trail, answer) = self.run(command).instrument(span.clone()).await;
        let result = answer.as_ref().map_or_else(CallError::result, |_| CommandResult::Ok);
        if let (Some(timeline), Some(under_way)) = (&self.timeline, &under_way) {
            timeline.note(CommandRun {
                cluster: self.cluster.clone(),
                class: C::NAME,
                host: trail.host,
                started_at: under_way.since,
                duration: began.elapsed(),
                result,
                exit_code: trail.exit_code,
                bytes: trail.bytes,
                jobs: command.jobs(),
                subjects: command.subjects(answer.as_ref().ok()),
            });
        }
        let outcome = outcome(result);
        span.record("outcome", outcome);
        if answer.is_err() {
            span.record("otel.status_code", "ERROR");
        }
        metrics::counter!(
            "tao_slurm_commands_total",
            "cluster" => self.cluster.to_string(), "command" => C::NAME, "outcome" => outcome
        )
        .increment(1);
        answer
    }

    async fn run<C: RemoteCommand>(&self, command: &C) -> (Trail, Result<C::Output, CallError>) {
        let call = command.render();
        let sent = Command {
            program: call.program.to_owned(),
            stdin: call.stdin,
            deadline: call.deadline,
            stdout_limit: call.stdout_limit,
            repeatable: C::REPEAT == Repeat::Safe,
        };
        match self.pool.run(sent).await {
            Ok(output) => {
                metrics::histogram!(
                    "tao_slurm_command_duration_seconds", "cluster" => self.cluster.to_string(), "command" => C::NAME
                )
                .record(output.elapsed.as_secs_f64());
                let trail = Trail {
                    host: Some(output.host.to_string()),
                    exit_code: Some(output.exit_code),
                    bytes: u64::try_from(output.stdout.len()).ok(),
                };
                let raw =
                    RawOutput { stdout: output.stdout, stderr: output.stderr, exit_code: output.exit_code };
                (trail, command.parse(&raw).map_err(CallError::from))
            }
            Err(error) => {
                let host = match &error {
                    SshError::OutcomeUnknown { host, .. } | SshError::OutputTooLarge { host, .. } => {
                        Some(host.to_string())
                    }
                    _ => None,
                };
                (Trail { host, ..Trail::default() }, Err(error.into()))
            }
        }
    }
}

/// The outcome as metrics and traces show it: by the effect alone.
fn outcome(result: CommandResult) -> &'static str {
    match result {
        CommandResult::Ok => "ok",
        CommandResult::AuthRequired => "auth_required",
        CommandResult::NotSent | CommandResult::NotDone | CommandResult::Capacity | CommandResult::Infra => {
            "not_sent"
        }
        CommandResult::Lost | CommandResult::Ambiguous | CommandResult::Permanent => "lost",
    }
}

impl ClusterLink for SshLink {
    async fn call<C: RemoteCommand>(&self, command: &C) -> Result<C::Output, LinkError> {
        self.try_call(command).await.map_err(LinkError::from)
    }

    fn out_of_reach(&self) -> Option<LinkError> {
        self.pool.out_of_reach().map(|error| CallError::from(error).into())
    }
}
