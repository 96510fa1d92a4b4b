//! `token create`, `token list` and `token revoke`.

use std::{fs, process::ExitCode};

use anyhow::{Context, anyhow, bail};
use chrono::TimeDelta;
use domain::{Clock, Ids, Networks, Owner, Timestamp, Webhook, WebhookRequest};
use persistence::{NewToken, Scopes, Token, random_token};
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;

use super::output::{Output, note};
use crate::{
    cli::{Scope, TokenArgs, TokenListArgs, TokenRevokeArgs},
    client::table,
    config::{Config, Environment},
    database::connect::Database,
    process::clock::{RandomIds, SystemClock},
};

pub(super) async fn create(
    config: Config,
    environment: Environment,
    args: TokenArgs,
) -> anyhow::Result<ExitCode> {
    let webhook = webhook(&args, &config.webhook_networks)?;
    let (text, token) = make(&args, webhook, &SystemClock, &RandomIds)?;
    let database = Database::open_current(&config, &environment).await?;
    let stored = database.store.create_token(&token).await.context("cannot store the token");
    database.close().await?;
    stored?;
    let mut output = Output::new();
    if args.output.is_document() {
        let document = json!({
            "token": text.expose_secret(),
            "id": token.id,
            "name": token.name,
            "owner": token.owner.as_str(),
            "expires_at": token.expires_at,
            "webhook": token.webhook.is_some(),
        });
        output.document(args.output, &document)?;
    } else {
        output.line(text.expose_secret())?;
        note(
            "Save the token now; it is not shown again. Pass it as `Authorization: Bearer …` or in TAO_SLURM_TOKEN.",
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn make(
    args: &TokenArgs,
    webhook: Option<Webhook>,
    clock: &dyn Clock,
    ids: &dyn Ids,
) -> anyhow::Result<(SecretString, NewToken)> {
    let owner = args.owner.trim();
    if owner.is_empty() {
        bail!("--owner is empty; name the owner of the jobs that the token gives access to");
    }
    let (text, hash) = random_token();
    let created_at = clock.now();
    let token = NewToken {
        id: ids.lease(),
        name: args.name.clone().unwrap_or_else(|| owner.to_owned()),
        owner: Owner::new(owner),
        hash,
        scopes: Scopes {
            read: args.scope.contains(&Scope::Read),
            write: args.scope.contains(&Scope::Write),
            admin: args.scope.contains(&Scope::Admin),
        },
        created_at,
        expires_at: args.expires_in.map(|after| expiry(created_at, after)).transpose()?,
        webhook,
    };
    Ok((text, token))
}

/// The webhook of the token's jobs. The secret comes from a file, because every user of the machine can read arguments.
fn webhook(args: &TokenArgs, networks: &Networks) -> anyhow::Result<Option<Webhook>> {
    let (Some(url), Some(path)) = (&args.webhook_url, &args.webhook_secret_file) else { return Ok(None) };
    let secret = fs::read_to_string(path)
        .with_context(|| format!("cannot read the secret in {} (--webhook-secret-file)", path.display()))?;
    let request = WebhookRequest { url: url.clone(), secret: secret.trim().to_owned() };
    Webhook::from_request(&request, networks).map(Some).map_err(|faults| {
        let errors = faults.into_iter().map(|fault| match fault.pointer.as_str() {
            "/webhook/url" => format!("--webhook-url: {}", fault.detail),
            _ => format!("--webhook-secret-file: {}", fault.detail),
        });
        anyhow!(errors.collect::<Vec<_>>().join("; "))
    })
}

fn expiry(created_at: Timestamp, after: std::time::Duration) -> anyhow::Result<Timestamp> {
    let after = TimeDelta::from_std(after).ok();
    after
        .and_then(|after| created_at.checked_add_signed(after))
        .context("--expires-in is too long; omit it for a token that never expires")
}

pub(super) async fn list(
    config: Config,
    environment: Environment,
    args: TokenListArgs,
) -> anyhow::Result<ExitCode> {
    let owner = args.owner.as_deref().map(Owner::new);
    let database = Database::open_current(&config, &environment).await?;
    let tokens = database.store.list_tokens(owner.as_ref()).await.context("cannot list the tokens");
    database.close().await?;
    let (tokens, now) = (tokens?, SystemClock.now());
    let mut output = Output::new();
    if args.output.is_document() {
        let documents: Vec<_> = tokens.iter().map(|token| document(token, now)).collect();
        output.document(args.output, &json!({ "tokens": documents }))?;
    } else {
        output.bytes(token_table(&tokens, now).as_bytes())?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn revoke(
    config: Config,
    environment: Environment,
    args: TokenRevokeArgs,
) -> anyhow::Result<ExitCode> {
    let now = SystemClock.now();
    let database = Database::open_current(&config, &environment).await?;
    let revoked = async {
        let tokens = database.store.list_tokens(None).await.context("cannot list the tokens")?;
        let id = find(&tokens, &args.token, now)?;
        database.store.revoke_token(id, now).await.context("cannot revoke the token")
    };
    let revoked = revoked.await;
    database.close().await?;
    let token = revoked?.context("the token no longer exists")?;
    note(&format!(
        "Token {} of {} ({}) is revoked. Running services reject it within 5 s.",
        token.name, token.owner, token.id
    ));
    Ok(ExitCode::SUCCESS)
}

/// The token with this id, or the only active one with this name.
fn find(tokens: &[Token], text: &str, now: Timestamp) -> anyhow::Result<uuid::Uuid> {
    if let Some(token) = tokens.iter().find(|token| token.id.to_string() == text.to_ascii_lowercase()) {
        return Ok(token.id);
    }
    let named: Vec<_> = tokens.iter().filter(|token| token.name == text && token.is_good(now)).collect();
    match named.as_slice() {
        [token] => Ok(token.id),
        [] => bail!("no active token has the ID or name {text:?}; see `tao-slurm token list`"),
        several => {
            let ids: Vec<_> = several.iter().map(|token| token.id.to_string()).collect();
            bail!("several tokens have the name {text:?}; revoke one by its ID: {}", ids.join(", "))
        }
    }
}

fn document(token: &Token, now: Timestamp) -> serde_json::Value {
    json!({
        "id": token.id,
        "name": token.name,
        "owner": token.owner.as_str(),
        "scopes": token.scopes.to_words(),
        "state": token.state(now),
        "created_at": token.created_at,
        "expires_at": token.expires_at,
        "revoked_at": token.revoked_at,
        "last_used_at": token.last_used_at,
        "webhook": token.has_webhook,
    })
}

fn token_table(tokens: &[Token], now: Timestamp) -> String {
    let headers = ["ID", "OWNER", "SCOPES", "STATE", "CREATED", "EXPIRES", "LAST USED", "WEBHOOK", "NAME"];
    let minutes = |at: Timestamp| at.format("%Y-%m-%d %H:%M").to_string();
    let row = |token: &Token| {
        [
            token.id.to_string(),
            token.owner.to_string(),
            token.scopes.to_words().join(","),
            token.state(now).to_owned(),
            minutes(token.created_at),
            token.expires_at.map(minutes).unwrap_or_default(),
            token.last_used_at.map(minutes).unwrap_or_default(),
            if token.has_webhook { "yes" } else { "" }.to_owned(),
            token.name.clone(),
        ]
    };
    table(headers, tokens.iter().map(row))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use chrono::DateTime;
    use uuid::Uuid;

    use super::*;

    fn args() -> TokenArgs {
        TokenArgs {
            owner: "vision".to_owned(),
            scope: vec![Scope::Read, Scope::Write],
            name: None,
            expires_in: Some(Duration::from_mins(1)),
            webhook_url: None,
            webhook_secret_file: None,
            output: crate::cli::Format::Text,
        }
    }

    #[test]
    fn a_token_is_what_the_arguments_say() {
        let (_, token) = make(&args(), None, &SystemClock, &RandomIds).unwrap();
        assert_eq!(token.scopes, Scopes { read: true, write: true, admin: false });
        assert_eq!(token.expires_at, Some(token.created_at + TimeDelta::seconds(60)));
        assert_eq!((token.owner.as_str(), token.name.as_str()), ("vision", "vision"));
    }

    #[test]
    fn an_empty_owner_is_rejected() {
        let args = TokenArgs { owner: " ".to_owned(), ..args() };
        assert!(make(&args, None, &SystemClock, &RandomIds).is_err());
    }

    #[test]
    fn an_expiry_that_is_too_late_is_rejected() {
        let args = TokenArgs { expires_in: Some(Duration::MAX), ..args() };
        assert!(
            make(&args, None, &SystemClock, &RandomIds).unwrap_err().to_string().contains("--expires-in")
        );
    }

    #[test]
    fn a_webhook_is_a_url_and_a_file_with_its_secret() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let with = |url: &str, secret: &str| {
            fs::write(file.path(), secret).unwrap();
            let path = Some(file.path().to_owned());
            let args = TokenArgs { webhook_url: Some(url.to_owned()), webhook_secret_file: path, ..args() };
            webhook(&args, &Networks::default()).map_err(|error| error.to_string())
        };
        let good =
            with("https://example.org/hook", "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD\n").unwrap().unwrap();
        assert_eq!((good.url.as_str(), good.key_bytes().len()), ("https://example.org/hook", 24));
        let bad = with("http://127.0.0.1/", "hunter2").unwrap_err();
        assert!(bad.contains("--webhook-url: ") && bad.contains("; --webhook-secret-file: "), "{bad}");
        assert!(!bad.contains("hunter2"));
        assert!(webhook(&args(), &Networks::default()).unwrap().is_none());
    }

    fn token(number: u128, name: &str) -> Token {
        Token {
            id: Uuid::from_u128(number),
            name: name.to_owned(),
            owner: Owner::new("ann"),
            scopes: Scopes { read: true, write: true, admin: false },
            created_at: DateTime::UNIX_EPOCH,
            expires_at: None,
            revoked_at: None,
            last_used_at: None,
            has_webhook: false,
        }
    }

    const NOW: Timestamp = DateTime::UNIX_EPOCH;

    #[test]
    fn a_token_is_found_by_its_id_or_by_the_name_of_only_one_active_token() {
        let old = Token { revoked_at: Some(NOW), ..token(1, "ci") };
        let tokens = [old, token(2, "ci"), token(3, "twin"), token(4, "twin")];
        assert_eq!(find(&tokens, &Uuid::from_u128(1).to_string(), NOW).unwrap(), Uuid::from_u128(1));
        assert_eq!(find(&tokens, "ci", NOW).unwrap(), Uuid::from_u128(2));
        let several = find(&tokens, "twin", NOW).unwrap_err().to_string();
        assert!(several.contains(&Uuid::from_u128(3).to_string()), "{several}");
        assert!(find(&tokens, "missing", NOW).unwrap_err().to_string().contains("token list"));
    }

    #[test]
    fn the_table_shows_state_scopes_and_last_use() {
        let expired = Token { expires_at: Some(NOW), ..token(1, "old") };
        let used = Token { last_used_at: Some(NOW + TimeDelta::minutes(5)), ..token(2, "ci") };
        let text = token_table(&[expired, used], NOW);
        let lines: Vec<_> = text.lines().collect();
        assert!(lines[1].contains("expired") && lines[1].ends_with("old"), "{text}");
        assert!(
            lines[2].contains("ann    read,write  active") && lines[2].contains("1970-01-01 00:05"),
            "{text}"
        );
    }
}
