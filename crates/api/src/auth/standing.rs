//! Until when a caller is who he was, for answers that go on and on.

use std::{future::pending, time::Duration};

use domain::Timestamp;
use persistence::StoreError;
use tokio::time::{Instant, sleep};

use super::jwt;
use crate::{problem::Problem, state::App};

/// For so long a database that does not answer leaves those who stream what they are. What they are told comes from it
/// as well, but for logs.
const UNHEARD: Duration = Duration::from_mins(1);

/// What a caller's right hangs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Nothing: everybody has it.
    Always,
    /// The token with this digest.
    Token([u8; 32]),
    /// The time.
    Until(Timestamp),
}

impl Standing {
    /// Ends when the right has, with what a request that comes then is refused with: within the time for which a token is remembered: half of it for the age of what is
    /// remembered, half for looking.
    pub(crate) async fn lost(self, app: App) -> Problem {
        if self == Self::Always {
            return pending().await;
        }
        let every = app.limits.token_memory / 2;
        let mut heard = Instant::now();
        loop {
            sleep(every).await;
            match self.is_good(&app, every).await {
                Ok(true) => heard = Instant::now(),
                Ok(false) => return self.refusal(),
                Err(error) if heard.elapsed() > UNHEARD => {
                    tracing::warn!(%error, "nobody can say whether a token is good; its streams end");
                    return Problem::from(&error);
                }
                Err(_) => {}
            }
        }
    }

    /// Why a token that was good is not any more.
    fn refusal(self) -> Problem {
        match self {
            Self::Until(_) => jwt::expired(),
            Self::Always | Self::Token(_) => super::no_token_of_ours(),
        }
    }

    async fn is_good(self, app: &App, at_most: Duration) -> Result<bool, StoreError> {
        let now = app.clock.now();
        let hash = match self {
            Self::Always => return Ok(true),
            Self::Until(end) => return Ok(now < end),
            Self::Token(hash) => hash,
        };
        if let Some(token) = app.tokens().fresh(&hash, at_most) {
            return Ok(token.is_good(now));
        }
        // Beside the stream: one whose client does not read is not driven, and would keep a connection, and those waiting.
        let asking = app.clone();
        let asked = async move { asking.tokens().find_anew(&asking.store, &hash, now, at_most).await };
        match app.errands.spawn(asked).await {
            Ok(found) => Ok(found?.is_some_and(|token| token.is_good(now))),
            Err(error) => {
                tracing::error!(%error, "the look at a stream's token panicked");
                Ok(false)
            }
        }
    }
}
