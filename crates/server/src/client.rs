//! The command line as a client of the API.

mod events;
mod problem;
mod progress;
mod table;
mod terminal;

use std::time::Duration;

pub(crate) use events::{EventReader, ServerEvent};
use problem::Problem;
pub(crate) use progress::{StatusDocument, live_line};
use secrecy::{ExposeSecret, SecretString};
pub(crate) use table::{columns, table};
pub(crate) use terminal::{on_one_line, printable};
use ureq::http::{Response, StatusCode, header};

use crate::cli::ServerArgs;

/// Where the service is unless somebody says otherwise.
pub(crate) const DEFAULT_URL: &str = "http://127.0.0.1:8080";
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Above the service's own bound, so that its explanation arrives.
const TIMEOUT: Duration = Duration::from_secs(90);
/// A stream is taken up again after this long: a connection that died in silence is noticed by then.
const LONGEST_STREAM: Duration = Duration::from_mins(2);
const LONGEST_ANSWER: u64 = 256 * 1024 * 1024;

/// The service could not be asked, or it refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    #[error(
        "cannot reach {url}: {why}\nIs `tao-slurm serve` running there? Name another place with --url or TAO_SLURM_URL."
    )]
    Unreachable { url: String, why: String },
    #[error("{0}")]
    Refused(Box<Problem>),
    #[error("{url} answered what is no answer of tao-slurm: {why}")]
    Foreign { url: String, why: String },
}

impl ClientError {
    /// Whether the same question may be answered later.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Refused(problem) => problem.is_passing(),
            Self::Foreign { .. } => false,
        }
    }
}

/// One service.
pub(crate) struct Client {
    agent: ureq::Agent,
    url: String,
    token: Option<SecretString>,
}

/// An answer that is no problem.
pub(crate) struct Answer {
    pub(crate) body: Vec<u8>,
    pub(crate) etag: Option<String>,
    /// Nothing has changed since the answer with the tag that was sent.
    pub(crate) unchanged: bool,
    /// It is a page, and there is another one.
    pub(crate) has_next: bool,
}

impl Client {
    pub(crate) fn new(server: &ServerArgs) -> Self {
        // An empty variable counts as unset, as everywhere.
        let url = Some(server.url.trim_end_matches('/')).filter(|url| !url.is_empty()).unwrap_or(DEFAULT_URL);
        let url = url.to_owned();
        let mut config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_global(Some(TIMEOUT))
            .max_redirects(0)
            .user_agent(concat!("tao-slurm/", env!("CARGO_PKG_VERSION")));
        if is_loopback(&url) {
            // A proxy of the environment would look for the service on its own machine.
            config = config.proxy(None);
        }
        let token = server.token.as_ref().filter(|token| !token.expose_secret().trim().is_empty());
        Self { agent: config.build().into(), url, token: token.cloned() }
    }

    pub(crate) fn get(&self, path: &str, known: Option<&str>) -> Result<Answer, ClientError> {
        let mut request = self.agent.get(format!("{}{path}", self.url));
        if let Some(token) = self.authorization() {
            request = request.header(header::AUTHORIZATION, token);
        }
        if let Some(etag) = known {
            request = request.header(header::IF_NONE_MATCH, etag);
        }
        self.read(request.call())
    }

