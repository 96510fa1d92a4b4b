//! Log-in at a real OpenID provider, on another site than the console.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader},
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Child, Command, Stdio},
};

use url::Url;

use super::{Browser, submit, token};
use crate::{ending::command, service::Service};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The provider as a process of its own. It knows one client, and everybody who names himself.
struct Provider {
    child: Child,
    /// Its address, which is the `iss` of its tokens.
    issuer: String,
}

impl Provider {
    fn start(redirect_url: &str) -> Self {
        let script = format!("{ROOT}/crates/server/tests/sandbox/console/oidc/provider.mjs");
        let packages = format!("{ROOT}/.tools/oidc");
        assert!(Path::new(&packages).exists(), "no OpenID provider; run `ci/setup --test` first");
        let mut child = Command::new("node")
            .args(["--input-type=module", "-", redirect_url])
            .current_dir(packages)
            .stdin(File::open(script).unwrap())
            .stdout(Stdio::piped())
            // It says that it is for tests.
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut issuer = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut issuer).unwrap();
        Self { child, issuer: issuer.trim().to_owned() }
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A service whose visitors can log in at a provider.
fn service() -> (Service, Provider) {
    let mut service = Service::prepare(&[("TAO_SLURM_AUTH", "tokens")]);
    let redirect_url = format!("{}{}", service.url, console::CALLBACK);
    let provider = Provider::start(&redirect_url);
    let at = |name: &str| service.log.with_file_name(name);
    let (settings, secret) = (at("login.toml"), at("client-secret"));
    fs::write(&secret, "provider-secret\n").unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    let text = format!(
        "[auth.jwt]\nissuer = \"{issuer}\"\naudience = [\"tao-slurm\"]\njwks_url = \"{issuer}/jwks\"\n\
         scope_claim = \"groups\"\nscope_words = {{ gpu-users = [\"read\", \"write\"] }}\n\
         [auth.jwt.login]\nclient_id = \"console\"\nclient_secret_file = \"{}\"\nredirect_url = \"{redirect_url}\"\n",
        secret.display(),
        issuer = provider.issuer,
    );
    fs::write(&settings, text).unwrap();
    service.set("TAO_SLURM_CONFIG", settings.to_str().unwrap());
    service.spawn();
    (service, provider)
}

/// Answers the question of the provider.
fn answer(browser: &Browser, name: &str, button: &str) {
    browser.sees("h1", "Who are you?");
    browser.fill("[name=name]", name);
    browser.press(button);
}

#[test]
fn a_visitor_logs_in_at_an_openid_provider() {
    let (service, provider) = service();
    for owner in ["jwt:ann", "jwt:bob"] {
        let mut job = command("true");
        job["name"] = format!("of-{owner}").into();
        submit(&service, &token(&service, owner, "read,write"), &job);
    }
    let browser = Browser::start(&service.url);
    browser.open("/ui/jobs?q=of");
    browser.sees("h1", "Log in");
    browser.check("log-in-at-issuer");
    browser.picture("log-in-at-issuer");
    browser.press("Log in with localhost");
    answer(&browser, "ann", "Cancel");
    browser.sees("#why", "canceled, or the issuer does not let you in. It says: <b>The visitor</b> said no");
    browser.press("Log in with localhost");
    answer(&browser, "ann", "Continue");
    browser.sees("table.jobs tbody", "of-jwt:ann");
    assert_eq!(browser.place(), "/ui/jobs?q=of");
    assert_eq!(browser.text(".who").unwrap(), "jwt:ann");
    assert!(!browser.text("main").unwrap().contains("of-jwt:bob"), "jobs of another owner");

    browser.press("Log out");
    browser.sees("h1", "Log in");
    assert_eq!(browser.place(), "/ui/login", "a log-out is followed by no log-in");
    // The provider still knows the visitor.
    browser.press("Log in with localhost");
    browser.sees("table.jobs tbody", "of-jwt:ann");
    browser.press("Log out");
    browser.sees("h1", "Log in");
    let requested = browser.requested_here_or_at(&provider.issuer);
    let back: Vec<_> = requested.iter().filter(|url| code(url).is_some()).collect();
    assert!(back.len() >= 2, "{requested:?}");
    // The address is in the browser's history.
    browser.open(back[back.len() - 1]);
    browser.sees("#why", "This log-in was used before");
    let log = service.log_text();
    for secret in back.iter().filter_map(|url| code(url)).chain(["provider-secret".into(), "eyJ".into()]) {
        assert!(!log.contains(&secret), "{secret} is in the log");
    }
    browser.finish_beside(&provider.issuer, &["status of 401"]);
}

/// The code in an address to which the provider sends a visitor.
fn code(url: &str) -> Option<String> {
    let url = Url::parse(url).unwrap();
    url.query_pairs().find_map(|(name, value)| (name == "code").then(|| value.into_owned()))
}

#[test]
fn a_token_of_the_provider_without_scopes_begins_no_session() {
    let (service, provider) = service();
    let browser = Browser::start(&service.url);
    browser.open("/ui/jobs");
    browser.press("Log in with localhost");
    answer(&browser, "eve", "Continue");
    browser.sees("#why", "The issuer's token is not accepted.");
    browser.sees("#why", "read");
    browser.open("/ui/jobs");
    browser.sees("h1", "Log in");
    assert_eq!(browser.place(), "/ui/login?next=%2Fui%2Fjobs");
    browser.finish_beside(&provider.issuer, &["status of 403"]);
}
