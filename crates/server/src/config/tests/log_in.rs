//! The section `auth.jwt.login`: its values and its error messages.

use std::{fs, os::unix::fs::PermissionsExt};

use secrecy::ExposeSecret;
use test_case::test_case;

use super::{CLUSTER, faults, read};
use crate::config::{TokenKind, client_secret, declare::Section, render, settings};

const JWT: &str = "[auth.jwt]\nissuer = \"https://login.example.org/\"\naudience = [\"tao-slurm\", \"both\"]\n\
                   jwks_url = \"https://login.example.org/keys\"\n";

/// The section of the example without its comment signs.
fn example_of_login() -> Vec<String> {
    let text = include_str!("../../../../../deploy/config.example.toml");
    let (_, part) = text.split_once("# [auth.jwt.login]\n").unwrap();
    let (part, _) = part.split_once("\n\n").unwrap();
    let is_key = |line: &&str| line.split_once(" = ").is_some_and(|(name, _)| !name.contains(' '));
    part.lines().filter_map(|line| line.strip_prefix("# ")).filter(is_key).map(str::to_owned).collect()
}

/// The settings of a public client with these lines in the place of the example's.
fn with(lines: &[&str]) -> String {
    let name = |line: &str| line.split(' ').next().unwrap().to_owned();
    let replaced: Vec<_> =
        lines.iter().map(|line| name(line)).chain(["client_secret_file".to_owned()]).collect();
    let kept = example_of_login().into_iter().filter(|line| !replaced.contains(&name(line)));
    let lines: Vec<_> = kept.chain(lines.iter().map(|line| (*line).to_owned())).collect();
    format!("{JWT}[auth.jwt.login]\n{}\n", lines.join("\n"))
}

#[test]
fn the_login_example_is_complete_and_shows_the_defaults() {
    let all = example_of_login().join("\n");
    for key in settings::Login::KEYS.iter().map(|key| key.name) {
        assert!(format!("\n{all}").contains(&format!("\n{key} = ")), "{key} is not in the example");
    }
    let login = read(&with(&[]), CLUSTER).unwrap().jwt.unwrap().login.unwrap();
    assert_eq!(
        (login.issuer.as_str(), login.client_id.as_str()),
        ("https://login.example.org/", "tao-slurm-console")
    );
    assert_eq!(login.redirect_url.as_str(), "https://console.example.org/ui/login/callback");
    assert_eq!(
        (login.scopes.as_slice(), login.token),
        (["openid".to_owned()].as_slice(), TokenKind::AccessToken)
    );
    assert_eq!(login.secret_file, None);
    assert!(read(JWT, CLUSTER).unwrap().jwt.unwrap().login.is_none());
}

#[test]
fn the_login_section_is_shown_as_it_was_read() {
    let config = read(&with(&["token = \"id_token\"", "client_id = \"both\""]), CLUSTER).unwrap();
    let shown = render(&config.settings);
    let again = read(&shown, &[]).unwrap();
    assert_eq!(render(&again.settings), shown);
    assert_eq!(again.jwt.unwrap().login.unwrap().token, TokenKind::IdToken);
}

#[test_case("client_id = \"\"", "auth.jwt.login.client_id: is missing" ; "no name")]
#[test_case("redirect_url = \"\"", "auth.jwt.login.redirect_url: is not a URL" ; "no address")]
#[test_case("redirect_url = \"http://console.example.org/ui/login/callback\"", "auth.jwt.login.redirect_url: must begin with https://" ; "codes in the open")]
#[test_case("redirect_url = \"https://console.example.org/\"", "auth.jwt.login.redirect_url: must be the console's address with /ui/login/callback" ; "another path")]
#[test_case("redirect_url = \"https://console.example.org/ui/login/callback?a=b\"", "must be the console's address" ; "a query")]
#[test_case("redirect_url = \"https://me@console.example.org/ui/login/callback\"", "must be the console's address" ; "a user")]
#[test_case("scopes = [\"openid groups\"]", "auth.jwt.login.scopes: \"openid groups\" is not a scope" ; "two scopes in one")]
#[test_case("scopes = [\"\"]", "auth.jwt.login.scopes: \"\" is not a scope" ; "an empty scope")]
#[test_case("token = \"id_token\"", "auth.jwt.login.token: is \"id_token\", which is for the client alone; add \"tao-slurm-console\" to auth.jwt.audience" ; "a token for somebody else")]
#[test_case("token = \"refresh_token\"", "auth.jwt.login.token: \"refresh_token\" is not \"access_token\" or \"id_token\"" ; "another kind")]
#[test_case("client_secret_file = \"/nowhere/secret\"", "auth.jwt.login.client_secret_file: /nowhere/secret: cannot be read (No such file" ; "no secret")]
fn a_login_fault_names_its_key_and_the_remedy(line: &str, expected: &str) {
    let found = faults(&with(&[line]), CLUSTER);
    let [only] = found.as_slice() else { panic!("{found:#?}") };
    assert!(only.contains(expected), "{only}");
}

#[test]
fn an_id_token_needs_its_scope() {
    let lines = ["token = \"id_token\"", "client_id = \"both\"", "scopes = [\"groups\"]"];
    let found = faults(&with(&lines), CLUSTER);
    assert!(found[0].contains("auth.jwt.login.scopes: lacks \"openid\"") && found.len() == 1, "{found:#?}");
}

#[test_case("http://login.example.org/", "must begin with https://" ; "in the open")]
#[test_case("login.example.org", "is not a URL" ; "a name")]
#[test_case("https://login.example.org/?tenant=1", "has `?` or `#`" ; "a query")]
fn the_issuer_of_a_login_is_an_address(issuer: &str, expected: &str) {
    let replaced = |toml: &str| toml.replace("https://login.example.org/\"", &format!("{issuer}\""));
    let found = faults(&replaced(&with(&[])), CLUSTER);
    assert!(found[0].starts_with("auth.jwt.issuer: ") && found[0].contains(expected), "{found:#?}");
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(read(&replaced(JWT), CLUSTER).is_ok(), "without a log-in it is a name");
}

#[test]
fn without_tokens_there_is_no_login() {
    let found = faults(&with(&[]), &[CLUSTER, &[("TAO_SLURM_AUTH", "disabled")]].concat());
    assert!(
        found[0].starts_with("auth.jwt.login: is for callers with tokens") && found.len() == 1,
        "{found:#?}"
    );
}

#[test]
fn a_clients_secret_is_for_the_service_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("secret");
    let of = |text: &str, mode: u32| {
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        client_secret(&path).map(|secret| secret.expose_secret().to_owned())
    };
    assert_eq!(of("s3cret\n", 0o640).unwrap(), "s3cret");
    for (text, mode, expected) in [
        ("s3cret", 0o644, "other users can read it (mode 644); run: chmod 600"),
        (" \n", 0o600, "is empty"),
        (&"s3cret".repeat(1000), 0o600, "has more than 4096 bytes"),
    ] {
        let error = of(text, mode).unwrap_err();
        assert!(error.contains(expected) && !error.contains("s3cret"), "{error}");
    }
}