    /// A stream of events from after the `last` one that was received; none when there is nothing to come any more.
    pub(crate) fn events(
        &self,
        path: &str,
        last: Option<&str>,
    ) -> Result<Option<EventReader<ureq::BodyReader<'static>>>, ClientError> {
        let request = self.agent.get(format!("{}{path}", self.url)).config();
        let request = request.timeout_global(Some(LONGEST_STREAM)).build();
        let mut request = request.header(header::ACCEPT, "text/event-stream");
        if let Some(token) = self.authorization() {
            request = request.header(header::AUTHORIZATION, token);
        }
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let sent = request.call();
        match &sent {
            Ok(response) if response.status() == StatusCode::NO_CONTENT => Ok(None),
            Ok(response) if response.status().is_success() => {
                Ok(sent.ok().map(|response| EventReader::new(response.into_body().into_reader())))
            }
            // What is no stream is a problem, and read as one.
            _ => self.read(sent).and_then(|_| Err(self.foreign(&"no stream of events"))),
        }
    }

    /// `json` is sent as it is: the service judges it, and says what is wrong where.
    pub(crate) fn post(&self, path: &str, json: &[u8]) -> Result<Answer, ClientError> {
        let mut request = self.agent.post(format!("{}{path}", self.url));
        if let Some(token) = self.authorization() {
            request = request.header(header::AUTHORIZATION, token);
        }
        if json.is_empty() {
            return self.read(request.send_empty());
        }
        self.read(request.header(header::CONTENT_TYPE, "application/json").send(json))
    }

    pub(crate) fn delete(&self, path: &str) -> Result<Answer, ClientError> {
        let mut request = self.agent.delete(format!("{}{path}", self.url));
        if let Some(token) = self.authorization() {
            request = request.header(header::AUTHORIZATION, token);
        }
        self.read(request.call())
    }

    /// Reads an answer's document.
    pub(crate) fn document<T: serde::de::DeserializeOwned>(&self, body: &[u8]) -> Result<T, ClientError> {
        serde_json::from_slice(body).map_err(|error| self.foreign(&error))
    }

    fn authorization(&self) -> Option<String> {
        self.token.as_ref().map(|token| format!("Bearer {}", token.expose_secret().trim()))
    }

    fn read(&self, sent: Result<Response<ureq::Body>, ureq::Error>) -> Result<Answer, ClientError> {
        let unreachable =
            |error: ureq::Error| ClientError::Unreachable { url: self.url.clone(), why: error.to_string() };
        let mut response = sent.map_err(unreachable)?;
        let status = response.status();
        let etag = response.headers().get(header::ETAG).and_then(|tag| tag.to_str().ok()).map(str::to_owned);
        let links =
            response.headers().get_all(header::LINK).into_iter().filter_map(|link| link.to_str().ok());
        let has_next = links.into_iter().any(|link| link.contains("rel=\"next\""));
        let body =
            response.body_mut().with_config().limit(LONGEST_ANSWER).read_to_vec().map_err(unreachable)?;
        if status.is_success() || status == StatusCode::NOT_MODIFIED {
            return Ok(Answer { body, etag, unchanged: status == StatusCode::NOT_MODIFIED, has_next });
        }
        match serde_json::from_slice::<Problem>(&body) {
            Ok(problem) => Err(ClientError::Refused(Box::new(problem.advised(self.token.is_some())))),
            Err(_) => Err(self.foreign(&format_args!("HTTP status {status}"))),
        }
    }

    fn foreign(&self, why: &dyn std::fmt::Display) -> ClientError {
        ClientError::Foreign { url: self.url.clone(), why: why.to_string() }
    }
}

/// Percent-encoded, whatever was typed.
pub(crate) fn escaped(text: &str) -> String {
    let byte = |byte: u8| {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    };
    text.bytes().map(byte).collect()
}

fn is_loopback(url: &str) -> bool {
    let host = url.split_once("://").map_or(url, |(_, rest)| rest);
    ["127.", "localhost", "[::1]"].iter().any(|start| host.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_on_this_machine_is_asked_without_a_proxy() {
        assert!(
            is_loopback("http://127.0.0.1:8080")
                && is_loopback("http://localhost")
                && is_loopback("http://[::1]:1")
        );
        assert!(!is_loopback("https://tao.example.org/127.0.0.1"));
    }

    #[test]
    fn a_service_that_is_not_there_is_said_with_what_to_do() {
        let server = ServerArgs { url: "http://127.0.0.1:1/".to_owned(), token: None, json: false };
        let error = Client::new(&server).get("/jobs", None).err().unwrap();
        assert!(error.is_passing());
        let text = error.to_string();
        assert!(
            text.starts_with("cannot reach http://127.0.0.1:1: ") && text.contains("tao-slurm serve"),
            "{text}"
        );
    }
}
