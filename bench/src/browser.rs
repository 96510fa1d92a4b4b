//! A visitor of the console, as far as the service notices one: a session, pages, and the stream that wakes a page.

use std::{
    io::{BufRead, BufReader},
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};

use crate::http::Http;

/// The headers with which a page asks for its visible part.
const RENEWAL: [(&str, &str); 2] = [("hx-request", "true"), ("hx-target", "live")];

#[derive(Debug, Clone)]
pub(crate) struct Browser {
    host: String,
    cookie: String,
    agent: ureq::Agent,
}

impl Browser {
    /// Logs in with the token of `http`.
    pub(crate) fn log_in(http: &Http) -> anyhow::Result<Self> {
        let config = ureq::Agent::config_builder().http_status_as_error(false).max_redirects(0);
        let agent: ureq::Agent = config.build().into();
        let request = agent.post(format!("http://{}/ui/login", http.host));
        let answer = request
            .header("sec-fetch-site", "same-origin")
            .header("content-type", "application/x-www-form-urlencoded")
            .send(format!("token={}", http.token))?;
        let cookie = answer.headers().get("set-cookie").and_then(|cookie| cookie.to_str().ok());
        let cookie =
            cookie.and_then(|cookie| cookie.split(';').next()).context("the console gives no session")?;
        Ok(Self { host: http.host.clone(), cookie: cookie.to_owned(), agent })
    }

    /// A whole page.
    pub(crate) fn page(&self, path: &str) -> anyhow::Result<String> {
        self.get(path, &[])
    }

    /// The part of a page that is renewed.
    pub(crate) fn renewal(&self, path: &str) -> anyhow::Result<String> {
        self.get(path, &RENEWAL)
    }

    fn get(&self, path: &str, headers: &[(&str, &str)]) -> anyhow::Result<String> {
        let mut request =
            self.agent.get(format!("http://{}{path}", self.host)).header("cookie", &self.cookie);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut answer = request.call()?;
        let status = answer.status().as_u16();
        let text = answer.body_mut().with_config().limit(64 << 20).read_to_string()?;
        ensure!(status == 200, "GET {path}: {status}: {text:.300}");
        Ok(text)
    }

    /// Opens the stream that wakes a page. It is active when this returns.
    pub(crate) fn wakes(&self, path: &str) -> anyhow::Result<Wakes> {
        let request = self.agent.get(format!("http://{}{path}", self.host)).header("cookie", &self.cookie);
        let answer = request.header("accept", "text/event-stream").call()?;
        ensure!(answer.status() == 200, "GET {path}: {}", answer.status());
        let mut wakes = Wakes { lines: Box::new(BufReader::new(answer.into_body().into_reader())) };
        // The first call says that the stream is open.
        wakes.next()?;
        Ok(wakes)
    }
}

/// The stream that wakes a page.
pub(crate) struct Wakes {
    lines: Box<dyn BufRead + Send>,
}

impl Wakes {
    /// Waits for the next call.
    pub(crate) fn next(&mut self) -> anyhow::Result<()> {
        let mut line = String::new();
        while !line.starts_with("event: wake") && !line.starts_with("event:wake") {
            line.clear();
            ensure!(self.lines.read_line(&mut line)? > 0, "the stream that wakes the page has ended");
        }
        Ok(())
    }
}

/// How long a request took.
pub(crate) fn timed<T>(ask: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<(T, Duration)> {
    let began = Instant::now();
    let answer = ask()?;
    Ok((answer, began.elapsed()))
}
