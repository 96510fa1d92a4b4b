//! The HTTP client of the API, and how its responses look on a terminal.

mod pipeline;
mod problem;
pub(crate) mod profiles;
mod resources;
mod server_events;
mod status;
mod text;

use std::{io, time::Duration};

pub(crate) use pipeline::{PipelineDocument, PipelineSummary};
use problem::Problem;
pub(crate) use resources::Resources;
use secrecy::{ExposeSecret, SecretString};
use serde::de::DeserializeOwned;
pub(crate) use server_events::{EventReader, ServerEvent};
pub(crate) use status::{Progress, StatusDocument, live_line};
pub(crate) use text::{age, colored, headline, on_one_line, printable, seconds, table};
use ureq::{
    AsSendBody,
    http::{HeaderName, Method, Request, Response, StatusCode, header},
};
use url::form_urlencoded;

use crate::{
    cli::{DEFAULT_URL, ServerArgs},
    config::Environment,
};

/// The exit code if the service refused the request.
pub(crate) const EXIT_REFUSED: u8 = 3;
/// The exit code if what the request names is not there.
pub(crate) const EXIT_NOT_FOUND: u8 = 4;
/// The exit code if nothing answers as the service does.
pub(crate) const EXIT_UNREACHABLE: u8 = 5;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Longer than the service's own request timeout, so that its error message arrives.
const TIMEOUT: Duration = Duration::from_secs(90);
/// Streams are reopened after this time, which bounds how long a dead connection goes unnoticed.
const LONGEST_STREAM: Duration = Duration::from_mins(2);
const LONGEST_ANSWER: u64 = 256 * 1024 * 1024;

/// The service is unreachable, or it rejected the request.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    #[error(
        "cannot reach {url}: {why}\nCheck that `tao-slurm serve` is running there, or set another address with --url, TAO_SLURM_URL or `tao-slurm login`."
    )]
    Unreachable {
        url: String,
        why: String,
        /// Whether the service may have got the request.
        may_have_arrived: bool,
    },
    #[error("{0}")]
    Refused(Box<Problem>),
    /// No job has this id or name.
    #[error("{0}")]
    NotFound(String),
    #[error(
        "{url} sent a response that is not from tao-slurm: {why}\nCheck the address in --url or TAO_SLURM_URL."
    )]
    Foreign { url: String, why: String },
}

impl ClientError {
    /// Whether the same request may succeed later.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Refused(problem) => problem.is_transient(),
            Self::NotFound(_) | Self::Foreign { .. } => false,
        }
    }

    /// Whether the service may have acted although it did not say so.
    pub(crate) fn may_have_arrived(&self) -> bool {
        match self {
            Self::Unreachable { may_have_arrived, .. } => *may_have_arrived,
            error => error.is_transient(),
        }
    }

    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Unreachable { .. } | Self::Foreign { .. } => EXIT_UNREACHABLE,
            Self::NotFound(_) => EXIT_NOT_FOUND,
            Self::Refused(problem) if problem.is_not_found() => EXIT_NOT_FOUND,
            Self::Refused(_) => EXIT_REFUSED,
        }
    }
}

/// A connection to one service.
pub(crate) struct Client {
    agent: ureq::Agent,
    url: String,
    token: Option<SecretString>,
}

/// A successful response.
pub(crate) struct Answer {
    url: String,
    pub(crate) body: Vec<u8>,
    pub(crate) etag: Option<String>,
    /// The resource still has the `ETag` of the request.
    pub(crate) unchanged: bool,
    /// This is a page, and another one follows.
    pub(crate) has_next: bool,
}

impl Answer {
    pub(crate) fn document<T: DeserializeOwned>(&self) -> Result<T, ClientError> {
        serde_json::from_slice(&self.body)
            .map_err(|error| ClientError::Foreign { url: self.url.clone(), why: error.to_string() })
    }
}

impl Client {
    /// The service that the options, the environment or a profile name, else one on this machine.
    pub(crate) fn new(server: &ServerArgs) -> anyhow::Result<Self> {
        let environment = Environment::of_process();
        let profiles::Profile { url, token } =
            profiles::chosen(server, &environment, profiles::path(&environment).as_deref())?;
        Ok(Self::of(url.as_deref().unwrap_or(DEFAULT_URL), token))
    }

    /// The service at this address.
    pub(crate) fn of(url: &str, token: Option<SecretString>) -> Self {
        let url = trimmed(url).to_owned();
        let mut config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .max_redirects(0)
            .user_agent(concat!("tao-slurm/", env!("CARGO_PKG_VERSION")));
        if is_loopback(&url) {
            // A proxy would look for this address on its own machine.
            config = config.proxy(None);
        }
        Self { agent: config.build().into(), url, token }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn get(&self, path: &str) -> Result<Answer, ClientError> {
        self.get_changed(path, None)
    }

    /// Gets the resource only if it has changed since the answer with this `ETag`.
    pub(crate) fn get_changed(&self, path: &str, etag: Option<&str>) -> Result<Answer, ClientError> {
        let header = etag.map(|etag| (header::IF_NONE_MATCH, etag));
        self.read(self.send(Method::GET, path, header.as_slice(), (), TIMEOUT))
    }

    /// A stream of the events after `last_id`; none if the stream has ended.
    pub(crate) fn events(
        &self,
        path: &str,
        last_id: Option<&str>,
    ) -> Result<Option<EventReader<ureq::BodyReader<'static>>>, ClientError> {
        let last_id = last_id.map(|id| (HeaderName::from_static("last-event-id"), id));
        let headers: Vec<_> = last_id.into_iter().chain([(header::ACCEPT, "text/event-stream")]).collect();
        match self.send(Method::GET, path, &headers, (), LONGEST_STREAM) {
            Ok(response) if response.status() == StatusCode::NO_CONTENT => Ok(None),
            Ok(response) if response.status().is_success() => {
                Ok(Some(EventReader::new(response.into_body().into_reader())))
            }
            failed => self.read(failed).and_then(|_| Err(self.foreign("not an event stream".to_owned()))),
        }
    }

