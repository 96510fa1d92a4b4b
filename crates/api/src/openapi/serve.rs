//! `/`, `/openapi.json` and `/docs`: where to find everything, the OpenAPI document, and Swagger UI.

use std::{
    borrow::Cow,
    sync::{Arc, LazyLock},
};

use axum::{
    Json, Router,
    body::Bytes,
    extract::Path,
    http::{StatusCode, header},
    response::{IntoResponse, Redirect, Response},
    routing::get,
};
use serde_json::{Value, json};
use utoipa_swagger_ui::Config;

use crate::{problem::Problem, state::App};

const DOCUMENT: &str = "/openapi.json";
const PAGE: &str = "/docs/";
/// The page's title as published, and ours.
const TITLES: [&str; 2] = ["<title>Swagger UI</title>", "<title>tao-slurm API</title>"];

/// The document is constant, so it is rendered once, for the first caller: a service starts sooner without it.
static TEXT: LazyLock<Bytes> = LazyLock::new(|| crate::openapi().to_string().into());

/// Adds the paths.
pub(crate) fn add(routes: Router<App>) -> Router<App> {
    let answer = async || ([(header::CONTENT_TYPE, "application/json")], TEXT.clone());
    let page = Arc::new(Config::from(DOCUMENT).persist_authorization(true));
    let file = move |path: Option<Path<String>>| async move {
        file(path.as_ref().map_or("index.html", |Path(path)| path), page)
    };
    routes
        .route("/", get(start))
        .route(DOCUMENT, get(answer))
        .route("/docs", get(async || Redirect::to(PAGE)))
        .route(PAGE, get(file.clone()))
        .route("/docs/{*path}", get(file))
}

/// For callers that know only the address.
async fn start() -> Json<Value> {
    Json(json!({
        "service": "tao-slurm",
        "version": env!("CARGO_PKG_VERSION"),
        "documentation": PAGE,
        "openapi": DOCUMENT,
        "ready": "/readyz",
        "metrics": "/metrics",
    }))
}

/// A file of Swagger UI. All but the settings and the page itself are constant.
fn file(path: &str, page: Arc<Config<'static>>) -> Response {
    match utoipa_swagger_ui::serve(path, page) {
        Ok(Some(file)) => {
            let bytes = if path == "index.html" {
                let text = String::from_utf8_lossy(&file.bytes).replacen(TITLES[0], TITLES[1], 1);
                Cow::Owned(text.into_bytes())
            } else {
                file.bytes
            };
            ([(header::CONTENT_TYPE, file.content_type)], bytes).into_response()
        }
        Ok(None) => StatusCode::NOT_FOUND.into_response(),
        Err(error) => {
            tracing::error!(%error, "cannot render the page of the documentation");
            Problem::internal().into_response()
        }
    }
}
