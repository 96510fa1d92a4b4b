//! Turns everything that goes wrong into a page, a notice, or the way to log in.

use std::any::Any;

use axum::{
    extract::{OriginalUri, Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header},
    middleware::Next,
    response::{Html, IntoResponse, Redirect, Response},
};
use chrono::TimeDelta;
use maud::html;

use super::visit::Wants;
use crate::{
    ROOT,
    client::{Failure, Query},
    layout::{Section, Shell, Visitor, live, problem},
    model::Who,
    session,
    state::{Console, LogIn},
};

/// The shortest session that a log-in at the issuer follows without a question.
const SHORTEST: TimeDelta = TimeDelta::minutes(1);

impl IntoResponse for Failure {
    /// The status with the failure beside it, for [`explained`].
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

impl Failure {
    pub(crate) fn not_logged_in() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "Not logged in", "Log in to see this page.")
    }

    pub(super) fn of_other_site() -> Self {
        let detail = "The request came from a page of another site, so nothing was changed.";
        Self::new(StatusCode::FORBIDDEN, "Refused", detail)
    }

    pub(super) fn of_nowhere() -> Self {
        let detail = "The request has neither `Origin` nor `Sec-Fetch-Site`, so nothing was changed. A proxy must pass them on.";
        Self::new(StatusCode::FORBIDDEN, "Refused", detail)
    }
}

pub(super) fn panicked(panic: Box<dyn Any + Send + 'static>) -> Response {
    let text =
        panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    tracing::error!(panic = text.unwrap_or("(no text)"), "a page panicked");
    drop(panic);
    let detail = "The page failed. The log of the service has the reason.";
    Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "Internal error", detail).into_response()
}

/// What decides how a failure is shown.
struct Asked {
    wants: Wants,
    is_stream: bool,
    is_read: bool,
    /// The first request after a click on another site: the browser keeps strict cookies back, though the visitor may have one.
    is_from_elsewhere: bool,
    address: String,
}

impl Asked {
    fn of(request: &Request) -> Self {
        let headers = request.headers();
        let is = |name: &str, value: &str| {
            headers.get(name).is_some_and(|text| text.as_bytes() == value.as_bytes())
        };
        let uri = request.extensions().get::<OriginalUri>().map_or(request.uri(), |OriginalUri(uri)| uri);
        Self {
            wants: Wants::of(headers),
            is_stream: is("accept", "text/event-stream"),
            is_read: matches!(*request.method(), Method::GET | Method::HEAD),
            is_from_elsewhere: is("sec-fetch-site", "cross-site") && is("sec-fetch-mode", "navigate"),
            address: uri.path_and_query().map_or_else(|| ROOT.to_owned(), ToString::to_string),
        }
    }
}

pub(super) async fn explained(State(console): State<Console>, request: Request, next: Next) -> Response {
    let asked = Asked::of(&request);
    let headers = request.headers().clone();
    let mut response = next.run(request).await;
    let status = response.status();
    let known = response.extensions_mut().remove::<Failure>();
    let failure = match known {
        Some(failure) => failure,
        None if status.is_success()
            || status.is_redirection()
            || response.headers().contains_key(header::CONTENT_TYPE) =>
        {
            return response;
        }
        None => foreign(status),
    };
    if failure.status == StatusCode::UNAUTHORIZED {
        return to_log_in(&asked, &headers, &console);
    }
    let visitor = match console.login {
        LogIn::Nothing => Some(Who::anyone()),
        LogIn::Token => {
            session::presented(&console.sealer, &headers, (console.now)()).map(|session| session.who)
        }
    };
    shown(&failure, &asked, &console, visitor.as_ref())
}

/// A refusal of the layers.
fn foreign(status: StatusCode) -> Failure {
    match status {
        StatusCode::NOT_FOUND => Failure::no_page(),
        StatusCode::METHOD_NOT_ALLOWED => {
            Failure::new(status, "Not possible", "This address does not take such a request.")
        }
        StatusCode::GATEWAY_TIMEOUT => Failure::new(
            status,
            "Too slow",
            "The service did not answer in time. A change may still take effect; look before you repeat it.",
        ),
        status => Failure::new(status, "Refused", format!("The request was refused: {status}.")),
    }
}

/// The page to log in; or the issuer at once, if the token came from there. The issuer's own session then makes another without a
/// question. A log-in is never followed by another within a minute, so a token that is refused at once leads in no circle.
fn log_in(headers: &HeaderMap, console: &Console) -> String {
    let now = (console.now)();
    let is_renewed = console.issuer.is_some()
        && session::presented(&console.sealer, headers, now)
            .is_some_and(|session| session.is_of_issuer && now - session.begun >= SHORTEST);
    format!("{ROOT}/login{}", if is_renewed { "/start" } else { "" })
}

fn to_log_in(asked: &Asked, headers: &HeaderMap, console: &Console) -> Response {
    if asked.is_stream {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let here =
        headers.get("hx-current-url").and_then(|url| url.to_str().ok()).and_then(path_of).map(str::to_owned);
    let back = match asked.wants {
        Wants::Page if asked.is_read => Some(asked.address.clone()),
        Wants::Page => None,
        Wants::Live | Wants::Piece => here,
    };
    let to = Query::new().with_if("next", back).after(&log_in(headers, console));
    let mut response = match asked.wants {
        Wants::Page if asked.is_from_elsewhere && !headers.contains_key(header::COOKIE) => {
            let again =
                html! { (maud::DOCTYPE) meta http-equiv="refresh" content="0"; title { "tao-slurm" } };
            return Html(again.into_string()).into_response();
        }
        Wants::Page => Redirect::to(&to).into_response(),
        Wants::Live | Wants::Piece => {
            let mut response = StatusCode::UNAUTHORIZED.into_response();
            if let Ok(to) = HeaderValue::from_str(&to) {
                response.headers_mut().insert(HeaderName::from_static("hx-redirect"), to);
            }
            response
        }
    };
    if let Some(cookie) = session::expired(console.is_https(headers)) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
}

/// The path and query of an address.
fn path_of(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    rest.find('/').map(|start| &rest[start..])
}

fn shown(failure: &Failure, asked: &Asked, console: &Console, visitor: Option<&Who>) -> Response {
    let what = problem(failure);
    if asked.is_stream {
        return failure.status.into_response();
    }
    if asked.wants == Wants::Page {
        let shell = Shell {
            title: &failure.title.plain(),
            section: Section::None,
            wakes: None,
            now: (console.now)(),
            visitor: visitor.map(|who| Visitor { who, login: console.login }),
        };
        let page = shell.around(&live(&what));
        return (failure.status, Html(page.into_string())).into_response();
    }
    let place = [
        (HeaderName::from_static("hx-retarget"), HeaderValue::from_static("#notice")),
        (HeaderName::from_static("hx-reswap"), HeaderValue::from_static("innerHTML")),
    ];
    (failure.status, place, Html(what.into_string())).into_response()
}
