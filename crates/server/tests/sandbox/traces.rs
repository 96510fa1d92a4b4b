//! The traces of a job in an OpenTelemetry collector, which never delays the service.

mod collector;

use std::{
    fs,
    net::TcpListener,
    time::{Duration, Instant},
};

use collector::{Collector, ReceivedSpan};
use serde_json::json;

use crate::service::{Service, until};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";
const SECRET: &str = "tr4ces-tell-no-secrets";
/// The export interval in milliseconds.
const DELAY: (&str, &str) = ("OTEL_BSP_SCHEDULE_DELAY", "100");

#[test]
fn a_request_and_the_worker_steps_for_it_are_one_trace_without_secrets() {
    let collector = Collector::start();
    let dir = tempfile::tempdir().unwrap();
    let headers = dir.path().join("headers");
    fs::write(&headers, "X-Collector-Key: open sesame\n").unwrap();
    let mut service = Service::start_with(&[
        ("TAO_SLURM_OTLP_ENDPOINT", &collector.url),
        ("TAO_SLURM_OTLP_HEADERS_FILE", headers.to_str().unwrap()),
        DELAY,
    ]);
    let job = json!({
        "command": format!("echo '{SECRET}-in-the-command'"),
        "secret_env_vars": {"HF_TOKEN": SECRET},
        "resources": {"num_gpus": 1}
    });
    let traceparent = format!("00-{TRACE}-{CALLER}-01");
    let url = service.url.clone();
    let answer = service.post_with(&url, "/jobs", &[("traceparent", &traceparent)], &job.to_string());
    assert_eq!(answer.status, 201, "{}", answer.text);
    let job = answer.json()["id"].as_str().unwrap().to_owned();
    service.wait_ended(&job);
    service.stop();

    let spans = collector.spans();
    let of_job: Vec<&ReceivedSpan> = spans.iter().filter(|span| span.trace == TRACE).collect();
    let named = |name: &str| -> &ReceivedSpan {
        of_job.iter().find(|span| span.name == name).unwrap_or_else(|| panic!("no {name} in {of_job:#?}"))
    };
    let request = named("POST /jobs");
    assert_eq!((request.parent.as_str(), request.attribute("http.response.status_code")), (CALLER, "201"));
    for (step, command) in [("submit job", "slurm submit"), ("conclude job", "slurm conclude")] {
        let step = named(step);
        assert_eq!((step.parent.as_str(), step.attribute("job.id")), (request.id.as_str(), job.as_str()));
        let command = named(command);
        assert_eq!((command.parent.as_str(), command.attribute("outcome")), (step.id.as_str(), "ok"));
        assert!(step.begun <= command.begun && command.ended <= step.ended, "{step:?} {command:?}");
    }
    // Other requests have their own traces, and probes have none.
    assert!(
        spans.iter().any(|span| span.name == "GET /jobs/{id}/status" && span.trace != TRACE),
        "{spans:#?}"
    );
    assert!(spans.iter().all(|span| !span.name.contains("readyz")), "{spans:#?}");
    assert!(!collector.contains(SECRET), "a secret or a command is in a trace");
    assert!(collector.heads().iter().all(|head| head.contains("open sesame")), "{:?}", collector.heads());
}

#[test]
fn an_unreachable_collector_delays_nothing_and_is_logged_once() {
    let refusing = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut service =
        Service::start_with(&[("TAO_SLURM_OTLP_ENDPOINT", &format!("http://{refusing}")), DELAY]);
    let job = service.submit(&json!({"command": "true", "resources": {"num_gpus": 1}}));
    assert_eq!(service.wait_ended(&job)["status"], "Done");
    until("messages that are not accepted", Duration::from_secs(20), || {
        service.status(&job);
        service.metric("tao_slurm_trace_exports_total", "failed") >= 2.0
    });
    service.stop();
    assert_eq!(service.log_text().matches("the trace collector does not accept spans").count(), 1);

    // It accepts connections, but reads no message.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    service.set("TAO_SLURM_OTLP_ENDPOINT", &format!("http://{}", silent.local_addr().unwrap()));
    // Without a worker, which would first finish its steps on the cluster.
    service.role = "api";
    service.spawn();
    let asked = Instant::now();
    for _ in 0..100 {
        service.status(&job);
    }
    assert!(asked.elapsed() < Duration::from_mins(5), "{:?}", asked.elapsed());
    let stopping = Instant::now();
    service.stop();
    assert!(stopping.elapsed() < Duration::from_mins(5), "{:?}", stopping.elapsed());
}
