//! `GET /jobs/{id}/status`: the small one, asked for every few seconds by hundreds.

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};

use crate::{
    auth::Caller,
    extract::{JobInPath, NoParameters, Query},
    problem::{Problem, problems},
    state::App,
    view::StatusView,
};

problems!(Problems = SECURED, JobNotFound);

/// Read a job's status
///
/// Where a job stands, from the database: asking costs the cluster nothing. Send the answer's `ETag` back as
/// `If-None-Match` to learn cheaply that nothing has changed.
#[utoipa::path(
    get,
    path = "/jobs/{id}/status",
    tag = "jobs",
    operation_id = "get_job_status",
    params(
        ("id" = domain::JobId, Path, description = "The job's id."),
        ("If-None-Match" = Option<String>, Header, description = "The `ETag` of an earlier answer.")
    ),
    security(("bearer" = [])),
    responses(
        (status = 200, description = "The status.", body = StatusView,
            headers(("ETag" = String, description = "Changes when the status does."))),
        (status = 304, description = "Nothing has changed since the answer with this `ETag`."),
        Problems
    )
)]
pub(crate) async fn get_job_status(
    State(app): State<App>,
    caller: Caller,
    JobInPath(id): JobInPath,
    Query(NoParameters): Query<NoParameters>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let job = super::find(&app, &caller, id).await?;
    let status = super::status_of(&app, &job).await?;
    let etag = status.etag();
    let mut response = if knows(&headers, &etag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        Json(status).into_response()
    };
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    if let Ok(etag) = HeaderValue::from_str(&etag) {
        headers.insert(header::ETAG, etag);
    }
    Ok(response)
}

/// RFC 9110 §13.1.2: a list, or `*`; compared weakly.
fn knows(headers: &HeaderMap, etag: &str) -> bool {
    let values = headers.get_all(header::IF_NONE_MATCH).into_iter().filter_map(|value| value.to_str().ok());
    let mut tags = values.flat_map(|value| value.split(',')).map(str::trim);
    tags.any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_etag_is_found_in_a_list_and_behind_a_weak_mark() {
        let sent = |value: &'static str| {
            HeaderMap::from_iter([(header::IF_NONE_MATCH, HeaderValue::from_static(value))])
        };
        for known in [r#""1-0-0""#, r#"W/"1-0-0""#, r#""x", "1-0-0""#, "*"] {
            assert!(knows(&sent(known), r#""1-0-0""#), "{known}");
        }
        for other in [r#""1-0-1""#, "1-0-0", ""] {
            assert!(!knows(&sent(other), r#""1-0-0""#), "{other}");
        }
        assert!(!knows(&HeaderMap::new(), r#""1-0-0""#));
    }
}
