//! Log in with a token, and log out.

use axum::{
    extract::{OriginalUri, State},
    http::{HeaderMap, StatusCode, header},
    response::{Html, IntoResponse, Redirect, Response},
};
use maud::html;
use secrecy::{ExposeSecret, SecretString};

use super::visit::Fields;
use crate::{
    ROOT,
    client::{Api, Failure, ME, Query},
    layout::{Section, Shell, live},
    model::Who,
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
    let again = |why: &str| Ok(form(&console, &query, Some(why)));
    if token.expose_secret().is_empty() {
        return again("Enter a token.");
    }
    let api = Api::new(console.api.clone(), Some(token.clone()), &headers);
    let caller = match api.get(&ME, &[], &Query::new()).await {
        Ok(caller) => caller,
        Err(failure) if matches!(failure.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
            return again(failure.detail.raw());
        }
        Err(failure) => return Err(failure),
    };
    let session = Session { token, who: Who { owner: caller.owner, scopes: caller.scopes } };
    let Some(cookie) = session::issued(&console.sealer, &session, &headers, (console.now)()) else {
        return again("The token is longer than a cookie can hold: about 2,800 bytes.");
    };
    Ok(([(header::SET_COOKIE, cookie)], Redirect::to(&next(&query))).into_response())
}

/// Ends the session. The token itself stays valid.
pub(crate) async fn end(headers: HeaderMap) -> Response {
    let mut response = Redirect::to(&format!("{ROOT}/login")).into_response();
    if let Some(cookie) = session::expired(&headers) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
}

/// Where to go after the log-in: only to pages of ours.
fn next(query: &Query) -> String {
    let is_ours = |to: &&str| {
        let rest = to.strip_prefix(ROOT);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?']))
            && to.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\')
    };
    query.one("next").filter(is_ours).unwrap_or(ROOT).to_owned()
}

fn form(console: &Console, query: &Query, why: Option<&str>) -> Response {
    let status = if why.is_some() { StatusCode::UNAUTHORIZED } else { StatusCode::OK };
    let to = query.only(&["next"]).after(&format!("{ROOT}/login"));
    let content = html! {
        form.log-in method="post" action=(to) {
            h1 { "Log in" }
            @if let Some(why) = why {
                p.problem #why role="alert" { (why) }
            }
            label for="token" { "Token" }
            input #token type="password" name="token" required autofocus autocomplete="current-password"
                spellcheck="false" aria-describedby=[why.map(|_| "why")];
            button.main { "Log in" }
            p.hint {
                "You see what this token may see, and can do what it may do. An administrator creates one with "
                code { "tao-slurm token create --owner NAME --scope read,write" } "."
            }
        }
    };
    let shell =
        Shell { title: "Log in", section: Section::None, wakes: None, now: (console.now)(), visitor: None };
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
