//! Who the visitor is, and for administrators the tokens of the service.

use axum::response::{Html, IntoResponse, Response};
use maud::{Markup, html};
use serde_json::{Map, Value};

use crate::{
    ROOT,
    client::{CREATE_TOKEN, Failure, LIST_TOKENS, ME, Query, REVOKE_TOKEN},
    frame::{Fields, IdPath, Page, Visit, Wants, done},
    layout::{Section, ago, badge, button_form, clock, copyable, facts, until},
    model::{Caller, Moment, NewToken, Text, TokenList},
};

const SCOPES: [&str; 3] = ["read", "write", "admin"];

fn path(rest: &str) -> String {
    format!("{ROOT}/access{rest}")
}

pub(crate) async fn show(visit: Visit) -> Result<Response, Failure> {
    let caller = visit.api.get(&ME, &[], &Query::new()).await?;
    let tokens = if visit.who.is_admin() {
        Some(visit.api.get(&LIST_TOKENS, &[], &Query::new()).await?)
    } else {
        None
    };
    let live = html! {
        h1 { "Access" }
        (you(visit.now, &caller))
        @if let Some(tokens) = &tokens { (table(visit.now, tokens)) }
    };
    let fixed = tokens.is_some().then(form);
    let page = Page { title: "Access".to_owned(), section: Section::Access, wakes: None, live, fixed };
    Ok(page.answer(&visit))
}

fn you(now: Moment, caller: &Caller) -> Markup {
    let how = match caller.authentication.raw() {
        "token" => "with a token of the service",
        "jwt" => "with a signed token",
        "none" => "not at all: the service takes every caller",
        _ => "in another way",
    };
    facts([
        ("Owner", Some(html! { (caller.owner) })),
        ("Scopes", Some(scopes(&caller.scopes))),
        ("Recognized", Some(html! { (how) })),
        ("Expires", caller.expires_at.map(|at| html! { (clock(at)) " (" (until(now, at)) ")" })),
    ])
}

fn scopes(scopes: &[Text]) -> Markup {
    html! { @for scope in scopes { span.field { (scope) } " " } }
}

fn table(now: Moment, list: &TokenList) -> Markup {
    html! {
        h2 { "Tokens" }
        div.scroll tabindex="0" role="region" aria-label="Tokens" {
            table {
                caption.unseen { "Tokens, newest first" }
                thead { tr { th scope="col" { "Name" } th scope="col" { "Owner" } th scope="col" { "Scopes" } th scope="col" { "State" } th scope="col" { "Created" } th scope="col" { "Expires" } th scope="col" { "Last use" } th scope="col" { span.unseen { "Actions" } } } }
                tbody {
                    @for token in &list.tokens {
                        tr id={ "token-" (token.id) } {
                            th.name scope="row" { (token.name) }
                            td { (token.owner) }
                            td { (scopes(&token.scopes)) }
                            td { (badge(&token.state)) }
                            td.time { (ago(now, token.created_at)) }
                            td.time { @if let Some(at) = token.expires_at { (until(now, at)) } @else { "never" } }
                            td.time { @if let Some(at) = token.last_used_at { (ago(now, at)) } @else { "never" } }
                            td {
                                @if token.state.raw() == "active" {
                                    (button_form(&path(&format!("/tokens/{}/revoke", token.id)), "Revoke", Some("Revoke this token? Its streams and sessions end within seconds."), &[]))
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn form() -> Markup {
    let to = path("/tokens");
    html! {
        section.box {
            h2 { "New token" }
            form.fields method="post" action=(to) hx-post=(to) hx-target="#new-token" autocomplete="off" {
                label { "Owner" input name="owner" required maxlength="200"; }
                label { "Name" input name="name" maxlength="200" placeholder="the owner"; }
                fieldset {
                    legend { "Scopes" }
                    @for scope in SCOPES { label.check { input type="checkbox" name="scopes" value=(scope) checked[scope != "admin"]; (scope) } }
                }
                button.main { "Create" }
            }
            div #new-token role="status" {}
        }
    }
}

/// Creates a token, and shows its text this one time.
pub(crate) async fn create(visit: Visit, Fields(fields): Fields) -> Result<Response, Failure> {
    let mut request = Map::new();
    for name in ["owner", "name"] {
        request.extend(fields.one(name).map(|value| (name.to_owned(), Value::from(value))));
    }
    request.insert("scopes".to_owned(), fields.all("scopes").collect());
    let NewToken { token, owner } = visit.api.post(&CREATE_TOKEN, &[], Some(&Value::Object(request))).await?;
    let shown = html! {
        p { "The token of " (owner) ". It is not shown again." }
        (copyable("token-text", "Token", &token))
    };
    if visit.wants == Wants::Page {
        let live = html! { h1 { "New token" } (shown) p { a href=(path("")) { "Access" } } };
        let page =
            Page { title: "New token".to_owned(), section: Section::Access, wakes: None, live, fixed: None };
        return Ok(page.answer(&visit));
    }
    Ok(([("hx-trigger", "renew")], Html(shown.into_string())).into_response())
}

pub(crate) async fn revoke(visit: Visit, IdPath(id): IdPath, Fields(_): Fields) -> Result<Response, Failure> {
    visit.api.call(&REVOKE_TOKEN, &[&id], &Query::new(), None).await?;
    Ok(done(&visit, "The token is revoked.", &path("")))
}
