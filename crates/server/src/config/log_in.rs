//! The check of the section `auth.jwt.login`.

use std::{
    fs::{self, File},
    io::{self, Read},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use secrecy::SecretString;
use url::Url;
use webhooks::Authorities;

use super::{
    environment::Environment,
    problems::Problems,
    secure_url::{Insecure, secure_url},
    settings::{Jwt, Login, TokenKind},
};

const LONGEST_SECRET: u64 = 4096;

/// How visitors of the console log in at the issuer of tokens.
#[derive(Debug, Clone)]
pub(crate) struct LogInConfig {
    /// Exactly as the tokens and the issuer's own document have it.
    pub(crate) issuer: String,
    pub(crate) client_id: String,
    /// None for a public client.
    pub(crate) secret_file: Option<PathBuf>,
    pub(crate) redirect_url: Url,
    pub(crate) scopes: Vec<String>,
    pub(crate) token: TokenKind,
    pub(crate) authorities: Authorities,
}

pub(super) fn check(
    jwt: &mut Jwt,
    authorities: &Authorities,
    environment: &Environment,
    problems: &mut Problems,
) -> Option<LogInConfig> {
    let login = jwt.login.as_mut()?;
    login.client_secret_file = login.client_secret_file.take().map(|path| environment.expand(path));
    if login.client_id.trim().is_empty() {
        let advice =
            "is missing; write the name of this service at the issuer, such as \"tao-slurm-console\"";
        problems.add("auth.jwt.login.client_id", advice);
    }
    if let Some(path) = &login.client_secret_file
        && let Err(error) = client_secret(path)
    {
        problems.add(format_args!("auth.jwt.login.client_secret_file: {}", path.display()), error);
    }
    scopes(login, problems);
    if login.token == TokenKind::IdToken && !jwt.audience.contains(&login.client_id) {
        let advice = format_args!(
            "is \"id_token\", which is for the client alone; add {:?} to auth.jwt.audience, or write \"access_token\"",
            login.client_id
        );
        problems.add("auth.jwt.login.token", advice);
    }
    if let Err(advice) = issuer(&jwt.issuer) {
        problems.add("auth.jwt.issuer", advice);
    }
    let redirect_url =
        redirect(&login.redirect_url).map_err(|advice| problems.add("auth.jwt.login.redirect_url", advice));
    Some(LogInConfig {
        issuer: jwt.issuer.clone(),
        client_id: login.client_id.clone(),
        secret_file: login.client_secret_file.clone(),
        redirect_url: redirect_url.ok()?,
        scopes: login.scopes.clone(),
        token: login.token,
        authorities: authorities.clone(),
    })
}

/// Reads a client's secret. Errors do not have it.
pub(crate) fn client_secret(path: &Path) -> Result<SecretString, String> {
    let found = fs::metadata(path).map_err(unreadable)?;
    let mode = found.permissions().mode() & 0o777;
    if mode & 0o007 != 0 {
        return Err(format!("other users can read it (mode {mode:03o}); run: chmod 600 {}", path.display()));
    }
    let mut text = String::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(LONGEST_SECRET + 1).read_to_string(&mut text).map_err(unreadable)?;
    match text.trim() {
        "" => {
            Err("is empty; write the client's secret into it, or leave it out for a public client".to_owned())
        }
        _ if text.len() as u64 > LONGEST_SECRET => Err(format!("has more than {LONGEST_SECRET} bytes")),
        secret => Ok(SecretString::from(secret)),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn unreadable(error: io::Error) -> String {
    format!("cannot be read ({error})")
}

/// The characters of a scope are those of RFC 6749 §3.3.
fn scopes(login: &Login, problems: &mut Problems) {
    let is_scope = |scope: &String| {
        !scope.is_empty()
            && scope.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\'))
    };
    for scope in login.scopes.iter().filter(|scope| !is_scope(scope)) {
        let advice =
            format_args!("{scope:?} is not a scope; write one word in each string, such as \"openid\"");
        problems.add("auth.jwt.login.scopes", advice);
    }
    if login.token == TokenKind::IdToken && !login.scopes.iter().any(|scope| scope == "openid") {
        problems.add("auth.jwt.login.scopes", "lacks \"openid\", without which there is no ID token; add it");
    }
}

/// Who can change the issuer's document can read the codes and tokens of every visitor.
fn issuer(text: &str) -> Result<(), String> {
    // That it is missing is a problem already.
    if text.trim().is_empty() {
        return Ok(());
    }
    let example = "write for example \"https://login.example.org/\", or leave out auth.jwt.login";
    let url = secure_url(text).map_err(|error| format!("{error}, so that visitors can log in; {example}"))?;
    if url.query().is_some() || url.fragment().is_some() {
        return Err(format!("has `?` or `#`, which the address of an issuer cannot have; {example}"));
    }
    Ok(())
}

fn redirect(text: &str) -> Result<Url, String> {
    let example = format!("write for example \"https://console.example.org{}\"", console::CALLBACK);
    let url = secure_url(text).map_err(|error| match error {
        Insecure::Open => {
            format!("{error}, because who can read it on the way can log in as the visitor; {example}")
        }
        Insecure::NoUrl | Insecure::NoHost => format!("{error}; {example}"),
    })?;
    let has_more = url.query().is_some() || url.fragment().is_some();
    if has_more || !url.username().is_empty() || url.password().is_some() || url.path() != console::CALLBACK {
        return Err(format!("must be the console's address with {}; {example}", console::CALLBACK));
    }
    Ok(url)
}