    /// Sends `json` unchanged: the service validates it and names what is wrong.
    pub(crate) fn post(&self, path: &str, json: &[u8]) -> Result<Answer, ClientError> {
        self.post_once(path, json, None)
    }

    /// As [`Self::post`]; a second request with the same key changes nothing.
    pub(crate) fn post_once(
        &self,
        path: &str,
        json: &[u8],
        key: Option<&str>,
    ) -> Result<Answer, ClientError> {
        let key = key.map(|key| (HeaderName::from_static("idempotency-key"), key));
        if json.is_empty() {
            return self.read(self.send(Method::POST, path, key.as_slice(), (), TIMEOUT));
        }
        let content = (header::CONTENT_TYPE, "application/json");
        let headers: Vec<_> = key.into_iter().chain([content]).collect();
        self.read(self.send(Method::POST, path, &headers, json, TIMEOUT))
    }

    pub(crate) fn delete(&self, path: &str) -> Result<Answer, ClientError> {
        self.read(self.send(Method::DELETE, path, &[], (), TIMEOUT))
    }

    fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(HeaderName, &str)],
        body: impl AsSendBody,
        timeout: Duration,
    ) -> Result<Response<ureq::Body>, ureq::Error> {
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.url));
        if let Some(token) = &self.token {
            let bearer = format!("Bearer {}", token.expose_secret().trim());
            request = request.header(header::AUTHORIZATION, bearer);
        }
        for (name, value) in headers {
            request = request.header(name, *value);
        }
        let request = self.agent.configure_request(request.body(body)?);
        self.agent.run(request.timeout_global(Some(timeout)).build())
    }

    fn read(&self, response: Result<Response<ureq::Body>, ureq::Error>) -> Result<Answer, ClientError> {
        let unreachable = |error: ureq::Error| ClientError::Unreachable {
            url: self.url.clone(),
            why: error.to_string(),
            may_have_arrived: !has_no_connection(&error),
        };
        let mut response = response.map_err(unreachable)?;
        let (status, headers) = (response.status(), response.headers());
        let text = |value: &header::HeaderValue| value.to_str().unwrap_or_default().to_owned();
        let etag = headers.get(header::ETAG).map(text);
        let has_next = headers.get_all(header::LINK).iter().any(|link| text(link).contains("rel=\"next\""));
        let body =
            response.body_mut().with_config().limit(LONGEST_ANSWER).read_to_vec().map_err(unreachable)?;
        let unchanged = status == StatusCode::NOT_MODIFIED;
        if status.is_success() || unchanged {
            return Ok(Answer { url: self.url.clone(), body, etag, unchanged, has_next });
        }
        match serde_json::from_slice::<Problem>(&body) {
            Ok(problem) => Err(ClientError::Refused(Box::new(problem.advised(self.token.is_some())))),
            Err(_) => Err(self.foreign(format!("HTTP status {status}"))),
        }
    }

    fn foreign(&self, why: String) -> ClientError {
        ClientError::Foreign { url: self.url.clone(), why }
    }
}

/// `path?key=value&…`, percent-encoded, without the keys that have no value.
pub(crate) fn with_query<'a>(
    path: &str,
    pairs: impl IntoIterator<Item = (&'a str, Option<String>)>,
) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(pairs.into_iter().filter_map(|(key, value)| Some((key, value?))));
    let query = query.finish();
    if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
}

fn has_no_connection(error: &ureq::Error) -> bool {
    use ureq::{Error, Timeout};
    match error {
        Error::HostNotFound | Error::ConnectionFailed | Error::BadUri(_) => true,
        Error::Timeout(timeout) => matches!(timeout, Timeout::Resolve | Timeout::Connect),
        Error::Io(error) => error.kind() == io::ErrorKind::ConnectionRefused,
        _ => false,
    }
}

fn trimmed(url: &str) -> &str {
    url.trim().trim_end_matches('/')
}

pub(crate) fn is_loopback(url: &str) -> bool {
    let host = url.split_once("://").map_or(url, |(_, rest)| rest);
    ["127.", "localhost", "[::1]"].iter().any(|start| host.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_on_this_machine_is_called_without_a_proxy() {
        assert!(
            is_loopback("http://127.0.0.1:8080")
                && is_loopback("http://localhost")
                && is_loopback("http://[::1]:1")
        );
        assert!(!is_loopback("https://tao.example.org/127.0.0.1"));
    }

    #[test]
    fn an_unreachable_service_is_an_error_that_says_what_to_do() {
        let error = Client::of("http://127.0.0.1:1/", None).get("/jobs").err().unwrap();
        assert!(error.is_transient());
        let text = error.to_string();
        assert!(
            text.starts_with("cannot reach http://127.0.0.1:1: ") && text.contains("tao-slurm serve"),
            "{text}"
        );
    }

    #[test]
    fn without_a_connection_the_service_has_not_got_the_request() {
        use ureq::{Error, Timeout};
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        let reset = io::Error::from(io::ErrorKind::ConnectionReset);
        let before = [
            Error::HostNotFound,
            Error::ConnectionFailed,
            Error::Timeout(Timeout::Connect),
            Error::Io(refused),
        ];
        let after = [Error::Timeout(Timeout::Global), Error::Io(reset)];
        assert!(before.iter().all(has_no_connection) && !after.iter().any(has_no_connection));
    }
}
