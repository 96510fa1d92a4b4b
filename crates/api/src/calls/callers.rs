//! The calls about callers: who calls, and the tokens of the service.

use axum::{
    Json,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use chrono::{DateTime, Utc};
use domain::{Owner, Violation, Webhook, WebhookRequest};
use persistence::{NewToken, Scopes, random_token};
use secrecy::ExposeSecret;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::{
    auth::{Admin, Caller},
    http::extract::{Body, Call, FromQuery, NoParameters, NoPlace, Parameters, Query, TokenInPath},
    problem::{Kind, Problem, problems},
    state::App,
    view::{CallerView, NewTokenView, ScopeName, SecretText, TokenListView, TokenView},
};

problems!(MeProblems = SECURED);

/// Read who you are
///
/// Returns the owner and the scopes of the request's token.
#[utoipa::path(
    get,
    path = "/me",
    security(("bearer" = ["read"])),
    responses((status = 200, description = "The caller.", body = CallerView), MeProblems)
)]
pub(crate) async fn get_me(caller: Caller, _: Query<NoParameters>) -> Json<CallerView> {
    Json(CallerView::from(&caller))
}

/// Selects tokens.
#[derive(Debug)]
pub(crate) struct TokenFilter {
    owner: Option<Owner>,
}

impl FromQuery for TokenFilter {
    const KNOWN: &'static [&'static str] = &["owner"];

    fn from_query(parameters: &Parameters) -> Result<Self, Problem> {
        Ok(Self { owner: parameters.one("owner")?.map(Owner::new) })
    }
}

/// List tokens
///
/// Returns all tokens of the service, expired and revoked ones too. Tokens of an issuer (JWTs) are not stored, so they are not listed.
#[utoipa::path(
    get,
    path = "/tokens",
    params(("owner" = Option<String>, Query, description = "Only tokens of this owner.")),
    security(("bearer" = ["admin"])),
    responses((status = 200, description = "The tokens, newest first.", body = TokenListView), MeProblems)
)]
pub(crate) async fn list_tokens(
    Call(app, _, _, filter): Call<NoPlace, TokenFilter, Admin>,
) -> Result<Json<TokenListView>, Problem> {
    let (tokens, now) = (app.store.list_tokens(filter.owner.as_ref()).await?, app.clock.now());
    Ok(Json(TokenListView { tokens: tokens.iter().map(|token| TokenView::new(token, now)).collect() }))
}

/// A token to create.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TokenRequest {
    /// The owner of the jobs that the token gives access to.
    owner: String,
    /// A name for people. Default: the owner.
    name: Option<String>,
    /// What the token allows. Default: `read` and `write`.
    #[schema(min_items = 1)]
    scopes: Option<Vec<ScopeName>>,
    /// When the token expires. Default: never.
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<DateTime<Utc>>,
    /// The webhook of its jobs that name none of their own.
    webhook: Option<WebhookRequest>,
}

problems!(CreateProblems = SECURED | BODY);

/// Create a token
///
/// Returns the token's text once; only its hash is stored.
#[utoipa::path(
    post,
    path = "/tokens",
    request_body = TokenRequest,
    security(("bearer" = ["admin"])),
    responses(
        (status = 201, description = "The token, with its text.", body = NewTokenView,
            headers(("Cache-Control" = String, description = "`no-store`."))),
        CreateProblems
    )
)]
pub(crate) async fn create_token(
    State(app): State<App>,
    Admin(caller): Admin,
    Query(NoParameters): Query<NoParameters>,
    Body(sent): Body<TokenRequest>,
) -> Result<Response, Problem> {
    let request = sent.value;
    let created_at = app.clock.now();
    let webhook = checked(&app, &request).map_err(Problem::fields)?;
    let (text, hash) = random_token();
    let scopes = request.scopes.unwrap_or_else(|| vec![ScopeName::Read, ScopeName::Write]);
    let has = |scope| scopes.contains(&scope);
    let owner = request.owner.trim();
    let token = NewToken {
        id: app.ids.lease(),
        name: request.name.unwrap_or_else(|| owner.to_owned()),
        owner: Owner::new(owner),
        hash,
        scopes: Scopes {
            read: has(ScopeName::Read),
            write: has(ScopeName::Write),
            admin: has(ScopeName::Admin),
        },
        created_at,
        expires_at: request.expires_at,
        webhook,
    };
    app.store.create_token(&token).await?;
    tracing::info!(owner = %caller.owner, token.id = %token.id, token.owner = owner, "token created by the API");
    let view = NewTokenView {
        token: SecretText(text.expose_secret().to_owned()),
        id: token.id,
        name: token.name,
        owner: owner.to_owned(),
        scopes,
        expires_at: token.expires_at,
    };
    Ok((StatusCode::CREATED, [(header::CACHE_CONTROL, "no-store")], Json(view)).into_response())
}

/// Checks the request; the webhook if it has one.
fn checked(app: &App, request: &TokenRequest) -> Result<Option<Webhook>, Vec<Violation>> {
    let mut faults = Vec::new();
    let owner = request.owner.trim();
    if owner.is_empty() || !is_plain(owner) {
        faults.push(Violation::new("/owner", "invalid", LINE));
    }
    if request.name.as_ref().is_some_and(|name| !is_plain(name)) {
        faults.push(Violation::new("/name", "invalid", LINE));
    }
    if request.scopes.as_ref().is_some_and(Vec::is_empty) {
        faults.push(Violation::new("/scopes", "invalid", "must have at least one scope"));
    }
    if request.expires_at.is_some_and(|at| at <= app.clock.now()) {
        faults.push(Violation::new("/expires_at", "invalid", "must be in the future"));
    }
    let webhook =
        request.webhook.as_ref().map(|webhook| Webhook::from_request(webhook, &app.webhook_networks));
    match webhook.transpose() {
        Ok(webhook) if faults.is_empty() => Ok(webhook),
        Ok(_) => Err(faults),
        Err(more) => Err(faults.into_iter().chain(more).collect()),
    }
}

const LINE: &str = "must be one line of 1 to 200 characters";

fn is_plain(text: &str) -> bool {
    (1..=200).contains(&text.chars().count()) && !text.contains(char::is_control)
}

problems!(RevokeProblems = SECURED, NoSuchToken);

/// Revoke a token
///
/// The token is refused within seconds, and its streams end. A token that was revoked before stays so.
#[utoipa::path(
    delete,
    path = "/tokens/{token}",
    params(("token" = uuid::Uuid, Path, description = "The token's id.")),
    security(("bearer" = ["admin"])),
    responses((status = 204, description = "The token is revoked."), RevokeProblems)
)]
pub(crate) async fn revoke_token(
    Call(app, Admin(caller), TokenInPath(id), _): Call<TokenInPath, NoParameters, Admin>,
) -> Result<StatusCode, Problem> {
    let token = app.store.revoke_token(id, app.clock.now()).await?;
    let token =
        token.ok_or_else(|| Problem::new(Kind::NoSuchToken, format!("The token `{id}` does not exist.")))?;
    tracing::info!(owner = %caller.owner, token.id = %id, token.owner = %token.owner, "token revoked by the API");
    Ok(StatusCode::NO_CONTENT)
}
