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
    response::Redirect,
    routing::{get, post},
};

use crate::{ROOT, assets, client::Failure, frame, state::Console};

/// Every address below `/ui`.
pub(crate) fn routes(console: Console) -> Router {
    let home = || async { Redirect::to(&format!("{ROOT}/jobs")) };
    let routes = Router::new()
        .route("/", get(home))
        .route("/login", get(frame::ask).post(frame::begin))
        .route("/logout", post(frame::end))
        .route("/assets/{hash}/{name}", get(assets::serve))
        .route("/wake", get(frame::wake))
        .route("/access", get(access::show))
        .route("/access/tokens", post(access::create))
        .route("/access/tokens/{id}/revoke", post(access::revoke))
        .route("/jobs", get(jobs::list))
        .route("/jobs/selected", post(jobs::selected))
        .route("/jobs/{id}", get(job::overview))
        .route("/jobs/{id}/tasks", get(job::tasks))
        .route("/jobs/{id}/attempts", get(job::attempts))
        .route("/jobs/{id}/timeline", get(job::timeline))
        .route("/jobs/{id}/events", get(job::events))
        .route("/jobs/{id}/results", get(job::results))
        .route("/jobs/{id}/spec", get(job::spec))
        .route("/jobs/{id}/script", get(job::script))
        .route("/jobs/{id}/webhook", get(job::webhook))
        .route("/jobs/{id}/do/{action}", post(job::act))
        .route("/jobs/{id}/logs", get(logs::window))
        .route("/jobs/{id}/logs/follow", get(logs::follow))
        .route("/jobs/{id}/charts", get(job::charts))
        .route("/jobs/{id}/usage", get(job::usage))
        .route("/jobs/{id}/logs/file", get(logs::file))
        .route("/clusters", get(clusters::list))
        .route("/clusters/{name}", get(clusters::show))
        .route("/clusters/{name}/preflight", post(clusters::preflight))
        .route("/pipelines", get(pipelines::list))
        .route("/pipelines/{id}", get(pipelines::show))
        .route("/pipelines/{id}/do/{action}", post(pipelines::act))
        .route("/usage", get(usage::show))
        .route("/new", get(new_job::form).post(new_job::create))
        .route("/new/check", post(new_job::check))
        .fallback(async || Failure::no_page());
    frame::around(routes, console)
}
