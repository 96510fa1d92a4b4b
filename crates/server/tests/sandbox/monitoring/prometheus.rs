//! A Prometheus server for one test.

use std::{
    fs,
    net::TcpListener,
    process::{Child, Command, Stdio},
    time::Duration,
};

use serde_json::Value;
use tempfile::TempDir;

use super::DEPLOY;
use crate::service::until;

pub(super) struct Prometheus {
    url: String,
    child: Child,
    _dir: TempDir,
}

impl Prometheus {
    /// Starts with the example configuration, shorter intervals and these targets.
    pub(super) fn watching(api: &str, worker: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let config = fs::read_to_string(format!("{DEPLOY}/prometheus/prometheus.yml")).unwrap();
        let replaced = [
            ("15s", "1s"),
            ("- alerts.yml", &format!("- {DEPLOY}/prometheus/alerts.yml")),
            ("127.0.0.1:8080", api),
            ("127.0.0.1:8081", worker),
        ];
        let config = replaced.iter().fold(config, |config, (from, to)| {
            assert!(config.contains(from), "{from} is not in {config}");
            config.replace(from, to)
        });
        let path = dir.path().join("prometheus.yml");
        fs::write(&path, config).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let log = fs::File::create(dir.path().join("log")).unwrap();
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", path.display()))
            .arg(format!("--storage.tsdb.path={}", dir.path().join("data").display()))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap_or_else(|error| panic!("prometheus: {error}; `ci/setup --test` installs it"));
        let this = Self { url: format!("http://127.0.0.1:{port}"), child, _dir: dir };
        until("prometheus", Duration::from_secs(20), || this.try_get("/-/ready", &[]).is_some());
        this
    }

    /// The current value of an expression.
    pub(super) fn query(&self, expression: &str) -> Vec<Value> {
        let answer = self.api("/api/v1/query", &[("query", expression)]);
        answer["result"].as_array().unwrap().clone()
    }

    /// How many series a selector finds.
    pub(super) fn series(&self, selector: &str) -> usize {
        self.api("/api/v1/series", &[("match[]", selector)]).as_array().unwrap().len()
    }

    /// The rules, with the result of their last evaluation.
    pub(super) fn rules(&self) -> Vec<Value> {
        let groups = self.api("/api/v1/rules", &[]);
        let groups = groups["groups"].as_array().unwrap().iter();
        groups.flat_map(|group| group["rules"].as_array().unwrap().clone()).collect()
    }

    fn api(&self, path: &str, query: &[(&str, &str)]) -> Value {
        let text = self.try_get(path, query).unwrap_or_else(|| panic!("{path} {query:?}: no answer"));
        let answer: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        assert_eq!(answer["status"], "success", "{query:?}: {answer}");
        answer["data"].clone()
    }

    fn try_get(&self, path: &str, query: &[(&str, &str)]) -> Option<String> {
        let agent: ureq::Agent = ureq::Agent::config_builder()
            .http_status_as_error(path.starts_with("/-/"))
            .timeout_global(Some(Duration::from_mins(2)))
            .build()
            .into();
        let request = agent.get(format!("{}{path}", self.url)).query_pairs(query.iter().copied());
        request.call().ok()?.body_mut().read_to_string().ok()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
