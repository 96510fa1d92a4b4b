//! When a service is ready, how it shows that it still works, and how often it may start again.

use std::num::NonZeroU16;

use remote::{Probe, ServiceRules, Value};
use serde::{Deserialize, Serialize};
use slurm::RemotePath;

use super::component_body::{ComponentRequest, LiveRequest, ReadyRequest};
use crate::violation::Faults;

const LONGEST_PATH: usize = 1000;
const LONGEST_PATTERN: usize = 1000;
const MOST_SECONDS: u32 = 3600;
const MOST_MINUTES: f64 = 7.0 * 24.0 * 60.0;
const MOST_RESTARTS: u32 = 10;

/// The rules of a service.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServiceSettings {
    /// Its port on the first of its nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<ServicePort>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready: Option<Ready>,
    /// How often it may start again.
    pub max_restarts: u32,
}

/// The port of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServicePort {
    /// One of those of the job.
    Own,
    Fixed(NonZeroU16),
}

/// When a service is ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    pub by: ReadyBy,
    pub interval_seconds: u32,
    pub probe_seconds: u32,
    pub timeout_seconds: u32,
    /// The seconds between two probes from then on; 0 for none.
    pub live_seconds: u32,
    pub live_failures: u32,
}

/// What shows that a service is ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadyBy {
    Http { path: String, status: u16, body: Option<(String, u32)> },
    Tcp,
    File(RemotePath),
    LogPattern(String),
}

impl ServiceSettings {
    /// The rules of a component at this place in the request, which is a service or not.
    pub(super) fn from_request(
        asked: &ComponentRequest,
        is_service: bool,
        at: &str,
        faults: &mut Faults,
    ) -> Self {
        let given = [
            ("port", asked.port.is_some()),
            ("ready", asked.ready.is_some()),
            ("live", asked.live.is_some()),
            ("max_restarts", asked.max_restarts.is_some()),
            ("replicas", asked.replicas.is_some()),
            ("balance", asked.balance.is_some()),
        ];
        if !is_service {
            for (field, _) in given.into_iter().filter(|(_, given)| *given) {
                let detail = "is only for a service: a step ends, and the job with the last one";
                faults.add(format!("{at}/{field}"), "contradiction", detail);
            }
            return Self::default();
        }
        let ready = asked.ready.as_ref().and_then(|ready| {
            let live = asked.live.clone().unwrap_or_default();
            Ready::from_request(ready, &live, &format!("{at}/ready"), &format!("{at}/live"), faults)
        });
        let is_at_port = ready.as_ref().is_some_and(|ready| ready.by.needs_port());
        if asked.live.is_some() && !is_at_port && (ready.is_some() || asked.ready.is_none()) {
            let detail = "needs `ready` with http or tcp: it repeats that probe";
            faults.add(format!("{at}/live"), "contradiction", detail);
        }
        let fixed = asked.port.map(|port| faults.within(&format!("{at}/port"), port, 0..=65_535));
        let fixed = fixed.and_then(|port| NonZeroU16::new(u16::try_from(port).ok()?));
        Self {
            port: match fixed {
                Some(port) => Some(ServicePort::Fixed(port)),
                None => (asked.port.is_some() || is_at_port).then_some(ServicePort::Own),
            },
            ready,
            max_restarts: asked
                .max_restarts
                .map_or(0, |most| faults.within(&format!("{at}/max_restarts"), most, 0..=MOST_RESTARTS)),
        }
    }

    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// The rules for the script. `node`: the first node of the service.
    pub(crate) fn rules(&self, node: u32, port: Option<&Value>) -> Option<ServiceRules> {
        if self.ready.is_none() && self.max_restarts == 0 {
            return None;
        }
        let ready = self.ready.as_ref();
        let number = |of: fn(&Ready) -> u32| ready.map_or(0, of);
        Some(ServiceRules {
            probe: ready.and_then(|ready| ready.by.probe(node, port)),
            every: number(|ready| ready.interval_seconds),
            probe_limit: number(|ready| ready.probe_seconds),
            ready_limit: number(|ready| ready.timeout_seconds),
            live_every: number(|ready| ready.live_seconds),
            most_missed: number(|ready| ready.live_failures),
            most_again: self.max_restarts,
        })
    }
}

