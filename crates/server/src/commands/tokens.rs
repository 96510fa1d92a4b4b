//! `tao-slurm token list` and `token revoke`.

use std::process::ExitCode;

use anyhow::{Context, bail};
use domain::{Clock, Owner, Timestamp};
use persistence::Token;

use super::output::{Output, remark};
use crate::{
    cli::{TokenListArgs, TokenRevokeArgs},
    client::columns,
    config::{Config, Environment},
    database::connect::Database,
    process::clock::SystemClock,
};

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
    if args.json {
        let documents: Vec<_> = tokens.iter().map(|token| document(token, now)).collect();
        output.line(&serde_json::json!({ "tokens": documents }).to_string())?;
    } else {
        output.bytes(table(&tokens, now).as_bytes())?;
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
        let id = meant(&tokens, &args.token, now)?;
        database.store.revoke_token(id, now).await.context("cannot revoke the token")
    };
    let revoked = revoked.await;
    database.close().await?;
    let token = revoked?.context("the token is gone")?;
    remark(&format!("{} of {} ({}) is of no use any more, within 5 s.", token.name, token.owner, token.id));
    Ok(ExitCode::SUCCESS)
}

/// The token that a person means: by its id, else by a name that only one in use has.
fn meant(tokens: &[Token], text: &str, now: Timestamp) -> anyhow::Result<uuid::Uuid> {
    if let Some(token) = tokens.iter().find(|token| token.id.to_string() == text.to_ascii_lowercase()) {
        return Ok(token.id);
    }
    let named: Vec<_> = tokens.iter().filter(|token| token.name == text && token.is_good(now)).collect();
    match named.as_slice() {
        [token] => Ok(token.id),
        [] => bail!("no token in use has the id or name {text:?}; `tao-slurm token list` shows them"),
        several => {
            let ids: Vec<_> = several.iter().map(|token| token.id.to_string()).collect();
            bail!("several tokens have the name {text:?}; revoke by id: {}", ids.join(", "))
        }
    }
}

fn state(token: &Token, now: Timestamp) -> &'static str {
    match token.revoked_at {
        Some(_) => "revoked",
        None if token.is_good(now) => "good",
        None => "expired",
    }
}

fn document(token: &Token, now: Timestamp) -> serde_json::Value {
    serde_json::json!({
        "id": token.id,
        "name": token.name,
        "owner": token.owner.as_str(),
        "scopes": token.scopes.to_words(),
        "state": state(token, now),
        "created_at": token.created_at,
        "expires_at": token.expires_at,
        "revoked_at": token.revoked_at,
        "last_used_at": token.last_used_at,
        "webhook": token.has_webhook,
    })
}

fn table(tokens: &[Token], now: Timestamp) -> String {
    let head = ["ID", "OWNER", "SCOPES", "STATE", "CREATED", "EXPIRES", "LAST USED", "WEBHOOK", "NAME"];
    let mut rows = vec![head.map(str::to_owned)];
    let shown = |at: Timestamp| at.format("%Y-%m-%d %H:%M").to_string();
    rows.extend(tokens.iter().map(|token| {
        [
            token.id.to_string(),
            token.owner.to_string(),
            token.scopes.to_words().join(","),
            state(token, now).to_owned(),
            shown(token.created_at),
            token.expires_at.map(shown).unwrap_or_default(),
            token.last_used_at.map(shown).unwrap_or_default(),
            if token.has_webhook { "yes" } else { "" }.to_owned(),
            token.name.clone(),
        ]
    }));
    columns(&rows)
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, TimeDelta};
    use persistence::Scopes;
    use uuid::Uuid;

    use super::*;

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
    fn a_token_is_meant_by_its_id_or_by_a_name_that_only_one_in_use_has() {
        let old = Token { revoked_at: Some(NOW), ..token(1, "ci") };
        let tokens = [old, token(2, "ci"), token(3, "twin"), token(4, "twin")];
        assert_eq!(meant(&tokens, &Uuid::from_u128(1).to_string(), NOW).unwrap(), Uuid::from_u128(1));
        assert_eq!(meant(&tokens, "ci", NOW).unwrap(), Uuid::from_u128(2));
        let several = meant(&tokens, "twin", NOW).unwrap_err().to_string();
        assert!(several.contains(&Uuid::from_u128(3).to_string()), "{several}");
        assert!(meant(&tokens, "nobody", NOW).unwrap_err().to_string().contains("token list"));
    }

    #[test]
    fn the_table_says_what_each_token_is_good_for() {
        let expired = Token { expires_at: Some(NOW), ..token(1, "old") };
        let used = Token { last_used_at: Some(NOW + TimeDelta::minutes(5)), ..token(2, "ci") };
        let text = table(&[expired, used], NOW);
        let lines: Vec<_> = text.lines().collect();
        assert!(lines[1].contains("expired") && lines[1].ends_with("old"), "{text}");
        assert!(
            lines[2].contains("ann    read,write  good") && lines[2].contains("1970-01-01 00:05"),
            "{text}"
        );
    }
}
