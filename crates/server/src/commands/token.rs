//! `tao-slurm token create`: a secret that is shown once and stored only as its hash.

use std::{fs, process::ExitCode};

use anyhow::{Context, bail};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use chrono::TimeDelta;
use domain::{Clock, Ids, Networks, Owner, Timestamp, Webhook, WebhookRequest};
use persistence::{NewToken, Scopes};
use rand::RngCore;
use sha2::{Digest, Sha256};

use super::output::{Output, remark};
use crate::{
    cli::{Scope, TokenArgs},
    config::{Config, Environment},
    database::connect::Database,
    process::clock::{RandomIds, SystemClock},
};

/// Lets secret scanners and people see what it is.
const PREFIX: &str = "tsl_";

pub(super) async fn create(
    config: Config,
    environment: Environment,
    args: TokenArgs,
) -> anyhow::Result<ExitCode> {
    let mut random = [0; 32];
    rand::rng().fill_bytes(&mut random);
    let webhook = webhook(&args, &config.webhook_networks)?;
    let (text, token) = make(&args, random, webhook, &SystemClock, &RandomIds)?;
    let database = Database::open_current(&config, &environment).await?;
    let stored = database.store.create_token(&token).await.context("cannot store the token");
    database.close().await?;
    stored?;
    let mut output = Output::new();
    if args.json {
        let document = serde_json::json!({
            "token": text,
            "id": token.id,
            "name": token.name,
            "owner": token.owner.as_str(),
            "expires_at": token.expires_at,
            "webhook": token.webhook.is_some(),
        });
        output.line(&document.to_string())?;
    } else {
        output.line(&text)?;
        remark(
            "This is the only time it is shown. Use it as `Authorization: Bearer …`, or in TAO_SLURM_TOKEN.",
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn make(
    args: &TokenArgs,
    random: [u8; 32],
    webhook: Option<Webhook>,
    clock: &dyn Clock,
    ids: &dyn Ids,
) -> anyhow::Result<(String, NewToken)> {
    let owner = args.owner.trim();
    if owner.is_empty() {
        bail!("--owner must not be empty: it says whose jobs the bearer sees");
    }
    let text = format!("{PREFIX}{}", BASE64_URL_SAFE_NO_PAD.encode(random));
    let created_at = clock.now();
    let token = NewToken {
        id: ids.lease(),
        name: args.name.clone().unwrap_or_else(|| owner.to_owned()),
        owner: Owner::new(owner),
        hash: Sha256::digest(&text).into(),
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

/// Whom the token's jobs tell. The secret comes in a file: what stands in a command line is seen by everybody.
fn webhook(args: &TokenArgs, networks: &Networks) -> anyhow::Result<Option<Webhook>> {
    let (Some(url), Some(path)) = (&args.webhook_url, &args.webhook_secret_file) else { return Ok(None) };
    let secret = fs::read_to_string(path)
        .with_context(|| format!("cannot read the secret in {} (--webhook-secret-file)", path.display()))?;
    let request = WebhookRequest { url: url.clone(), secret: secret.trim().to_owned() };
    Webhook::from_request(&request, networks).map(Some).map_err(|faults| {
        let said = faults.into_iter().map(|fault| match fault.pointer.as_str() {
            "/webhook/url" => format!("--webhook-url: {}", fault.detail),
            _ => format!("--webhook-secret-file: {}", fault.detail),
        });
        anyhow::anyhow!(said.collect::<Vec<_>>().join("; "))
    })
}

fn expiry(created_at: Timestamp, after: std::time::Duration) -> anyhow::Result<Timestamp> {
    let after = TimeDelta::from_std(after).ok();
    after
        .and_then(|after| created_at.checked_add_signed(after))
        .context("--expires-in is too long; leave it out for a token that does not expire")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn args() -> TokenArgs {
        TokenArgs {
            owner: "vision".to_owned(),
            scope: vec![Scope::Read, Scope::Write],
            name: None,
            expires_in: Some(Duration::from_mins(1)),
            webhook_url: None,
            webhook_secret_file: None,
            json: false,
        }
    }

    #[test]
    fn a_token_is_stored_as_the_hash_of_what_is_shown() {
        let (text, token) = make(&args(), [255; 32], None, &SystemClock, &RandomIds).unwrap();
        assert_eq!(text, format!("tsl_{}8", "_".repeat(42)));
        assert_eq!(token.hash, <[u8; 32]>::from(Sha256::digest(text.as_bytes())));
        assert_eq!(token.scopes, Scopes { read: true, write: true, admin: false });
        assert_eq!(token.expires_at, Some(token.created_at + TimeDelta::seconds(60)));
        assert_eq!((token.owner.as_str(), token.name.as_str()), ("vision", "vision"));
    }

    #[test]
    fn nobody_owns_nothing() {
        let nobody = TokenArgs { owner: " ".to_owned(), ..args() };
        assert!(make(&nobody, [0; 32], None, &SystemClock, &RandomIds).is_err());
    }

    #[test]
    fn an_expiry_beyond_all_time_is_refused() {
        let args = TokenArgs { expires_in: Some(Duration::MAX), ..args() };
        assert!(
            make(&args, [0; 32], None, &SystemClock, &RandomIds)
                .unwrap_err()
                .to_string()
                .contains("--expires-in")
        );
    }

    #[test]
    fn a_webhook_is_an_address_and_a_file_with_its_secret() {
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
}
