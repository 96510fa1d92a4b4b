//! One request for a page: who visits, and what the page shows.

use axum::{
    extract::{Form, FromRequest, FromRequestParts, OriginalUri, Path, Request},
    http::{HeaderMap, StatusCode, request::Parts},
};
use uuid::Uuid;

use crate::{
    client::{Api, Failure, Query},
    model::{Moment, Who},
    session::{self, Session},
    state::{Console, LogIn},
};

/// How much of a page the browser needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wants {
    /// The whole page.
    Page,
    /// Only the part that changes by itself.
    Live,
    /// A piece that a script puts into the page.
    Piece,
}

impl Wants {
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let is = |name: &str, value: &[u8]| headers.get(name).is_some_and(|text| text.as_bytes() == value);
        if !is("hx-request", b"true") || is("hx-history-restore-request", b"true") {
            Self::Page
        } else if is("hx-target", b"live") {
            Self::Live
        } else {
            Self::Piece
        }
    }
}

/// A visitor's request.
#[derive(Debug)]
pub(crate) struct Visit {
    /// The API with the visitor's rights.
    pub(crate) api: Api,
    pub(crate) now: Moment,
    /// With `/ui`, without the query.
    pub(crate) path: String,
    pub(crate) query: Query,
    pub(crate) wants: Wants,
    pub(crate) who: Who,
    pub(crate) login: LogIn,
}

impl FromRequestParts<Console> for Visit {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, console: &Console) -> Result<Self, Failure> {
        let now = (console.now)();
        let (token, who) = match console.login {
            LogIn::Nothing => (None, Who::anyone()),
            LogIn::Token => {
                let session = session::presented(&console.sealer, &parts.headers, now);
                let Session { token, who, .. } = session.ok_or_else(Failure::not_logged_in)?;
                (Some(token), who)
            }
        };
        let uri = parts.extensions.get::<OriginalUri>().map_or(&parts.uri, |OriginalUri(uri)| uri);
        Ok(Self {
            api: Api::new(console.api.clone(), token, &parts.headers),
            now,
            path: uri.path().to_owned(),
            query: Query::parse(uri.query().unwrap_or_default()),
            wants: Wants::of(&parts.headers),
            who,
            login: console.login,
        })
    }
}

/// The id in a page's path, of a job, a pipeline or a token. What is no id is the id of nothing.
#[derive(Debug)]
pub(crate) struct IdPath(pub(crate) String);

impl FromRequestParts<Console> for IdPath {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &Console) -> Result<Self, Failure> {
        let Path(ids) = Path::<Vec<(String, String)>>::from_request_parts(parts, &())
            .await
            .map_err(|_| Failure::no_page())?;
        let id = ids.iter().find(|(name, _)| name == "id").and_then(|(_, id)| id.parse::<Uuid>().ok());
        id.map(|id| Self(id.to_string())).ok_or_else(Failure::no_page)
    }
}

/// The fields of a form, in their order.
#[derive(Debug)]
pub(crate) struct Fields(pub(crate) Query);

impl FromRequest<Console> for Fields {
    type Rejection = Failure;

    async fn from_request(request: Request, _: &Console) -> Result<Self, Failure> {
        let form = Form::<Vec<(String, String)>>::from_request(request, &()).await;
        let Form(pairs) = form.map_err(|rejection| match rejection.status() {
            StatusCode::PAYLOAD_TOO_LARGE => Failure::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "Too large",
                "The form is too large. Send the job by the API.",
            ),
            status => Failure::new(status, "Unreadable form", "The form cannot be read."),
        })?;
        Ok(Self(pairs.into_iter().fold(Query::new(), |fields, (name, value)| fields.with(&name, value))))
    }
}
