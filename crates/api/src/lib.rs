//! HTTP in, domain values out.
//!
//! A request passes the layers (`layers`), is read (`extract`) and allowed (`auth`), becomes a domain value in
//! one endpoint (`jobs`, `clusters`, one file each), and comes back as a view (`view`) or as a problem (`problem`, the only
//! place that chooses a status). This crate knows no SQL and no SSH: jobs come from `persistence`, bytes of logs
//! through [`LogSource`].

mod auth;
mod caches;
mod calls;
mod document;
mod http;
mod openapi;
mod ports;
mod problem;
mod state;
mod view;
mod watchers;

use axum::{Router, middleware::from_fn};
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
pub use calls::jobs::validate::{LiveView, ValidationView, WarningView};
pub use http::{cors::is_origin, rate::RateLimit};
pub use ports::{
    cluster_keeper::{CheckedCluster, ClusterKeeper},
    cluster_links::{ClusterLinks, HostReport, HostState, LinkReport, LinkUse},
    cluster_ops::{ClusterAnswer, ClusterOps, ClusterUnavailable},
    log_source::{LogReading, LogSource, LogUnavailable},
};
pub use state::{ApiState, Limits, Readiness};
pub use view::{
    AttemptListView, AttemptView, BackendDetailsView, BackendTypeView, ClusterList, ClusterSource,
    ClusterView, ContainerView, DeadLetterListView, DeadLetterView, EventListView, EventPageView, EventView,
    HolderView, JobList, JobSummary, JobView, PartitionList, PartitionView, PendingView, PreflightView,
    ProgressView, ResourcesView, SlurmMetadataView, StatusView, TimelineEntryView, TimelineView,
    UnusableClusterView, WebhookDeliveryView, WebhookView,
};
pub use watchers::feed::Feed;

use calls::{clusters, dead_letters, events, health, jobs, tao};
use http::{layers, metrics};
use state::App;

/// The whole service, ready to be served.
pub fn router(state: ApiState) -> Router {
    let app = App::new(state);
    metrics::show(&app.limits);
    let (routes, document) = routes().split_for_parts();
    let routes = document::add(routes, &document)
        .fallback(problem::not_found)
        .method_not_allowed_fallback(problem::method_not_allowed);
    layers::around(routes, &app).with_state(app)
}

/// The service's own health and numbers, and nothing else: for a process that serves no API.
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

/// The OpenAPI document of [`router`]: both are made from the same list, so neither can have what the other lacks.
pub fn openapi() -> utoipa::openapi::OpenApi {
    routes().into_openapi()
}

fn routes() -> OpenApiRouter<App> {
    let mut routes = OpenApiRouter::with_openapi(openapi::Metadata::openapi())
        .routes(routes!(jobs::create::create_job, jobs::list::list_jobs))
        .routes(routes!(jobs::validate::validate_job))
        .routes(routes!(jobs::get::get_job, jobs::delete::delete_job))
        .routes(routes!(jobs::status::get_job_status))
        .routes(routes!(jobs::events::get_job_events))
        .routes(routes!(events::list_events))
        .routes(routes!(jobs::attempts::get_job_attempts))
        .routes(routes!(jobs::timeline::get_job_timeline))
        .routes(routes!(jobs::script::get_job_script))
        .routes(routes!(jobs::logs::get_job_logs))
        .routes(routes!(jobs::cancel::cancel_job))
        .routes(routes!(jobs::pause::pause_job))
        .routes(routes!(jobs::resume::resume_job))
        .routes(routes!(jobs::retry::retry_job))
        .routes(routes!(jobs::webhook::get_job_webhook))
        .routes(routes!(jobs::webhook::redeliver_job_webhook))
        .routes(routes!(dead_letters::list_dead_letters))
        .routes(routes!(clusters::list::list_clusters, clusters::create::create_cluster))
        .routes(routes!(
            clusters::get::get_cluster,
            clusters::replace::replace_cluster,
            clusters::delete::delete_cluster
        ))
        .routes(routes!(clusters::partitions::list_partitions))
        .routes(routes!(clusters::preflight::preflight_cluster))
        .routes(routes!(clusters::credentials::put_enroot_credentials))
        .merge(tao_routes())
        .routes(routes!(health::livez))
        .routes(routes!(health::readyz))
        .routes(routes!(metrics::metrics));
    openapi::complete(routes.get_openapi_mut());
    routes
}

/// What TAO's own services call, understood as their client sends it.
fn tao_routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(tao::post::post_container_job))
        .routes(routes!(tao::status::get_container_job_status))
        .routes(routes!(tao::health::liveness))
        .routes(routes!(tao::health::readiness))
        .layer(from_fn(tao::understood))
}
