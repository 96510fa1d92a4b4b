//! The alerts and the dashboard of deploy/, with a real Prometheus that scrapes the real service.

mod expression;
mod names;
mod prometheus;

use std::{
    collections::BTreeSet,
    fs,
    net::TcpListener,
    process::{Child, Command},
    time::Duration,
};

use expression::selectors;
use prometheus::Prometheus;
use serde_json::{Value, json};

use crate::service::{Service, until};

const DEPLOY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy");

/// A worker process beside the API process.
struct WorkerProcess(Child);

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-TERM", &self.0.id().to_string()]).status();
        let _ = self.0.wait();
    }
}

#[test]
fn every_alert_and_panel_uses_existing_metrics() {
    let mut service = Service::prepare(&[]);
    service.role = "api";
    service.spawn();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let worker = format!("127.0.0.1:{port}");
    let process = service.command(&["serve", "--role", "worker", "--bind", &worker]).spawn().unwrap();
    let _worker = WorkerProcess(process);
    let prometheus = Prometheus::watching(service.url.trim_start_matches("http://"), &worker);

    // Before any event: an alert must work before the first occurrence of its cause.
    let rules = until_evaluated(&prometheus);
    assert_eq!(names(&rules), alerts());
    for rule in &rules {
        for selector in selectors(rule["query"].as_str().unwrap()) {
            // Only the metric of permanent failures may be missing.
            let selector = selector.replace("status=~\"5..\"", "status=~\".+\"");
            until(&format!("{selector} of {}", rule["name"]), Duration::from_secs(20), || {
                if selector.contains("/jobs/{id}/status") {
                    service.get("/jobs/00000000-0000-0000-0000-000000000000/status");
                }
                prometheus.series(&selector) > 0
            });
        }
    }

    let job = service.submit(&json!({"command": "true", "resources": {"num_gpus": 1}}));
    service.wait_ended(&job);
    for (title, expression) in panels() {
        until(&format!("{title}: {expression}"), Duration::from_secs(20), || {
            !prometheus.query(&expression).is_empty()
        });
    }
    let firing: Vec<Value> =
        prometheus.rules().into_iter().filter(|rule| rule["state"] == "firing").collect();
    assert_eq!(firing, Vec::<Value>::new());
}

/// The rules, after each was evaluated without an error.
fn until_evaluated(prometheus: &Prometheus) -> Vec<Value> {
    let mut rules = Vec::new();
    until("the rules to be evaluated", Duration::from_secs(20), || {
        rules = prometheus.rules();
        rules.iter().all(|rule| rule["health"] != "unknown")
            && !prometheus.query("up == 1").is_empty()
            && prometheus.query("up == 0").is_empty()
    });
    for rule in &rules {
        assert_eq!(rule["health"], "ok", "{rule}");
    }
    rules
}

fn names(rules: &[Value]) -> BTreeSet<String> {
    rules.iter().map(|rule| rule["name"].as_str().unwrap().to_owned()).collect()
}

/// The names of the alerts in the file.
fn alerts() -> BTreeSet<String> {
    let text = fs::read_to_string(format!("{DEPLOY}/prometheus/alerts.yml")).unwrap();
    text.lines().filter_map(|line| Some(line.split_once("- alert: ")?.1.to_owned())).collect()
}

/// The expressions of the dashboard with its variables filled in, each with the title of its panel.
fn panels() -> Vec<(String, String)> {
    let text = fs::read_to_string(format!("{DEPLOY}/grafana/tao-slurm.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let mut found = Vec::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let expression = target["expr"].as_str().unwrap();
            let filled = expression
                .replace("$cluster", ".*")
                .replace("$__rate_interval", "30s")
                .replace("$__range", "1h");
            assert!(!filled.contains('$'), "an unknown variable: {expression}");
            found.push((panel["title"].as_str().unwrap().to_owned(), filled));
        }
    }
    assert!(found.len() > 20, "the dashboard has lost its panels: {found:?}");
    found
}

#[test]
fn each_alert_is_tested_firing_and_not_firing() {
    let path = format!("{DEPLOY}/prometheus/alerts-test.yml");
    let tested = Command::new("promtool").args(["test", "rules", &path]).output().unwrap();
    assert!(tested.status.success(), "{}", String::from_utf8_lossy(&tested.stderr));
    // promtool does not complain about an alert without a test.
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let fires = |alert: &str| {
        let begins = format!("- alertname: {alert}");
        let seen =
            |place: usize| lines[place + 2] == "exp_alerts:" && lines[place + 3].starts_with("- exp_labels:");
        (0..lines.len()).any(|place| lines[place] == begins && seen(place))
    };
    let unseen: Vec<String> = alerts().into_iter().filter(|alert| !fires(alert)).collect();
    assert_eq!(unseen, Vec::<String>::new());
}

#[test]
fn operations_has_a_section_for_each_alert_and_no_others() {
    let operations = fs::read_to_string(format!("{DEPLOY}/../docs/operations.md")).unwrap();
    let sections: BTreeSet<String> = operations
        .lines()
        .filter_map(|line| line.strip_prefix("### TaoSlurm"))
        .map(|name| format!("TaoSlurm{name}"))
        .collect();
    assert_eq!(sections, alerts());
    let rules = fs::read_to_string(format!("{DEPLOY}/prometheus/alerts.yml")).unwrap();
    for alert in alerts() {
        let anchor = format!("runbook: docs/operations.md#{}\n", alert.to_lowercase());
        assert!(rules.contains(&anchor), "{alert} does not point to its section");
    }
}
