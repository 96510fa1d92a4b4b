//! The section `auth.jwt`: its values and its error messages.

use std::fs;

use test_case::test_case;

use super::{CLUSTER, faults, read};
use crate::config::{KeyPlace, declare::Section, render, settings};

/// The section of the example without its comment signs.
fn example_of_jwt(keys: &str) -> String {
    let text = include_str!("../../../../../deploy/config.example.toml");
    let (_, part) = text.split_once("# [auth.jwt]\n").unwrap();
    let (part, _) = part.split_once("\n\n").unwrap();
    let is_key = |line: &&str| line.split_once(" = ").is_some_and(|(name, _)| !name.contains(' '));
    let lines = part.lines().filter_map(|line| line.strip_prefix("# ")).filter(is_key);
    let lines: Vec<_> = lines
        .filter(|line| keys == "all" || !["jwks_file", "ca_file"].iter().any(|key| line.starts_with(key)))
        .collect();
    format!("[auth.jwt]\n{}\n", lines.join("\n"))
}

#[test]
fn the_jwt_example_is_complete_and_shows_the_defaults() {
    let config = read(&example_of_jwt("jwks_url"), CLUSTER).unwrap();
    let settings = config.settings.auth.jwt.clone().unwrap();
    let required = settings::Jwt {
        issuer: "https://login.example.org/".to_owned(),
        audience: vec!["tao-slurm".to_owned()],
        jwks_url: Some("https://login.example.org/keys".to_owned()),
        ..settings::Jwt::default()
    };
    assert_eq!(format!("{settings:?}"), format!("{required:?}"));
    let KeyPlace::Url { url, .. } = config.jwt.unwrap().keys else { panic!("a file") };
    assert_eq!(url, "https://login.example.org/keys");
    let all = example_of_jwt("all");
    // `login` is a section of its own.
    for key in settings::Jwt::KEYS.iter().map(|key| key.name).filter(|name| *name != "login") {
        assert!(all.contains(&format!("\n{key} = ")), "{key} is not in the example");
    }
    let both = faults(&all, CLUSTER);
    assert!(
        both.contains(&"auth.jwt: has both jwks_file and jwks_url; leave one out".to_owned()),
        "{both:#?}"
    );
    assert!(
        both.iter().any(|line| line.starts_with("auth.jwt.ca_file: /etc/tao-slurm/ca.pem: cannot be read"))
    );
    assert!(read("", CLUSTER).unwrap().jwt.is_none());
}

#[test]
fn the_jwt_section_is_shown_as_it_was_read() {
    let toml = "[auth.jwt]\nissuer = \"x\"\naudience = [\"y\"]\njwks_url = \"http://[::1]:1/k\"\n\
                scope_words = { \"a b\" = [\"read\", \"admin\"] }\n";
    let config = read(toml, CLUSTER).unwrap();
    let words = &config.jwt.as_ref().unwrap().terms.mapping.words;
    assert_eq!(words["a b"].to_words(), ["read", "admin"]);
    let shown = render(&config.settings);
    let again = read(&shown, &[]).unwrap();
    assert_eq!(render(&again.settings), shown);
    assert_eq!(format!("{:?}", again.settings.auth), format!("{:?}", config.settings.auth));
}

#[test_case("issuer = \"\"", "auth.jwt.issuer: is missing" ; "nobody signs")]
#[test_case("audience = []", "auth.jwt.audience: is missing" ; "for everybody")]
#[test_case("algorithms = [\"HS256\"]", "auth.jwt.algorithms: \"HS256\": must be one of RS256" ; "a shared secret")]
#[test_case("algorithms = [\"none\"]", "auth.jwt.algorithms: \"none\": must be one of RS256" ; "no signature")]
#[test_case("algorithms = []", "auth.jwt.algorithms: is empty" ; "no algorithm")]
#[test_case("jwks_url = \"http://login.example.org/keys\"", "auth.jwt.jwks_url: must begin with https://" ; "keys in the open")]
#[test_case("jwks_url = \"http://localhost.example.org/\"", "auth.jwt.jwks_url: must begin with https://" ; "only called like this machine")]
#[test_case("jwks_url = \"file:///etc/keys\"", "auth.jwt.jwks_url: has no host" ; "a file as an address")]
#[test_case("jwks_url = \"keys\"", "auth.jwt.jwks_url: is not a URL" ; "no address")]
#[test_case("leeway = \"6m\"", "auth.jwt.leeway: is more than 5m" ; "too much leeway")]
#[test_case("leeway = 5", "t.toml: auth.jwt.leeway: 5 is not a duration" ; "leeway of what")]
#[test_case("jwks_pause = \"0s\"", "auth.jwt.jwks_pause: is less than 1s" ; "no pause")]
#[test_case("jwks_keep = \"2d\"", "auth.jwt.jwks_keep: must be from jwks_pause to 24h" ; "kept for days")]
#[test_case("owner_claim = \"\"", "auth.jwt.owner_claim: is empty" ; "no owner")]
#[test_case("scope_words = { x = [\"root\"] }", "auth.jwt.scope_words.x: must be a list of read" ; "an unknown scope")]
#[test_case("scope_words = { x = [] }", "auth.jwt.scope_words.x: must be a list of read" ; "a word for nothing")]
fn a_jwt_fault_names_its_key_and_the_remedy(line: &str, expected: &str) {
    let key = line.split(' ').next().unwrap();
    let example = example_of_jwt("jwks_url");
    let others = example.lines().filter(|other| !other.starts_with(&format!("{key} =")));
    let toml = others.chain([line]).collect::<Vec<_>>().join("\n");
    let found = faults(&toml, CLUSTER);
    let [only] = found.as_slice() else { panic!("{found:#?}") };
    assert!(only.contains(expected), "{only}");
}

#[test]
fn a_key_file_must_hold_a_usable_key() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jwks.json");
    let of = |text: Option<&str>| {
        if let Some(text) = text {
            fs::write(&path, text).unwrap();
        }
        let toml =
            format!("[auth.jwt]\nissuer = \"x\"\naudience = [\"y\"]\njwks_file = \"{}\"", path.display());
        read(&toml, CLUSTER).map(drop).map_err(|problems| problems.lines().join(" "))
    };
    assert!(of(None).unwrap_err().contains("cannot be read (No such file"));
    assert!(of(Some("<html>")).unwrap_err().contains("is not a JSON Web Key Set (RFC 7517)"));
    let secret = r#"{"keys": [{"kty": "oct", "k": "c2VjcmV0"}]}"#;
    assert!(of(Some(secret)).unwrap_err().contains("holds no public key"));
    let key =
        r#"{"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc"}]}"#;
    assert_eq!(of(Some(key)), Ok(()));
}
