//! `/openapi.json` and `/docs`: the OpenAPI document and Swagger UI.

use axum::{Router, body::Bytes, http::header, routing};
use utoipa::openapi::OpenApi;
use utoipa_swagger_ui::{Config, SwaggerUi};

use crate::state::App;

const PATH: &str = "/openapi.json";

/// Adds both paths. The document is constant, so it is rendered once.
pub(crate) fn add(routes: Router<App>, document: &OpenApi) -> Router<App> {
    // Cannot fail: a test renders the document in every build.
    let text = Bytes::from(document.to_json().unwrap_or_default());
    let page: Router<App> = SwaggerUi::new("/docs").config(Config::from(PATH)).into();
    let answer = move || async move { ([(header::CONTENT_TYPE, "application/json")], text) };
    routes.route(PATH, routing::get(answer)).merge(page)
}
