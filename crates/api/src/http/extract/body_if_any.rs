//! A JSON body that may be left out.

use axum::{
    body::HttpBody,
    extract::{FromRequest, Request},
};
use serde::de::DeserializeOwned;

use super::body::{Body, Sent};
use crate::{problem::Problem, state::App};

/// The body; none when the request has none at all.
#[derive(Debug)]
pub(crate) struct BodyIfAny<T>(pub(crate) Option<Sent<T>>);

impl<T: DeserializeOwned> FromRequest<App> for BodyIfAny<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        if request.body().is_end_stream() {
            return Ok(Self(None));
        }
        let Body(Sent { document, value }) = Body::<Option<T>>::from_request(request, app).await?;
        // Generated clients write `null` for a body that they leave out.
        Ok(Self(value.map(|value| Sent { document, value })))
    }
}
