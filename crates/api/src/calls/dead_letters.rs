//! `GET /webhooks/dead-letters`: what webhooks were not told, and why.

use axum::{
    Json,
    extract::State,
    http::{Uri, header},
    response::{IntoResponse, Response},
};
use utoipa::IntoParams;

use crate::{
    auth::Caller,
    http::extract::{FromQuery, Parameters, Query},
    ports::link,
    problem::{Problem, problems},
    state::App,
    view::{DeadLetterListView, DeadLetterView},
};

problems!(Problems = SECURED);

const DEFAULT_LIMIT: u32 = 50;
const MOST: u32 = 200;

/// Which of them.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Range {
    /// Only those below this place: the `next_before` of the answer before.
    #[param(value_type = Option<u64>, minimum = 1)]
    before: Option<u64>,
    /// At most so many.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 200, default = 50)]
    limit: u32,
}

impl FromQuery for Range {
    const KNOWN: &'static [&'static str] = &["before", "limit"];

    fn from_query(parameters: &Parameters) -> Result<Self, Problem> {
        let limit = parameters.number("limit", 1, u64::from(MOST))?;
        Ok(Self {
            before: parameters.number("before", 1, i64::MAX.unsigned_abs())?,
            limit: limit.and_then(|limit| u32::try_from(limit).ok()).unwrap_or(DEFAULT_LIMIT),
        })
    }
}

/// List messages to webhooks that were given up
///
/// Of the caller's jobs, newest first; with scope `admin`, of everybody's. `POST /jobs/{id}/webhook/redeliver` sends those of a job
/// again.
#[utoipa::path(
    get,
    path = "/webhooks/dead-letters",
    tag = "jobs",
    operation_id = "list_dead_letters",
    params(Range),
    security(("bearer" = ["read"])),
    responses(
        (status = 200, description = "A page of them.", body = DeadLetterListView,
            headers(("Link" = String, description = "The next page (`rel=\"next\"`), when this one is full."))),
        Problems
    )
)]
pub(crate) async fn list_dead_letters(
    State(app): State<App>,
    caller: Caller,
    Query(range): Query<Range>,
    uri: Uri,
) -> Result<Response, Problem> {
    let letters = app.store.dead_letters(&caller.viewer(), range.before, range.limit).await?;
    let is_full = letters.len() >= usize::try_from(range.limit).unwrap_or(usize::MAX);
    let next_before = letters.last().filter(|_| is_full).map(|letter| letter.id);
    let link = next_before.and_then(|before| link::next(&uri, "before", &before.to_string()));
    let dead_letters = letters.into_iter().map(DeadLetterView::from).collect();
    let mut response = Json(DeadLetterListView { dead_letters, next_before }).into_response();
    if let Some(link) = link {
        response.headers_mut().insert(header::LINK, link);
    }
    Ok(response)
}
