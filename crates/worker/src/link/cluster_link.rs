//! The way to a cluster as the loops see it: a remote command goes out, and an answer or an error comes back.

use std::{future::Future, time::Duration};

use domain::{RpcBudget, RpcTokens, Timestamp, Urgency};
use persistence::StoreError;
use remote::{CommandResult, ParseError, RemoteCommand};
use ssh::{Effect, SshError};

/// A command without an answer, by what is known about its effect.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LinkError {
    /// It had no effect.
    #[error("{why}")]
    NotSent { why: String },
    /// It ran and had no effect.
    #[error("{why}")]
    NotDone { why: String },
    /// It was not sent: the RPC budget of the cluster allows it after this time.
    #[error("the cluster's rpc_budget is spent; it allows this in {} s", .wait.as_secs() + 1)]
    OverBudget { wait: Duration },
    /// It had no effect: the cluster accepts no key of the service. A person has to act.
    #[error("{why}")]
    AuthRequired { why: String },
    /// It may have had its effect.
    #[error("{why}")]
    Lost { why: String },
}

/// A command without an answer, by its cause.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    #[error("{0}. {advice}", advice = .0.advice())]
    Ssh(#[from] SshError),
    #[error(transparent)]
    Answer(#[from] ParseError),
}

impl CallError {
    pub(crate) fn result(&self) -> CommandResult {
        match self {
            Self::Ssh(error) => match error.effect() {
                Effect::None if error.is_login_failure() => CommandResult::AuthRequired,
                Effect::None => CommandResult::NotSent,
                Effect::Unknown => CommandResult::Lost,
            },
            Self::Answer(error) => error.class().into(),
        }
    }
}

impl From<CallError> for LinkError {
    fn from(error: CallError) -> Self {
        let why = error.to_string();
        match error.result() {
            CommandResult::NotSent => Self::NotSent { why },
            CommandResult::NotDone | CommandResult::Capacity | CommandResult::Infra => Self::NotDone { why },
            CommandResult::AuthRequired => Self::AuthRequired {
                why: format!("it wants a login that this service does not have (auth_required). {why}"),
            },
            CommandResult::Lost | CommandResult::Ambiguous | CommandResult::Permanent | CommandResult::Ok => {
                Self::Lost { why }
            }
        }
    }
}

/// The way to one cluster: SSH in the service, a fake in tests.
pub trait ClusterLink: Clone + Send + Sync + 'static {
    /// Runs a command on the cluster and reads its answer.
    fn call<C: RemoteCommand>(
        &self,
        command: &C,
    ) -> impl Future<Output = Result<C::Output, LinkError>> + Send;

    /// The same for a poll without which the data would become stale.
    fn call_late<C: RemoteCommand>(
        &self,
        command: &C,
    ) -> impl Future<Output = Result<C::Output, LinkError>> + Send {
        self.call(command)
    }

    /// Why no command would be sent at this moment, if that is certain without a try.
    fn out_of_reach(&self) -> Option<LinkError> {
        None
    }

    /// What is left of the cluster's RPC budget; none without a budget.
    fn meter(&self) -> impl Future<Output = Result<Option<Meter>, StoreError>> + Send {
        std::future::ready(Ok(None))
    }
}

/// What is left of an RPC budget.
#[derive(Debug, Clone, Copy)]
pub struct Meter {
    pub(crate) budget: RpcBudget,
    pub(crate) tokens: RpcTokens,
    pub(crate) now: Timestamp,
}

impl Meter {
    /// How many requests may be made now.
    pub(crate) fn allows(&self, urgency: Urgency) -> u32 {
        self.budget.allows(self.tokens, urgency)
    }

    /// The wait until so many requests may be made.
    pub(crate) fn wait(&self, rpcs: u32, urgency: Urgency) -> Duration {
        self.budget.pay(self.tokens, rpcs, urgency, self.now).err().unwrap_or_default()
    }
}
