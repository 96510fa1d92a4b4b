//! How long the caller of a streamed answer stays authorized.

use std::{future::pending, time::Duration};

use domain::Timestamp;
use persistence::StoreError;
use tokio::time::{Instant, sleep};

use super::jwt;
use crate::{problem::Problem, state::App};

/// Streams continue this long while the database cannot confirm their token.
const UNCONFIRMED: Duration = Duration::from_mins(1);

/// What the caller's authorization depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Nothing: authentication is off.
    Always,
    /// The token with this hash.
    Token([u8; 32]),
    /// An expiry time.
    Until(Timestamp),
}

impl Standing {
    /// Returns when the authorization ends, with the problem that a new request would get. It reacts within
    /// `token_memory`: half for the age of a cached token, half for the interval between checks.
    pub(crate) async fn lost(self, app: App) -> Problem {
        if self == Self::Always {
            return pending().await;
        }
        let every = app.limits.token_memory / 2;
        let mut confirmed = Instant::now();
        loop {
            sleep(every).await;
            match self.is_good(&app, every).await {
                Ok(true) => confirmed = Instant::now(),
                Ok(false) => return self.refusal(),
                Err(error) if confirmed.elapsed() > UNCONFIRMED => {
                    tracing::warn!(%error, "cannot check a stream's token; its streams end");
                    return Problem::from(&error);
                }
                Err(_) => {}
            }
        }
    }

    /// Why the token is no longer valid.
    fn refusal(self) -> Problem {
        match self {
            Self::Until(_) => jwt::expired(),
            Self::Always | Self::Token(_) => no_token_of_ours(),
        }
    }

    async fn is_good(self, app: &App, at_most: Duration) -> Result<bool, StoreError> {
        let now = app.clock.now();
        let hash = match self {
            Self::Always => return Ok(true),
            Self::Until(end) => return Ok(now < end),
            Self::Token(hash) => hash,
        };
        if let Some(token) = app.tokens.fresh(&hash, at_most) {
            return Ok(token.is_good(now));
        }
        // In its own task: the stream of a client that does not read is not polled, and would hold the lock and a connection.
        let asking = app.clone();
        let look_up = async move {
            let _asking = asking.tokens.asking.lock().await;
            asking.tokens.find(&asking.store, &hash, now, at_most).await
        };
        match app.errands.spawn(look_up).await {
            Ok(found) => Ok(found?.is_some_and(|token| token.is_good(now))),
            Err(error) => {
                tracing::error!(%error, "the check of a stream's token panicked");
                Ok(false)
            }
        }
    }
}

pub(super) const BAD_TOKEN: &str = r#"Bearer realm="tao-slurm", error="invalid_token""#;

/// One text for unknown, expired and revoked tokens: the difference helps only an attacker.
pub(super) fn no_token_of_ours() -> Problem {
    Problem::unauthorized("The token is unknown, expired or revoked.", BAD_TOKEN)
}
