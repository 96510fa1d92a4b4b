//! A log as it is, byte for byte: a part of it, or all of it as a file.

use axum::{
    body::{Body, Bytes},
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};
use futures_util::stream;

use super::{choice::Choice, part::Part};
use crate::{
    client::{Api, Failure, Query},
    frame::{IdPath, Visit},
    pages::job,
};

/// What is read at a time.
const STEP: u64 = 4 * 1024 * 1024;

pub(crate) async fn file(visit: Visit, IdPath(id): IdPath) -> Result<Response, Failure> {
    let of_job = job::read(&visit, &id).await?;
    let log = Choice::of(&visit.query).for_job(&of_job).query();
    let number = |name: &str| visit.query.one(name).and_then(|text| text.parse::<u64>().ok());
    let (offset, limit) = (number("offset"), number("limit"));
    let first =
        Part::bytes(&visit.api, &id, &log, offset.unwrap_or(0), limit.unwrap_or(STEP).min(STEP)).await?;
    // The log of this attempt to its end of now: it may grow, and another attempt may begin.
    let end = if limit.is_some() { first.end() } else { first.size };
    let log = log.without("attempt").with_if("attempt", first.attempt);
    let name = format!("{id}-{}.log", log.one("stream").unwrap_or("out"));
    let shown = if offset.is_some() { "inline" } else { "attachment" };
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8")),
        (
            header::CONTENT_DISPOSITION,
            HeaderValue::from_str(&format!("{shown}; filename=\"{name}\""))
                .unwrap_or(HeaderValue::from_static("attachment")),
        ),
    ];
    Ok((headers, rest(visit.api.clone(), id, log, first, end)).into_response())
}

/// The first part, and then the others one by one as the browser takes them.
fn rest(api: Api, id: String, log: Query, first: Part, end: u64) -> Body {
    let parts = stream::unfold(Some(Ok::<_, Failure>(first)), move |part| {
        let (api, id, log) = (api.clone(), id.clone(), log.clone());
        async move {
            let part = part?;
            let next = match &part {
                Ok(part) if part.end() < end && !part.bytes.is_empty() => {
                    Some(Part::bytes(&api, &id, &log, part.end(), STEP.min(end - part.end())).await)
                }
                _ => None,
            };
            let bytes = part.map(|part| Bytes::from(part.bytes));
            Some((bytes.map_err(|failure| std::io::Error::other(failure.detail.plain())), next))
        }
    });
    Body::from_stream(parts)
}
