//! The web console in a real browser.

mod attacks;
mod browser;
mod docs_page;
mod elsewhere;
mod every_page;
mod flows;
mod hoard;
mod issuer;
mod payloads;
mod pictures;
mod stored;

use axum::http::Method;
use serde_json::Value;

use crate::service::Service;
use browser::Browser;

/// A script that reports what stored texts have made of a page.
const ODD: &str = include_str!("console/odd.js");

/// A service that asks for tokens.
fn service() -> Service {
    Service::start_with(&[("TAO_SLURM_AUTH", "tokens")])
}

/// A new token of this owner.
fn token(service: &Service, owner: &str, scopes: &str) -> String {
    let made = service.run(&["token", "create", "--owner", owner, "--scope", scopes]);
    assert!(made.status.success(), "{made:?}");
    String::from_utf8(made.stdout).unwrap().trim().to_owned()
}

/// Submits a job with a token, and returns its id.
fn submit(service: &Service, token: &str, job: &Value) -> String {
    let answer = send(service, token, "/jobs", job);
    assert_eq!(answer.0, 201, "{}", answer.1);
    answer.1["id"].as_str().unwrap().to_owned()
}

fn send(service: &Service, token: &str, path: &str, body: &Value) -> (u16, Value) {
    let authorization = format!("Bearer {token}");
    let headers = [("authorization", authorization.as_str())];
    let answer = service.post_with(&service.url, path, &headers, &body.to_string());
    (answer.status, answer.json())
}

/// A browser that has logged in.
fn visitor(service: &Service, token: &str) -> Browser {
    let browser = Browser::start(&service.url);
    browser.open("/ui/jobs");
    browser.fill("#token", token);
    browser.press("Log in");
    browser.sees("h1", "Jobs");
    browser
}

/// The log-in at an issuer, which only a service with an issuer has.
const BY_ISSUER: [&str; 2] = ["/ui/login/start", "/ui/login/callback"];

/// Every address of the pages and of what they do, with these ids in the place of its parameters.
fn addresses(job: &str, pipeline: &str) -> Vec<(Method, String)> {
    let actions = ["cancel", "retry", "pause", "resume", "delete", "redeliver"];
    let mut addresses = Vec::new();
    let left_out = |path: &str| path.starts_with("/ui/assets/") || BY_ISSUER.contains(&path);
    for (method, path) in console::addresses().filter(|(_, path)| !left_out(path)) {
        let id = if path.starts_with("/ui/jobs/") { job } else { pipeline };
        let path = path.replace("{id}", id).replace("{name}", "sandbox");
        let known = actions.iter().map(|action| path.replace("{action}", action));
        let paths: Vec<_> = known.take(if path.contains("{action}") { actions.len() } else { 1 }).collect();
        assert!(!paths[0].contains('{'), "{path} has a parameter that the tests do not know");
        addresses.extend(paths.into_iter().map(|path| (method.clone(), path)));
    }
    addresses
}
