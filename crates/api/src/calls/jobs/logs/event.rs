//! The events of a followed log.

use axum::response::sse::Event;
use base64::{Engine, engine::general_purpose::STANDARD};
use domain::{AttemptNo, JobId, LogContinuity, LogFile};
use serde::Serialize;
use utoipa::ToSchema;

use super::{cursor::Cursor, pieces::Piece};

/// The data of one event of a followed log. The event's name, which is also its `kind`, selects the variant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum LogEvent {
    Log(LogPiece),
    Reset(LogReset),
    Attempt(NextAttempt),
    Remark(LogNotice),
    End(LogEnd),
}

/// `log`: the next bytes of a log, as `text`, or as base64 in `bytes` if they are not valid UTF-8.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct LogPiece {
    /// The event's name.
    kind: &'static str,
    attempt: u32,
    /// The log, such as `main.out` or `policy/0.err`.
    file: String,
    /// The offset of the first byte.
    offset: u64,
    /// The offset of the next event's first byte.
    next_offset: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// Base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<String>,
}

/// `reset`: the log was truncated or replaced. The following bytes begin at offset 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct LogReset {
    /// The event's name.
    kind: &'static str,
    attempt: u32,
    file: String,
    /// `truncated` or `replaced`.
    reason: &'static str,
}

/// `attempt`: the attempt is over and its log was read to the end; the log of the next attempt follows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct NextAttempt {
    /// The event's name.
    kind: &'static str,
    attempt: u32,
    previous: u32,
    /// The Slurm id of the new attempt; null while it has none.
    slurm_job_id: Option<String>,
}

/// `waiting`: the log does not exist yet. `stale`: the cluster does not answer and is asked again. `live`: it answers again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct LogNotice {
    /// The event's name.
    kind: &'static str,
    detail: String,
}

/// `end`: the job has finished, and its log was read to the end. No event follows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct LogEnd {
    /// The event's name.
    kind: &'static str,
    /// The last attempt; null if the job had none.
    attempt: Option<u32>,
    /// The job's final status; null if the job was deleted.
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
            kind: "log",
            attempt: attempt.get(),
            file: file.to_string(),
            offset,
            next_offset: offset.saturating_add(length),
            text,
            bytes,
        })
    }

    /// None if the log goes on.
    pub(super) fn reset(attempt: AttemptNo, file: &LogFile, sight: LogContinuity) -> Option<Self> {
        let reason = match sight {
            LogContinuity::Replaced => "replaced",
            LogContinuity::Truncated => "truncated",
            LogContinuity::Continues | LogContinuity::Doubtful => return None,
        };
        Some(Self::Reset(LogReset { kind: "reset", attempt: attempt.get(), file: file.to_string(), reason }))
    }

    pub(super) fn next_attempt(previous: AttemptNo, next: &domain::AttemptPlace) -> Self {
        Self::Attempt(NextAttempt {
            kind: "attempt",
            attempt: next.no.get(),
            previous: previous.get(),
            slurm_job_id: next.slurm_id.map(|id| id.to_string()),
        })
    }

    pub(super) fn waiting(detail: String) -> Self {
        Self::Remark(LogNotice { kind: "waiting", detail })
    }

    pub(super) fn stale(detail: &str) -> Self {
        let detail = format!("The log cannot be read now; the service tries again: {detail}");
        Self::Remark(LogNotice { kind: "stale", detail })
    }

    pub(super) fn live() -> Self {
        Self::Remark(LogNotice { kind: "live", detail: "The log is readable again.".to_owned() })
    }

    pub(super) fn end(
        attempt: Option<AttemptNo>,
        status: Option<domain::Status>,
        detail: impl Into<String>,
    ) -> Self {
        Self::End(LogEnd { kind: "end", attempt: attempt.map(AttemptNo::get), status, detail: detail.into() })
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Log(piece) => piece.kind,
            Self::Reset(reset) => reset.kind,
            Self::Attempt(next) => next.kind,
            Self::Remark(remark) => remark.kind,
            Self::End(end) => end.kind,
        }
    }

    /// The event with `cursor`, the position after it, as its id.
    pub(super) fn to_sse(&self, job: JobId, cursor: Option<&Cursor>) -> Event {
        let data = serde_json::to_string(self).unwrap_or_else(|error| {
            tracing::error!(%error, job.id = %job, "cannot write a log event as JSON");
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
            serde_json::json!({"kind": "log", "attempt": 1, "file": "main.out", "offset": 5, "next_offset": 7, "bytes": "/wA="})
        );
        assert_eq!(
            event(Piece::Text("✓\n")),
            serde_json::json!({"kind": "log", "attempt": 1, "file": "main.out", "offset": 5, "next_offset": 9, "text": "✓\n"})
        );
    }
}
