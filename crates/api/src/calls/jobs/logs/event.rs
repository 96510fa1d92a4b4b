//! What a follower is told, and how it stands in the stream.

use axum::response::sse::Event;
use base64::{Engine, engine::general_purpose::STANDARD};
use domain::{AttemptNo, JobId, LogContinuity, LogFile};
use serde::Serialize;
use utoipa::ToSchema;

use super::{cursor::Cursor, pieces::Piece};

/// The data of one event of a followed log. The event's own name says which of them it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum LogEvent {
    /// `log`: the next bytes of a log.
    Log(LogPiece),
    /// `reset`: the log was emptied, or another file has its name. What follows begins at its byte 0.
    Reset(LogReset),
    /// `attempt`: the attempt is over and read to its end; what follows is of the next one.
    Attempt(NextAttempt),
    /// `waiting`, `stale` (the cluster does not answer; it is asked again and again), `live` (it answers again).
    Remark(LogRemark),
    /// `end`: the job has ended, and everything was read. Nothing follows.
    End(LogEnd),
}

/// The next bytes of a log: as `text`, or in base64 as `bytes` when they are no UTF-8.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct LogPiece {
    attempt: u32,
    /// Which log, such as `main.out` or `policy/0.err`.
    file: String,
    /// Where the bytes stand in it.
    offset: u64,
    /// Where the next ones will.
    next_offset: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// Base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<String>,
}

/// A log that begins anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct LogReset {
    attempt: u32,
    file: String,
    /// `truncated` or `replaced`.
    reason: &'static str,
}

/// The job was sent to Slurm once more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct NextAttempt {
    attempt: u32,
    previous: u32,
    /// The Slurm id of the new attempt; null as long as it has none.
    slurm_job_id: Option<String>,
}

/// A sentence for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct LogRemark {
    #[serde(skip)]
    name: &'static str,
    detail: String,
}

/// The end of the stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct LogEnd {
    /// The last attempt; null when the job never had one.
    attempt: Option<u32>,
    /// How the job ended; null when it was deleted.
    status: Option<domain::Status>,
    detail: String,
}

impl LogEvent {
    pub(super) fn piece(attempt: AttemptNo, file: &LogFile, offset: u64, piece: Piece<'_>) -> Self {
        let (text, bytes) = match piece {
            Piece::Text(text) => (Some(text.to_owned()), None),
            Piece::Bytes(bytes) => (None, Some(STANDARD.encode(bytes))),
        };
        let length = u64::try_from(piece.len()).unwrap_or(u64::MAX);
        Self::Log(LogPiece {
            attempt: attempt.get(),
            file: file.to_string(),
            offset,
            next_offset: offset.saturating_add(length),
            text,
            bytes,
        })
    }

    /// None for a sight that begins nothing anew.
    pub(super) fn reset(attempt: AttemptNo, file: &LogFile, sight: LogContinuity) -> Option<Self> {
        let reason = match sight {
            LogContinuity::Replaced => "replaced",
            LogContinuity::Truncated => "truncated",
            LogContinuity::Continues | LogContinuity::Doubtful => return None,
        };
        Some(Self::Reset(LogReset { attempt: attempt.get(), file: file.to_string(), reason }))
    }

    pub(super) fn next_attempt(previous: AttemptNo, next: &domain::AttemptPlace) -> Self {
        Self::Attempt(NextAttempt {
            attempt: next.no.get(),
            previous: previous.get(),
            slurm_job_id: next.slurm_id.map(|id| id.to_string()),
        })
    }

    pub(super) fn waiting(detail: String) -> Self {
        Self::Remark(LogRemark { name: "waiting", detail })
    }

    pub(super) fn stale(detail: &str) -> Self {
        let detail = format!("The log cannot be read now, and is tried again: {detail}");
        Self::Remark(LogRemark { name: "stale", detail })
    }

    pub(super) fn live() -> Self {
        Self::Remark(LogRemark { name: "live", detail: "The log is read again.".to_owned() })
    }

    pub(super) fn end(
        attempt: Option<AttemptNo>,
        status: Option<domain::Status>,
        detail: impl Into<String>,
    ) -> Self {
        Self::End(LogEnd { attempt: attempt.map(AttemptNo::get), status, detail: detail.into() })
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Log(_) => "log",
            Self::Reset(_) => "reset",
            Self::Attempt(_) => "attempt",
            Self::Remark(remark) => remark.name,
            Self::End(_) => "end",
        }
    }

    /// As it stands in the stream; `cursor` is the place after it.
    pub(super) fn to_sse(&self, job: JobId, cursor: Option<&Cursor>) -> Event {
        let data = serde_json::to_string(self).unwrap_or_else(|error| {
            tracing::error!(%error, job.id = %job, "an event of a log is no JSON");
            "{}".to_owned()
        });
        let event = Event::default().event(self.name()).data(data);
        match cursor {
            Some(cursor) => event.id(cursor.to_string()),
            None => event,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_text_come_in_base64() {
        let file = "main.out".parse().unwrap();
        let event = |piece| serde_json::to_value(LogEvent::piece(AttemptNo::FIRST, &file, 5, piece)).unwrap();
        assert_eq!(
            event(Piece::Bytes(b"\xff\0")),
            serde_json::json!({"attempt": 1, "file": "main.out", "offset": 5, "next_offset": 7, "bytes": "/wA="})
        );
        assert_eq!(
            event(Piece::Text("✓\n")),
            serde_json::json!({"attempt": 1, "file": "main.out", "offset": 5, "next_offset": 9, "text": "✓\n"})
        );
    }
}
