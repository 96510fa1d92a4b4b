//! Single API requests over persistent connections, as a client program sends them. See `load` for many clients and `watch` for
//! event streams.

use std::{io::Read, sync::Arc, time::Duration};

use anyhow::{Context, ensure};
use serde_json::Value;

/// Clones share their connections.
#[derive(Debug, Clone)]
pub(crate) struct Http {
    /// Address and port.
    pub(crate) host: String,
    pub(crate) token: Arc<str>,
    agent: ureq::Agent,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) etag: Option<String>,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn json(&self) -> anyhow::Result<Value> {
        serde_json::from_str(&self.text).with_context(|| format!("not JSON: {:.200}", self.text))
    }

    /// The document of a successful request.
    pub(crate) fn ok(&self) -> anyhow::Result<Value> {
        ensure!((200..300).contains(&self.status), "{}: {:.500}", self.status, self.text);
        self.json()
    }
}

impl Http {
    pub(crate) fn new(host: String, token: String) -> Self {
        let config = ureq::Agent::config_builder().http_status_as_error(false);
        let agent = config.timeout_global(Some(Duration::from_mins(2))).build().into();
        Self { host, token: token.into(), agent }
    }

    pub(crate) fn get(&self, path: &str) -> anyhow::Result<Answer> {
        let request = self.agent.get(format!("http://{}{path}", self.host));
        read(request.header("authorization", format!("Bearer {}", self.token)).call()?)
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> anyhow::Result<Answer> {
        let request = self.agent.post(format!("http://{}{path}", self.host));
        let request = request.header("authorization", format!("Bearer {}", self.token));
        // Some operations take no body.
        if body.is_null() {
            return read(request.send_empty()?);
        }
        read(request.header("content-type", "application/json").send(body.to_string())?)
    }

    /// Submits a job and returns its id.
    pub(crate) fn submit(&self, job: &Value) -> anyhow::Result<String> {
        let document = self.post("/jobs", job)?.ok()?;
        Ok(document["id"].as_str().context("the answer has no job id")?.to_owned())
    }
}

fn read(mut answer: ureq::http::Response<ureq::Body>) -> anyhow::Result<Answer> {
    let mut bytes = Vec::new();
    answer.body_mut().as_reader().read_to_end(&mut bytes)?;
    let etag = answer.headers().get("etag").and_then(|tag| tag.to_str().ok()).map(str::to_owned);
    Ok(Answer { status: answer.status().as_u16(), etag, text: String::from_utf8_lossy(&bytes).into_owned() })
}
