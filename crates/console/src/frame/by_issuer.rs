//! Log in at the issuer of tokens: the authorization code flow with PKCE (RFC 6749 §4.1, RFC 7636, RFC 9700).

use axum::{
    extract::{OriginalUri, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{Html, IntoResponse, Redirect, Response},
};
use maud::{DOCTYPE, Render, html};
use secrecy::{ExposeSecret, SecretString};

use super::log_in::{NoSession, Why, form, next, session_of};
use crate::{
    ROOT, assets,
    client::{Failure, Query},
    issuer::{Issuer, IssuerFault, Returned},
    model::Text,
    session::LogInBegun,
    state::Console,
};

/// What a page shows of a text of the issuer, in characters.
const SHOWN: usize = 300;

/// Sends the visitor to the issuer. It is read, not posted: see the link to it.
pub(crate) async fn start(
    State(console): State<Console>,
    OriginalUri(uri): OriginalUri,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let issuer = console.issuer.clone().ok_or_else(Failure::no_page)?;
    let query = Query::parse(uri.query().unwrap_or_default());
    // A page of another site begins no log-in: many of them would end those that have begun.
    let from = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    if matches!(from, Some(b"cross-site" | b"same-site")) {
        return Ok(Redirect::to(&query.only(&["next"]).after(&format!("{ROOT}/login"))).into_response());
    }
    let begun = match issuer.begin().await {
        Ok(begun) => begun,
        Err(fault) => return Ok(form(&console, &query, Some(&of_fault(&fault)))),
    };
    let (https, now) = (console.is_https(&headers), (console.now)());
    let mut pending = LogInBegun { state: begun.state, verifier: begun.verifier, next: next(&query) };
    let cookie = pending.issued(&console.sealer, https, now).or_else(|| {
        // The address of the page does not fit into a cookie.
        ROOT.clone_into(&mut pending.next);
        pending.issued(&console.sealer, https, now)
    });
    let mut response = Redirect::to(&begun.address).into_response();
    for cookie in LogInBegun::left(&headers, https).into_iter().chain(cookie) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    Ok(response)
}

/// Begins the session of a visitor who returns from the issuer.
pub(crate) async fn finish(
    State(console): State<Console>,
    OriginalUri(uri): OriginalUri,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let issuer = console.issuer.clone().ok_or_else(Failure::no_page)?;
    let query = Query::parse(uri.query().unwrap_or_default());
    let state = once(&query, "state").unwrap_or_default().to_owned();
    let pending = LogInBegun::presented(&console.sealer, &headers, &state, (console.now)());
    let back = pending.as_ref().map_or_else(|| ROOT.to_owned(), |pending| pending.next.clone());
    let mut response = match begun_session(&console, &*issuer, &query, pending, &headers).await {
        Ok(cookie) => ([(header::SET_COOKIE, cookie)], onward(&back)).into_response(),
        Err(why) => form(&console, &Query::new().with("next", back), Some(&why)),
    };
    if let Some(cookie) = LogInBegun::expired(&state, console.is_https(&headers)) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    Ok(response)
}

async fn begun_session(
    console: &Console,
    issuer: &dyn Issuer,
    query: &Query,
    pending: Option<LogInBegun>,
    headers: &HeaderMap,
) -> Result<HeaderValue, Why> {
    let returned = returned(query, pending)?;
    let token = issuer.finish(returned).await.map_err(|fault| of_fault(&fault))?;
    let length = token.expose_secret().len();
    session_of(console, token, true, headers).await.map_err(|none| match none {
        NoSession::Refused(failure) => Why {
            status: failure.status,
            text: html! { "The issuer's token is not accepted. " (failure.detail) },
        },
        NoSession::TooLong => Why::refused(&format!(
            "The issuer's token has {length} bytes; a cookie holds about 2,800. The issuer must put fewer claims into it."
        )),
    })
}

/// What the visitor brings back, if this browser began the log-in.
fn returned(query: &Query, pending: Option<LogInBegun>) -> Result<Returned, Why> {
    // Before all else: other sites can send a visitor here with anything.
    let Some(LogInBegun { verifier, .. }) = pending else {
        return Err(Why::refused(
            "This log-in was used before, is older than 10 minutes, or did not begin in this browser. Log in again.",
        ));
    };
    if let Some(error) = query.one("error") {
        return Err(denied(error, query.one("error_description")));
    }
    let code =
        once(query, "code").ok_or_else(|| Why::refused("The issuer returned no code. Log in again."))?;
    Ok(Returned { code: SecretString::from(code), verifier, issuer: query.one("iss").map(str::to_owned) })
}

/// The value of a name that occurs once (RFC 6749 §3.1).
fn once<'a>(query: &'a Query, name: &str) -> Option<&'a str> {
    let mut values = query.all(name);
    values.next().filter(|value| !value.is_empty() && values.next().is_none())
}

/// The issuer's answer instead of a code.
fn denied(error: &str, description: Option<&str>) -> Why {
    let text = html! {
        @if error == "access_denied" { "The log-in was canceled, or the issuer does not let you in." }
        @else { "The issuer refused the log-in: " (shown(error)) "." }
        @if let Some(description) = description { " It says: " (shown(description)) }
    };
    Why { status: StatusCode::UNAUTHORIZED, text }
}

fn of_fault(fault: &IssuerFault) -> Why {
    let (status, text) = match fault {
        IssuerFault::Unreachable { address, reason } => (
            StatusCode::BAD_GATEWAY,
            html! {
                "The issuer cannot be reached now: " (shown(address)) ": " (shown(reason))
                ". Try again later, or log in with a token."
            },
        ),
        IssuerFault::Refused(error) => (
            StatusCode::UNAUTHORIZED,
            html! { "The issuer refused the code of the log-in: " (shown(error)) ". Log in again." },
        ),
        IssuerFault::OtherIssuer => (
            StatusCode::UNAUTHORIZED,
            html! { "The answer is not from the issuer where the log-in began. Log in again." },
        ),
        IssuerFault::NoToken(kind) => (
            StatusCode::BAD_GATEWAY,
            html! { "The issuer returned no " (kind) ". An administrator of the service must check " code { "auth.jwt.login" } "." },
        ),
    };
    Why { status, text }
}

/// A text that an issuer, or who pretends to be one, has chosen.
fn shown(text: &str) -> impl Render {
    let end = text.char_indices().nth(SHOWN).map_or(text.len(), |(end, _)| end);
    Text::from(&text[..end])
}

/// A page that goes on by itself. Browsers keep strict cookies back from a redirect that follows another site's, and send them with
/// what a page of ours asks for.
fn onward(to: &str) -> Html<String> {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="refresh" content={ "0;url=" (to) };
                title { "Logged in · tao-slurm" }
                link rel="icon" type="image/svg+xml" href=(assets::icon());
            }
            body { p { "You are logged in. " a href=(to) { "Go on" } } }
        }
    };
    Html(page.into_string())
}
