//! Log in with a token, and log out. `by_issuer` gets a token from an issuer.

use axum::{
    extract::{OriginalUri, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{Html, IntoResponse, Redirect, Response},
};
use maud::{Markup, html};
use secrecy::{ExposeSecret, SecretString};

use super::visit::Fields;
use crate::{
    ROOT,
    client::{Api, Failure, ME, Query},
    layout::{Section, Shell, live},
    model::{Text, Who},
    session::{self, Session},
    state::{Console, LogIn},
};

/// The page to log in.
pub(crate) async fn ask(State(console): State<Console>, OriginalUri(uri): OriginalUri) -> Response {
    let query = Query::parse(uri.query().unwrap_or_default());
    if console.login == LogIn::Nothing {
        return Redirect::to(&next(&query)).into_response();
    }
    form(&console, &query, None)
}

/// Begins a session if the API takes the token.
pub(crate) async fn begin(
    State(console): State<Console>,
    OriginalUri(uri): OriginalUri,
    headers: HeaderMap,
    Fields(fields): Fields,
) -> Result<Response, Failure> {
    let query = Query::parse(uri.query().unwrap_or_default());
    let token = SecretString::from(fields.one("token").unwrap_or_default().trim());
    if token.expose_secret().is_empty() {
        return Ok(form(&console, &query, Some(&Why::refused("Enter a token."))));
    }
    match session_of(&console, token, false, &headers).await {
        Ok(cookie) => Ok(([(header::SET_COOKIE, cookie)], Redirect::to(&next(&query))).into_response()),
        Err(NoSession::Refused(failure)) if may_be_the_token(&failure) => {
            Ok(form(&console, &query, Some(&Why::refused(failure.detail.raw()))))
        }
        Err(NoSession::Refused(failure)) => Err(failure),
        Err(NoSession::TooLong) => {
            let why = Why::refused("The token is longer than a cookie can hold: about 2,800 bytes.");
            Ok(form(&console, &query, Some(&why)))
        }
    }
}

fn may_be_the_token(failure: &Failure) -> bool {
    matches!(failure.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
}

/// Why a token begins no session.
pub(super) enum NoSession {
    Refused(Failure),
    TooLong,
}

/// The cookie of a session with this token, if the API takes it.
pub(super) async fn session_of(
    console: &Console,
    token: SecretString,
    is_of_issuer: bool,
    headers: &HeaderMap,
) -> Result<HeaderValue, NoSession> {
    let api = Api::new(console.api.clone(), Some(token.clone()), headers);
    let caller = api.get(&ME, &[], &Query::new()).await.map_err(NoSession::Refused)?;
    let who = Who { owner: caller.owner, scopes: caller.scopes };
    let session = Session { token, who, is_of_issuer, begun: (console.now)() };
    session::issued(&console.sealer, &session, console.is_https(headers)).ok_or(NoSession::TooLong)
}

/// Ends the session. The token itself stays valid, and so does the visitor's log-in at the issuer.
pub(crate) async fn end(State(console): State<Console>, headers: HeaderMap) -> Response {
    let mut response = Redirect::to(&format!("{ROOT}/login")).into_response();
    if let Some(cookie) = session::expired(console.is_https(&headers)) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
}

/// Where to go after the log-in: only to pages of ours.
pub(super) fn next(query: &Query) -> String {
    let is_ours = |to: &&str| {
        let rest = to.strip_prefix(ROOT);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?']))
            && to.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\')
    };
    query.one("next").filter(is_ours).unwrap_or(ROOT).to_owned()
}

/// Why there is no session yet.
pub(super) struct Why {
    pub(super) status: StatusCode,
    pub(super) text: Markup,
}

impl Why {
    pub(super) fn refused(text: &str) -> Self {
        Self { status: StatusCode::UNAUTHORIZED, text: html! { (text) } }
    }
}

/// The page to log in, with the reason if the visitor has tried.
pub(super) fn form(console: &Console, query: &Query, why: Option<&Why>) -> Response {
    let next = query.only(&["next"]);
    let content = html! {
        form.log-in method="post" action=(next.after(&format!("{ROOT}/login"))) {
            h1 { "Log in" }
            @if let Some(why) = why {
                p.problem #why role="alert" { (why.text) }
            }
            @if let Some(issuer) = &console.issuer {
                // A link: `form-action` of the policy would also hold for the addresses to which the answer of a form leads, and
                // the issuer may lead on to others.
                a.button.main href=(next.after(&format!("{ROOT}/login/start"))) {
                    "Log in with " (Text::from(issuer.name()).plain())
                }
                p.or { "or with a token" }
            }
            label for="token" { "Token" }
            input #token type="password" name="token" required autofocus[console.issuer.is_none()]
                autocomplete="current-password" spellcheck="false" aria-describedby=[why.map(|_| "why")];
            button.main[console.issuer.is_none()] { "Log in" }
            p.hint {
                "You see what this token may see, and can do what it may do. An administrator creates one with "
                code { "tao-slurm token create --owner NAME --scope read,write" } "."
            }
        }
    };
    let shell =
        Shell { title: "Log in", section: Section::None, wakes: None, now: (console.now)(), visitor: None };
    let status = why.map_or(StatusCode::OK, |why| why.status);
    (status, Html(shell.around(&live(&content)).into_string())).into_response()
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test_case("/ui/jobs?status=Error" => "/ui/jobs?status=Error"; "a page")]
    #[test_case("//evil.example/ui" => "/ui"; "another host")]
    #[test_case("https://evil.example/" => "/ui"; "an address")]
    #[test_case("/jobs" => "/ui"; "the API")]
    #[test_case("/ui.evil" => "/ui"; "a path that begins alike")]
    #[test_case("/ui/\\evil" => "/ui"; "a backslash")]
    #[test_case("/ui/\r\nx" => "/ui"; "a line")]
    #[test_case("" => "/ui"; "nothing")]
    fn a_log_in_leads_only_to_pages(to: &str) -> String {
        next(&Query::new().with("next", to))
    }
}
