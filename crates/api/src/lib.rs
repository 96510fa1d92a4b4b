//! HTTP in, domain values out.
//!
//! A request passes the layers (`http::layers`), extractors parse it (`http::extract`) and authorize its caller (`auth`), and one
//! call (`calls`) turns it into domain values. The answer is a view (`view`) or a problem (`problem`, the only place that
//! chooses an error status). This crate knows no SQL and no SSH: jobs come from `persistence`, logs through [`LogSource`].

mod auth;
mod caches;
mod calls;
mod http;
mod openapi;
mod ports;
mod problem;
mod state;
mod view;
mod watchers;

use axum::{
    Extension, Router,
    middleware::{from_fn, from_fn_with_state},
};
use utoipa::OpenApi;
use utoipa_axum::{router::OpenApiRouter, routes};

pub use auth::{
    AuthMode,
    jwt::{
        ClaimMapping, JwtAlgorithm, JwtTerms, KeyPace, KeyReading, KeySource, UnfitAlgorithm, UnfitKeySet,
        usable_keys,
    },
};
pub use caches::known_clusters::{ClusterSet, KeptFacts, KnownClusters, UnusableCluster};
pub use http::{cors::is_origin, rate::RateLimit};
pub use ports::{
    CheckedCluster, ClusterAnswer, ClusterKeeper, ClusterLinks, ClusterOps, ClusterUnavailable, HostReport,
    HostState, LinkReport, LinkUse, LogReading, LogSource, LogUnavailable,
};
pub use state::{ApiState, Limits, Readiness};
pub use watchers::feed::Feed;

use calls::{callers, clusters, events, health, jobs, pipelines, stats, tao, webhooks};
use http::{layers, metrics};
use state::App;

/// The whole service.
pub fn router(state: ApiState) -> Router {
    let app = App::new(state);
    metrics::show(&app.limits);
    // The page's files and the document are constant, and take no memory of their own.
    let routes = Router::from(routes()).layer(from_fn_with_state(app.clone(), layers::buffered));
    let routes = openapi::serve::add(routes)
        .fallback(problem::not_found)
        .method_not_allowed_fallback(problem::method_not_allowed);
    layers::around(routes, &app).with_state(app)
}

/// Only the health checks and metrics, for a process that serves no API.
pub fn health_router(state: ApiState) -> Router {
    let app = App::new(state);
    let routes = OpenApiRouter::new()
        .routes(routes!(health::livez))
        .routes(routes!(health::readyz))
        .routes(routes!(metrics::metrics));
    let routes = Router::from(routes)
        .fallback(problem::not_served_here)
        .method_not_allowed_fallback(problem::method_not_allowed);
    layers::around(routes, &app).with_state(app)
}

/// The same for connections beyond the limits of connections: it answers only the health checks and metrics.
pub fn probes_only(router: Router) -> Router {
    router.layer(Extension(layers::ProbesOnly))
}

/// The OpenAPI document of [`router`]. Both are built from the same list of routes.
pub fn openapi() -> serde_json::Value {
    openapi::document(&routes().into_openapi())
}

fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(openapi::Metadata::openapi())
        .routes(routes!(jobs::create::create_job, jobs::list::list_jobs))
        .routes(routes!(jobs::validate::validate_job))
        .routes(routes!(jobs::read::get_job, jobs::control::delete_job))
        .routes(routes!(jobs::read::get_job_status))
        .routes(routes!(jobs::events::get_job_events))
        .routes(routes!(events::list_events))
        .routes(routes!(jobs::read::get_job_attempts))
        .routes(routes!(jobs::tasks::list_tasks))
        .routes(routes!(jobs::tasks::get_task))
        .routes(routes!(jobs::timeline::get_job_timeline))
        .routes(routes!(jobs::results::get_job_results))
        .routes(routes!(jobs::read::get_job_script))
        .routes(routes!(jobs::diagnosis::get_job_diagnosis))
        .routes(routes!(jobs::metrics::get_job_metrics))
        .routes(routes!(jobs::usage::get_job_usage))
        .routes(routes!(jobs::logs::get_job_logs))
        .routes(routes!(jobs::logs::search::search_job_logs))
        .routes(routes!(jobs::control::cancel_job))
        .routes(routes!(jobs::control::pause_job))
        .routes(routes!(jobs::control::resume_job))
        .routes(routes!(jobs::control::retry_job))
        .routes(routes!(pipelines::create::create_pipeline, pipelines::read::list_pipelines))
        .routes(routes!(pipelines::read::get_pipeline))
        .routes(routes!(pipelines::control::cancel_pipeline))
        .routes(routes!(pipelines::control::retry_pipeline))
        .routes(routes!(stats::get_stats))
        .routes(routes!(webhooks::get_job_webhook))
        .routes(routes!(webhooks::redeliver_job_webhook))
        .routes(routes!(webhooks::list_dead_letters))
        .routes(routes!(clusters::read::list_clusters, clusters::write::create_cluster))
        .routes(routes!(
            clusters::read::get_cluster,
            clusters::write::replace_cluster,
            clusters::write::delete_cluster
        ))
        .routes(routes!(clusters::read::list_partitions))
        .routes(routes!(clusters::read::preflight_cluster))
        .routes(routes!(clusters::credentials::put_enroot_credentials))
        .routes(routes!(callers::get_me))
        .routes(routes!(callers::create_token, callers::list_tokens))
        .routes(routes!(callers::revoke_token))
        .merge(tao_routes())
        .routes(routes!(health::livez))
        .routes(routes!(health::readyz))
        .routes(routes!(metrics::metrics))
}

/// The calls of TAO's services.
fn tao_routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(tao::post_container_job))
        .routes(routes!(tao::get_container_job_status))
        .routes(routes!(tao::pause_container_job))
        .routes(routes!(tao::liveness))
        .routes(routes!(tao::readiness))
        .layer(from_fn(tao::adapted))
}
