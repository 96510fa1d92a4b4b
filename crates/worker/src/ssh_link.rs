//! A cluster behind SSH: renders commands, sends them, reads the answers.

use std::collections::HashMap;

use slurm::{
    Cancel, Cancelled, CheckImages, Checkpoints, Conclude, Concluded, EarlierRun, Exclude, Excluded,
    ImageFile, Locate, LocateAnswer, LogAnswer, NodeHealth, NodeHealthAnswer, Poll, PollAnswer, Purge,
    Purged, RawOutput, ReadLogs, RemoteCommand, RemotePath, Remove, Removed, Requeued, SlurmJobId,
    SubmitAnswer, SubmitBatch,
};
use ssh::{Command, Effect, SshPool};

use crate::link::{ClusterLink, LinkError};

/// The link that the service uses.
#[derive(Debug, Clone)]
pub struct SshLink(SshPool);

/// Whether a command may be sent again, perhaps to another login host, when its answer was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Repeat {
    Safe,
    /// A submission is made safe by its claim, but its answer has to be looked for, not asked for again.
    Never,
}

impl SshLink {
    pub fn new(pool: SshPool) -> Self {
        Self(pool)
    }

    pub fn pool(&self) -> &SshPool {
        &self.0
    }

    /// Parts of logs, an answer for each question.
    pub async fn read_logs(&self, command: &ReadLogs) -> Result<Vec<LogAnswer>, LinkError> {
        self.call(command, "read_logs", Repeat::Safe).await
    }

    async fn call<C: RemoteCommand>(
        &self,
        command: &C,
        name: &'static str,
        repeat: Repeat,
    ) -> Result<C::Output, LinkError> {
        let call = command.render();
        let sent = Command {
            program: call.program,
            stdin: call.stdin,
            deadline: call.deadline,
            stdout_limit: call.stdout_limit,
            repeatable: repeat == Repeat::Safe,
        };
        let result = match self.0.run(sent).await {
            Ok(output) => {
                metrics::histogram!("slurm_command_duration_seconds", "command" => name)
                    .record(output.elapsed.as_secs_f64());
                let raw =
                    RawOutput { stdout: output.stdout, stderr: output.stderr, exit_code: output.exit_code };
                command.parse(&raw).map_err(|error| LinkError::from_answer(&error))
            }
            Err(error) => {
                let why = format!("{error}. {}", error.advice());
                Err(match error.effect() {
                    Effect::None if error.wants_a_login() => LinkError::AuthRequired {
                        why: format!(
                            "it wants a login that this service does not have (auth_required). {why}"
                        ),
                    },
                    Effect::None => LinkError::NotSent { why },
                    Effect::Unknown => LinkError::Lost { why },
                })
            }
        };
        let outcome = match &result {
            Ok(_) => "ok",
            Err(LinkError::NotSent { .. }) => "not_sent",
            Err(LinkError::AuthRequired { .. }) => "auth_required",
            Err(LinkError::Lost { .. }) => "lost",
        };
        metrics::counter!("slurm_commands_total", "command" => name, "outcome" => outcome).increment(1);
        result
    }
}

impl ClusterLink for SshLink {
    async fn submit(&self, command: &SubmitBatch) -> Result<Vec<SubmitAnswer>, LinkError> {
        self.call(command, "submit", Repeat::Never).await
    }

    async fn locate(&self, command: &Locate) -> Result<LocateAnswer, LinkError> {
        self.call(command, "locate", Repeat::Safe).await
    }

    async fn poll(&self, command: &Poll) -> Result<PollAnswer, LinkError> {
        self.call(command, "poll", Repeat::Safe).await
    }

    async fn conclude(&self, command: &Conclude) -> Result<Vec<Concluded>, LinkError> {
        self.call(command, "conclude", Repeat::Safe).await
    }

    async fn cancel(&self, command: &Cancel) -> Result<Cancelled, LinkError> {
        self.call(command, "cancel", Repeat::Safe).await
    }

    async fn check_images(&self, command: &CheckImages) -> Result<Vec<ImageFile>, LinkError> {
        self.call(command, "check_images", Repeat::Safe).await
    }

    async fn remove(&self, command: &Remove) -> Result<Removed, LinkError> {
        self.call(command, "remove", Repeat::Safe).await
    }

    async fn purge(&self, command: &Purge) -> Result<Purged, LinkError> {
        self.call(command, "purge", Repeat::Safe).await
    }

    async fn node_health(&self, command: &NodeHealth) -> Result<NodeHealthAnswer, LinkError> {
        self.call(command, "node_health", Repeat::Safe).await
    }

    async fn requeued(&self, command: &Requeued) -> Result<HashMap<SlurmJobId, EarlierRun>, LinkError> {
        self.call(command, "requeued", Repeat::Safe).await
    }

    async fn partitions(&self, command: &slurm::Partitions) -> Result<slurm::PartitionsAnswer, LinkError> {
        self.call(command, "partitions", Repeat::Safe).await
    }

    async fn checkpoints(&self, command: &Checkpoints) -> Result<Vec<Option<RemotePath>>, LinkError> {
        self.call(command, "checkpoints", Repeat::Safe).await
    }

    async fn exclude(&self, command: &Exclude) -> Result<Excluded, LinkError> {
        self.call(command, "exclude", Repeat::Safe).await
    }
}
