//! The check of the section `auth.jwt`.

use std::{fs, path::PathBuf, time::Duration};

use api::{ClaimMapping, JwtAlgorithm, JwtTerms, KeyPace, usable_keys};
use chrono::TimeDelta;
use persistence::Scopes;
use webhooks::Authorities;

use super::{
    authorities,
    environment::Environment,
    log_in::{self, LogInConfig},
    problems::Problems,
    secure_url::{Insecure, secure_url},
    settings::Jwt,
};

const LONGEST_LEEWAY: Duration = Duration::from_mins(5);
const SHORTEST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_KEEP: Duration = Duration::from_hours(24);

#[derive(Debug, Clone)]
pub(crate) struct JwtConfig {
    pub(crate) terms: JwtTerms,
    pub(crate) keys: KeyPlace,
    /// How visitors of the console log in at the issuer; none if they enter tokens only.
    pub(crate) login: Option<LogInConfig>,
}

#[derive(Debug, Clone)]
pub(crate) enum KeyPlace {
    File(PathBuf),
    Url { url: String, authorities: Authorities },
}

/// None if the keys cannot be found, which is then among the problems.
pub(super) fn check(
    settings: &mut Jwt,
    environment: &Environment,
    problems: &mut Problems,
) -> Option<JwtConfig> {
    settings.jwks_file = settings.jwks_file.take().map(|path| environment.expand(path));
    if settings.issuer.trim().is_empty() {
        problems.add(
            "auth.jwt.issuer",
            "is missing; write the `iss` of the tokens, such as \"https://login.example.org/\"",
        );
    }
    if settings.audience.iter().all(|one| one.trim().is_empty()) {
        problems.add(
            "auth.jwt.audience",
            "is missing, so tokens for other services would be valid here; write for example [\"tao-slurm\"]",
        );
    }
    let algorithms = algorithms(&settings.algorithms, problems);
    let authorities = authorities::read("auth.jwt.ca_file", &mut settings.ca_file, environment, problems);
    let login = log_in::check(settings, &authorities, environment, problems);
    let keys = place(settings, authorities, &algorithms, problems);
    if settings.leeway > LONGEST_LEEWAY {
        problems.add("auth.jwt.leeway", "is more than 5m; write for example \"30s\"");
    }
    if settings.jwks_pause < SHORTEST_PAUSE {
        problems.add("auth.jwt.jwks_pause", "is less than 1s; write for example \"30s\"");
    }
    if settings.jwks_keep < settings.jwks_pause || settings.jwks_keep > LONGEST_KEEP {
        problems.add("auth.jwt.jwks_keep", "must be from jwks_pause to 24h; write for example \"10m\"");
    }
    for (key, claim) in [("owner_claim", &settings.owner_claim), ("scope_claim", &settings.scope_claim)] {
        if claim.is_empty() {
            problems.add(
                format_args!("auth.jwt.{key}"),
                "is empty; name a claim, or leave it out for the default",
            );
        }
    }
    let words = words(settings, problems);
    let leeway = TimeDelta::from_std(settings.leeway).unwrap_or_default();
    let mapping = ClaimMapping {
        owner: settings.owner_claim.clone(),
        owner_prefix: settings.owner_prefix.clone(),
        scopes: settings.scope_claim.clone(),
        words,
    };
    let pace = KeyPace { keep: settings.jwks_keep, pause: settings.jwks_pause };
    let terms = JwtTerms {
        issuer: settings.issuer.clone(),
        audience: settings.audience.clone(),
        algorithms,
        mapping,
        leeway,
        pace,
    };
    Some(JwtConfig { terms, keys: keys?, login })
}

fn algorithms(names: &[String], problems: &mut Problems) -> Vec<JwtAlgorithm> {
    if names.is_empty() {
        problems.add(
            "auth.jwt.algorithms",
            "is empty, so every token would be refused; write for example [\"RS256\"]",
        );
    }
    let read = |name: &String| problems.parse(format_args!("auth.jwt.algorithms: {name:?}"), name);
    names.iter().filter_map(read).collect()
}

fn place(
    settings: &Jwt,
    authorities: Authorities,
    algorithms: &[JwtAlgorithm],
    problems: &mut Problems,
) -> Option<KeyPlace> {
    match (&settings.jwks_file, &settings.jwks_url) {
        (Some(path), None) => {
            let read = fs::read(path).map_err(|error| format!("cannot be read ({error})"));
            match read.and_then(|text| usable_keys(&text, algorithms).map_err(|error| error.to_string())) {
                Ok(0) => problems.add(
                    format_args!("auth.jwt.jwks_file: {}", path.display()),
                    "holds no public key for any of auth.jwt.algorithms; add one",
                ),
                Ok(_) => {}
                Err(error) => problems.add(format_args!("auth.jwt.jwks_file: {}", path.display()), error),
            }
            Some(KeyPlace::File(path.clone()))
        }
        (None, Some(url)) => match fetchable(url) {
            Ok(url) => Some(KeyPlace::Url { url, authorities }),
            Err(advice) => {
                problems.add("auth.jwt.jwks_url", advice);
                None
            }
        },
        (None, None) => {
            problems.add("auth.jwt", "has neither jwks_url nor jwks_file; set one of them");
            None
        }
        (Some(_), Some(_)) => {
            problems.add("auth.jwt", "has both jwks_file and jwks_url; leave one out");
            None
        }
    }
}

fn fetchable(text: &str) -> Result<String, String> {
    let url = secure_url(text).map_err(|error| match error {
        Insecure::Open => format!("{error}, because who can change the keys can sign any token"),
        error => format!("{error}; write for example \"https://login.example.org/keys\""),
    })?;
    Ok(url.into())
}

fn words(settings: &Jwt, problems: &mut Problems) -> std::collections::BTreeMap<String, Scopes> {
    let ours = ["read", "write", "admin"];
    for (word, scopes) in &settings.scope_words {
        if scopes.is_empty() || scopes.iter().any(|scope| !ours.contains(&scope.as_str())) {
            problems.add(
                format_args!("auth.jwt.scope_words.{word}"),
                "must be a list of read, write and admin, such as [\"read\", \"write\"]",
            );
        }
    }
    settings.scope_words.iter().map(|(word, scopes)| (word.clone(), Scopes::from_words(scopes))).collect()
}