impl Ready {
    fn from_request(
        asked: &ReadyRequest,
        live: &LiveRequest,
        at: &str,
        live_at: &str,
        faults: &mut Faults,
    ) -> Option<Self> {
        let by = ReadyBy::from_request(asked, at, faults);
        let mut seconds = |at: &str, field: &str, given: Option<u32>, default| {
            given.map_or(default, |given| faults.within(&format!("{at}/{field}"), given, 1..=MOST_SECONDS))
        };
        let interval_seconds = seconds(at, "interval_seconds", asked.interval_seconds, 5);
        let probe_seconds = seconds(at, "probe_seconds", asked.probe_seconds, 10);
        let live_seconds = seconds(live_at, "interval_seconds", live.interval_seconds, 30);
        let live_failures =
            live.failures.map_or(3, |given| faults.within(&format!("{live_at}/failures"), given, 0..=1000));
        let minutes = asked.timeout_minutes.unwrap_or(30.0);
        if !(0.01..=MOST_MINUTES).contains(&minutes) {
            let detail = format_args!("is {minutes}; must be from 0.01 to {MOST_MINUTES}");
            faults.add(format!("{at}/timeout_minutes"), "out_of_range", detail);
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is in its range")]
        let timeout_seconds = (minutes * 60.0).ceil() as u32;
        let by = by?;
        let is_live = by.needs_port() && live_failures > 0;
        Some(Self {
            interval_seconds,
            probe_seconds,
            timeout_seconds,
            live_seconds: if is_live { live_seconds } else { 0 },
            live_failures,
            by,
        })
    }
}

impl ReadyBy {
    fn from_request(asked: &ReadyRequest, at: &str, faults: &mut Faults) -> Option<Self> {
        let given = [
            asked.http.is_some(),
            asked.tcp == Some(true),
            asked.file.is_some(),
            asked.log_pattern.is_some(),
        ];
        if given.into_iter().filter(|given| *given).count() != 1 {
            faults.add(at, "invalid", "must have one of http, tcp, file and log_pattern");
            return None;
        }
        if asked.http.is_none() && (asked.status.is_some() || asked.body.is_some()) {
            faults.add(
                at,
                "contradiction",
                "has status or body without http; give the path of a page, or leave them out",
            );
        }
        if let Some(path) = &asked.http {
            let is_path = path.starts_with('/') && path.len() <= LONGEST_PATH;
            if !is_path || !path.bytes().all(|byte| byte.is_ascii_graphic()) {
                let detail = "must be a path such as /health: `/` and then ASCII characters without spaces";
                faults.add(format!("{at}/http"), "invalid", detail);
            }
            let status =
                asked.status.map_or(200, |status| faults.within(&format!("{at}/status"), status, 100..=599));
            let body = asked.body.as_ref().map(|body| {
                let pattern = pattern(&body.pattern, &format!("{at}/body/pattern"), faults);
                let least = body.at_least.unwrap_or(1);
                (pattern, faults.within(&format!("{at}/body/at_least"), least, 1..=10_000))
            });
            return Some(Self::Http { path: path.clone(), status: u16::try_from(status).ok()?, body });
        }
        if let Some(file) = &asked.file {
            return faults.parse(&format!("{at}/file"), file).map(Self::File);
        }
        Some(match &asked.log_pattern {
            Some(text) => Self::LogPattern(pattern(text, &format!("{at}/log_pattern"), faults)),
            None => Self::Tcp,
        })
    }

    fn needs_port(&self) -> bool {
        matches!(self, Self::Http { .. } | Self::Tcp)
    }

