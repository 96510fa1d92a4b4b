//! The web console: pages for people, made from what the API answers.
//!
//! A page is a client of the API (ADR 31). `client` sends the API's router requests in memory with the visitor's own token, `model` reads the
//! few fields that pages show, `pages` renders them, and `frame` is what all pages share: sessions, headers, problems. This
//! crate depends on none of ours, so it cannot show what the API does not offer.

mod assets;
mod client;
mod frame;
mod issuer;
mod layout;
mod logtext;
mod model;
mod pages;
mod session;
mod state;

use axum::{
    Router,
    extract::Request,
    http::{HeaderMap, Method, header},
    middleware::{Next, from_fn},
    response::{IntoResponse, Redirect, Response},
};

pub use issuer::{Begun, Issuer, IssuerFault, Pending, Returned};
pub use session::SessionKey;
pub use state::{LogIn, Now, Settings};

/// Where the pages are.
pub(crate) const ROOT: &str = "/ui";

/// The address to which an issuer sends visitors back.
pub const CALLBACK: &str = "/ui/login/callback";

/// The method and the path of each page and of each thing that pages do, such as `GET /ui/jobs/{id}`. Tests of all pages use it.
pub fn addresses() -> impl Iterator<Item = (Method, String)> {
    pages::addresses()
}

/// Puts the pages before the API: below `/ui`, and at `/` for browsers. All other requests reach the API unchanged.
pub fn mount(api: Router, settings: Settings) -> Router {
    let pages = pages::routes(state::Console::new(api.clone(), settings));
    Router::new().nest(ROOT, pages).fallback_service(api).layer(from_fn(welcomed))
}

/// Browsers that know only the address get the pages, programs the API's own answer.
async fn welcomed(request: Request, next: Next) -> Response {
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    if is_read && request.uri().path() == "/" && is_browser(request.headers()) {
        return ([(header::VARY, "accept")], Redirect::to(ROOT)).into_response();
    }
    next.run(request).await
}

fn is_browser(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).into_iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|range| range.trim_start().starts_with("text/html"))
}

#[cfg(test)]
mod tests;
