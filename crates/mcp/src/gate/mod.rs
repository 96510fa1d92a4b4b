//! Lets callers in: no browsers, a valid token before anything is parsed, and bodies within limits.

mod bodies;
mod refusal;

use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, header},
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse, Response},
};
use loopback::Api;

use crate::client::ME;
use bodies::Bodies;
use refusal::Refusal;

/// A tool needs less: lists have pages, and a search a limit.
const LARGEST_ANSWER: usize = 8 * 1024 * 1024;

#[derive(Clone)]
struct Gate {
    api: Router,
    bodies: Bodies,
}

pub(crate) fn around(routes: Router, api: Router) -> Router {
    let gate = Gate { api, bodies: Bodies::new() };
    routes.layer(from_fn_with_state(gate, let_in))
}

/// The API with the rights of a request.
fn api_for(router: Router, headers: &HeaderMap) -> Api {
    let api = Api::new(router, None, headers).at_most(LARGEST_ANSWER);
    match headers.get(header::AUTHORIZATION) {
        Some(value) => {
            let mut value = value.clone();
            value.set_sensitive(true);
            api.with(header::AUTHORIZATION, value)
        }
        None => api,
    }
}

/// The API judges the token, and counts the request; its refusal is the answer.
async fn let_in(State(gate): State<Gate>, request: Request, next: Next) -> Response {
    let mut response = match admitted(&gate, request).await {
        Ok(request) => next.run(request).await,
        Err(response) => response,
    };
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

async fn admitted(gate: &Gate, request: Request) -> Result<Request, Response> {
    // Every browser sends it with a POST. A page of another site could have got our address by DNS (rebinding), so the host is no proof.
    if request.headers().contains_key(header::ORIGIN) {
        return Err(Refusal::BROWSER.into_response());
    }
    let api = api_for(gate.api.clone(), request.headers());
    let judged = api.response(&ME).await.map_err(|_| Refusal::UNREADABLE.into_response())?;
    if !judged.status().is_success() {
        return Err(judged);
    }
    let mut request = gate.bodies.read(request).await.map_err(IntoResponse::into_response)?;
    request.extensions_mut().insert(api);
    Ok(request)
}
