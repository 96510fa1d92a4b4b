//! `?wait=`: answers at a job's next change. One reader of the database serves all waiting callers.

use std::{pin::pin, sync::Arc};

use crate::{
    auth::Caller,
    http::{
        extract::{Patience, no_such_job},
        sse::Permit,
    },
    problem::Problem,
    state::App,
    watchers::feed::Newest,
};
use axum::{
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use domain::{Job, JobId, Phase};
use tokio::{
    select,
    time::{Instant, timeout_at},
};

/// Returns the job when it differs from what the client knows, or when the wait is over.
pub(super) async fn find(
    app: &App,
    caller: &Caller,
    id: JobId,
    patience: &Patience,
    headers: &HeaderMap,
) -> Result<Arc<Job>, Problem> {
    if patience.wait.is_zero() {
        return super::find(app, caller, id).await;
    }
    let _permit = Permit::to_watch(app, "wait")?;
    let until = Instant::now() + patience.wait;
    // Subscribe first: a change after the read is then not missed.
    let mut changes = app.feed.changes_of(id);
    let mut job = super::find(app, caller, id).await?;
    let mut known = known_versions(headers);
    if known.is_empty() {
        if job.phase == Phase::Ended {
            return Ok(job);
        }
        known.push((job.version, super::freshness(app, &job).await?.mark()));
    }
    // A caller that loses its authorization gets no answer.
    let mut lost = pin!(caller.standing.lost(app.clone()));
    while known.contains(&(job.version, super::freshness(app, &job).await?.mark())) {
        let woken = app.stop.run_until_cancelled(async {
            select! {
                woken = timeout_at(until, changes.changed()) => Ok(matches!(woken, Ok(Ok(())))),
                refused = &mut lost => Err(refused),
            }
        });
        if !woken.await.unwrap_or(Ok(false))? {
            break;
        }
        match &*changes.borrow_and_update() {
            Newest::Job(newer) if newer.version > job.version => job = Arc::clone(newer),
            Newest::Gone => return Err(no_such_job(id)),
            // Checked again all the same: time alone makes it stale.
            Newest::Job(_) | Newest::Unread => {}
        }
    }
    Ok(job)
}

/// The document, or 304 if the client has it.
pub(crate) fn tagged(headers: &HeaderMap, etag: &str, document: impl IntoResponse) -> Response {
    let answer = if knows(headers, etag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        document.into_response()
    };
    ([(header::CACHE_CONTROL, "private, no-cache"), (header::ETAG, etag)], answer).into_response()
}

/// Whether the client says what it knows.
pub(crate) fn names_a_tag(headers: &HeaderMap) -> bool {
    tags(headers).next().is_some()
}

/// RFC 9110 §13.1.2: a list, or `*`; compared weakly.
pub(crate) fn knows(headers: &HeaderMap, etag: &str) -> bool {
    tags(headers).any(|tag| tag == "*" || tag == etag)
}

/// The client's tags, without the prefix of weak ones.
fn tags(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let values = headers.get_all(header::IF_NONE_MATCH).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(|tag| tag.trim().trim_start_matches("W/"))
}

/// The versions of the job that the client knows, each with its mark; empty if it names none.
fn known_versions(headers: &HeaderMap) -> Vec<(i64, u8)> {
    tags(headers).filter_map(version_in).collect()
}

/// The version and the mark in one of our tags.
fn version_in(tag: &str) -> Option<(i64, u8)> {
    let (version, rest) = tag.strip_prefix('"')?.strip_suffix('"')?.split_once('-')?;
    let (_, mark) = rest.split_once('-')?;
    Some((version.parse().ok()?, mark.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn sent(value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(header::IF_NONE_MATCH, HeaderValue::from_static(value))])
    }

    #[test]
    fn an_etag_is_found_in_a_list_and_behind_a_weak_mark() {
        for known in [r#""1-0-0""#, r#"W/"1-0-0""#, r#""x", "1-0-0""#, "*"] {
            assert!(knows(&sent(known), r#""1-0-0""#), "{known}");
        }
        for other in [r#""1-0-1""#, "1-0-0", ""] {
            assert!(!knows(&sent(other), r#""1-0-0""#), "{other}");
        }
        assert!(!knows(&HeaderMap::new(), r#""1-0-0""#));
    }

    #[test]
    fn what_a_client_knows_is_the_version_and_whether_it_was_stale() {
        assert_eq!(known_versions(&sent(r#""x", W/"7-5f3-1""#)), vec![(7, 1)]);
        assert_eq!(known_versions(&sent(r#""7-0-0""#)), vec![(7, 0)]);
        for nothing in ["*", "", r#""7""#, r#""seven-0-0""#] {
            assert_eq!(known_versions(&sent(nothing)), [], "{nothing}");
        }
    }
}
