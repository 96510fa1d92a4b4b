//! Pages as answers.

use axum::{
    http::{HeaderName, HeaderValue, header},
    response::{Html, IntoResponse, Redirect, Response},
};
use maud::{Markup, html};

use super::visit::{Visit, Wants};
use crate::layout::{Section, Shell, Visitor, live, notice};

/// A page of a visitor.
pub(crate) struct Page {
    pub(crate) title: String,
    pub(crate) section: Section,
    /// The address of the stream that wakes the page; none for a page that stays as it is.
    pub(crate) wakes: Option<String>,
    /// The part that is renewed when the page is woken.
    pub(crate) live: Markup,
    /// The part below it, which stays as it is.
    pub(crate) fixed: Option<Markup>,
}

impl Page {
    /// The whole page, or only what the browser needs of it.
    pub(crate) fn answer(self, visit: &Visit) -> Response {
        let shell = Shell {
            title: &self.title,
            section: self.section,
            wakes: self.wakes.as_deref(),
            now: visit.now,
            visitor: Some(Visitor { who: &visit.who, login: visit.login }),
        };
        let html = match visit.wants {
            Wants::Page => {
                shell.around(&html! { (live(&self.live)) @if let Some(fixed) = self.fixed { (fixed) } })
            }
            Wants::Live | Wants::Piece => html! {
                title { (self.title) " · tao-slurm" }
                (live(&self.live))
            },
        };
        let varies = (header::VARY, HeaderValue::from_static("hx-request, hx-target"));
        ([varies], Html(html.into_string())).into_response()
    }
}

/// The answer to an action: a notice in the page, which then renews itself; without a script the page itself.
pub(crate) fn done(visit: &Visit, text: &str, back: &str) -> Response {
    if visit.wants == Wants::Page {
        return Redirect::to(back).into_response();
    }
    let renew = (HeaderName::from_static("hx-trigger"), HeaderValue::from_static("renew"));
    ([renew], Html(notice(text).into_string())).into_response()
}

/// The answer to an action after which the page has nothing more to show.
pub(crate) fn gone_to(visit: &Visit, to: &str) -> Response {
    if visit.wants == Wants::Page {
        return Redirect::to(to).into_response();
    }
    let Ok(to) = HeaderValue::from_str(to) else { return Redirect::to(crate::ROOT).into_response() };
    ([(HeaderName::from_static("hx-redirect"), to)], "").into_response()
}
