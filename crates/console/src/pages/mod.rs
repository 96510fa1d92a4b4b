//! The pages, each a reading of the API's answers.

mod access;
mod clusters;
mod job;
mod jobs;
mod logs;
mod new_job;
mod pipelines;
mod usage;

use axum::{
    Router,
    http::Method,
    response::Redirect,
    routing::{MethodRouter, get},
};

use crate::{ROOT, assets, client::Failure, frame, state::Console};

/// Declares the addresses below `/ui`, so that tests of all of them cannot miss one.
macro_rules! pages {
    ($($path:literal: $($method:ident $handler:expr),+;)+) => {
        fn table() -> Router<Console> {
            Router::new()$(.route($path, MethodRouter::new()$(.$method($handler))+))+
        }

        const ADDRESSES: &[(&[&str], &str)] = &[$((&[$(stringify!($method)),+], $path)),+];
    };
}

pages! {
    "/login": get frame::ask, post frame::begin;
    "/login/start": get frame::start;
    "/login/callback": get frame::finish;
    "/logout": post frame::end;
    "/assets/{hash}/{name}": get assets::serve;
    "/wake": get frame::wake;
    "/access": get access::show;
    "/access/tokens": post access::create;
    "/access/tokens/{id}/revoke": post access::revoke;
    "/jobs": get jobs::list;
    "/jobs/selected": post jobs::selected;
    "/jobs/{id}": get job::overview;
    "/jobs/{id}/tasks": get job::tasks;
    "/jobs/{id}/attempts": get job::attempts;
    "/jobs/{id}/timeline": get job::timeline;
    "/jobs/{id}/events": get job::events;
    "/jobs/{id}/results": get job::results;
    "/jobs/{id}/spec": get job::spec;
    "/jobs/{id}/script": get job::script;
    "/jobs/{id}/webhook": get job::webhook;
    "/jobs/{id}/do/{action}": post job::act;
    "/jobs/{id}/logs": get logs::window;
    "/jobs/{id}/logs/follow": get logs::follow;
    "/jobs/{id}/charts": get job::charts;
    "/jobs/{id}/usage": get job::usage;
    "/jobs/{id}/logs/file": get logs::file;
    "/clusters": get clusters::list;
    "/clusters/{name}": get clusters::show;
    "/clusters/{name}/preflight": post clusters::preflight;
    "/pipelines": get pipelines::list;
    "/pipelines/{id}": get pipelines::show;
    "/pipelines/{id}/do/{action}": post pipelines::act;
    "/usage": get usage::show;
    "/usage/charts": get usage::charts;
    "/new": get new_job::form, post new_job::create;
    "/new/check": post new_job::check;
}

/// The method and the path of each address, with the parameters of the path in braces.
pub(crate) fn addresses() -> impl Iterator<Item = (Method, String)> {
    let of = |method: &str| if method == "get" { Method::GET } else { Method::POST };
    ADDRESSES.iter().flat_map(move |(methods, path)| {
        methods.iter().map(move |method| (of(method), format!("{ROOT}{path}")))
    })
}

/// Every page.
pub(crate) fn routes(console: Console) -> Router {
    let home = || async { Redirect::to(&format!("{ROOT}/jobs")) };
    let routes = table().route("/", get(home)).fallback(async || Failure::no_page());
    frame::around(routes, console)
}