    fn probe(&self, node: u32, port: Option<&Value>) -> Option<Probe> {
        Some(match self {
            Self::Http { path, status, body } => Probe::Http {
                node,
                port: port?.clone(),
                path: path.clone(),
                status: *status,
                body: body.clone(),
            },
            Self::Tcp => Probe::Tcp { node, port: port?.clone() },
            Self::File(file) => Probe::File(file.clone()),
            Self::LogPattern(pattern) => Probe::Log(pattern.clone()),
        })
    }
}

/// An expression for `grep -E`, which does not know what other programs have beside the standard: it would never match.
fn pattern(text: &str, at: &str, faults: &mut Faults) -> String {
    let is_line = !text.is_empty() && text.len() <= LONGEST_PATTERN && !text.contains(char::is_control);
    if !is_line {
        let detail = format_args!("must be 1 to {LONGEST_PATTERN} bytes without control characters");
        faults.add(at, "invalid", detail);
    } else if let Some(other) = of_other_programs(text) {
        let detail =
            format_args!("has `{other}`, which grep -E does not know; write such as [0-9] for a digit");
        faults.add(at, "invalid", detail);
    }
    text.to_owned()
}

/// What an expression has of the languages of other programs, such as `\d` and `(?i)`.
fn of_other_programs(text: &str) -> Option<&str> {
    let mut signs = text.char_indices().peekable();
    while let Some((at, sign)) = signs.next() {
        let Some(&(next_at, next)) = signs.peek() else { break };
        let end = next_at + next.len_utf8();
        if sign == '(' && next == '?' {
            return text.get(at..end);
        }
        if sign == '\\' {
            signs.next();
            if next.is_ascii_alphanumeric() && !"bBwWsS123456789".contains(next) {
                return text.get(at..end);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use test_case::test_case;

    use super::*;

    fn read(body: serde_json::Value, is_service: bool) -> (ServiceSettings, Vec<String>) {
        let asked: ComponentRequest = serde_json::from_value(body).unwrap();
        let mut faults = Faults::default();
        let settings = ServiceSettings::from_request(&asked, is_service, "/x", &mut faults);
        (settings, faults.0.into_iter().map(|fault| fault.pointer).collect())
    }

    fn named(more: &serde_json::Value) -> serde_json::Value {
        let mut body = json!({"name": "model", "command": "serve"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    }

    #[test]
    fn a_page_at_a_port_of_the_job_is_probed_from_then_on() {
        let (settings, faults) = read(named(&json!({"ready": {"http": "/health"}})), true);
        assert_eq!(faults, Vec::<String>::new());
        let rules = settings.rules(2, Some(&Value::Port(24))).unwrap();
        let ServiceRules { every, probe_limit, ready_limit, live_every, most_missed, most_again, probe } =
            rules;
        assert_eq!(
            (every, probe_limit, ready_limit, live_every, most_missed, most_again),
            (5, 10, 1800, 30, 3, 0)
        );
        let path = "/health".to_owned();
        assert_eq!(
            probe,
            Some(Probe::Http { node: 2, port: Value::Port(24), path, status: 200, body: None })
        );
        assert_eq!(settings.port, Some(ServicePort::Own));
    }

    #[test]
    fn a_line_of_the_log_shows_nothing_later() {
        let (settings, _) = read(named(&json!({"ready": {"log_pattern": "^listening"}, "port": 8000})), true);
        let rules = settings.rules(0, None).unwrap();
        assert_eq!(
            (rules.live_every, settings.port),
            (0, Some(ServicePort::Fixed(8000.try_into().unwrap())))
        );
    }

    #[test]
    fn without_rules_a_service_has_none() {
        let (settings, _) = read(named(&json!({})), true);
        assert!(settings.is_default() && settings.rules(0, None).is_none());
        let again = read(named(&json!({"max_restarts": 2})), true).0;
        assert_eq!(again.rules(0, None).unwrap().probe, None);
    }

    #[test_case(&json!({"ready": {}}), "/x/ready"; "nothing")]
    #[test_case(&json!({"ready": {"http": "/a", "tcp": true}}), "/x/ready"; "two ways")]
    #[test_case(&json!({"ready": {"tcp": true, "status": 200}}), "/x/ready"; "a status without a page")]
    #[test_case(&json!({"ready": {"http": "health"}}), "/x/ready/http"; "no path")]
    #[test_case(&json!({"ready": {"http": "/a\r\nX: y"}}), "/x/ready/http"; "two lines")]
    #[test_case(&json!({"ready": {"http": "/a", "body": {"pattern": "\\d+"}}}), "/x/ready/body/pattern"; "a digit as Perl writes it")]
    #[test_case(&json!({"ready": {"log_pattern": "(?i)ready"}}), "/x/ready/log_pattern"; "an option as Perl writes it")]
    #[test_case(&json!({"ready": {"http": "/a", "timeout_minutes": 0}}), "/x/ready/timeout_minutes"; "no time")]
    #[test_case(&json!({"ready": {"file": "ready"}}), "/x/ready/file"; "no absolute path")]
    #[test_case(&json!({"live": {}}), "/x/live"; "live without ready")]
    #[test_case(&json!({"port": 70000}), "/x/port"; "no port")]
    #[test_case(&json!({"max_restarts": 11}), "/x/max_restarts"; "too often")]
    fn a_fault_names_its_place(more: &serde_json::Value, pointer: &str) {
        assert_eq!(read(named(more), true).1, [pointer]);
    }

    #[test]
    fn a_step_has_no_such_rules() {
        let (_, faults) = read(named(&json!({"port": 1, "ready": {"tcp": true}, "max_restarts": 1})), false);
        assert_eq!(faults, ["/x/port", "/x/ready", "/x/max_restarts"]);
    }
}
