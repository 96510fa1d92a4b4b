//! What becomes of an evaluation when one of its servers fails: the job ends or goes on as documented, and its message names the service and
//! shows the last lines of its log. In full size, 104 jobs; with the time from each event, or the limit that follows it, to the end of the job.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::evaluation;
use crate::{
    bars::size,
    environments::{Process, processes},
    launchers::{are_installed, is_gone},
    service::{Service, until},
};

/// A fault of a server, and what becomes of the job.
struct Fault {
    name: &'static str,
    /// What the job has otherwise.
    change: fn(&mut Value),
    /// The document of the status when the fault comes.
    when: fn(&Value) -> bool,
    /// What it returns is held until the job has ended. None if the fault comes by itself, maybe unseen.
    act: Option<fn(&str) -> Option<Child>>,
    end: End,
    /// The seconds in which the service notices.
    limit: u64,
}

/// What becomes of a job.
enum End {
    /// It ends in Error. Its message begins so, and shows a line of the log.
    Error(&'static str, &'static str),
    /// It is Done, after a service has started again.
    StartsAgain,
    /// It is Done in the second attempt. The first one has ended by this rule.
    Retried(&'static str),
}

fn is_loading(status: &Value) -> bool {
    status["message"].as_str().is_some_and(|message| message.contains("loading"))
}

fn is_evaluating(status: &Value) -> bool {
    status["progress"]["done"].as_f64().is_some_and(|done| done > 0.0)
}

/// The seconds since the start of the first service that is loading.
fn loaded(status: &Value) -> u64 {
    let message = status["message"].as_str().unwrap_or_default();
    let rest = message.split_once("loading, ").map_or("", |(_, rest)| rest);
    rest.split(' ').next().and_then(|seconds| seconds.parse().ok()).unwrap_or(0)
}

fn loads_for_ever(job: &mut Value) {
    job["services"][0]["env"]["LOADS"] = "3600".into();
}

fn is_not_ready_in_time(job: &mut Value) {
    job["services"][0]["ready"]["timeout_minutes"] = 0.1.into();
}

fn evaluates_long(job: &mut Value) {
    job["steps"][0]["env"]["COUNT"] = "20000".into();
    for service in 0..2 {
        job["services"][service]["ready"]["probe_seconds"] = 1.into();
        job["services"][service]["live"] = json!({"interval_seconds": 1, "failures": 2});
    }
}

/// A process of the job whose command line has this text, and its environment this variable.
fn process(id: &str, text: &str, variable: &str) -> Process {
    let mut found = None;
    let is_it = |process: &Process| {
        process.command_line.contains(text)
            && process.environment.split('\0').any(|one| one.starts_with(variable))
    };
    until(text, Duration::from_secs(20), || {
        found = processes(id).into_iter().find(is_it);
        found.is_some()
    });
    found.unwrap()
}

fn signal(name: &str, process: &Process) {
    let sent = Command::new("kill").args([&format!("-{name}"), &process.id]).status();
    assert!(sent.is_ok_and(|status| status.success()));
}

/// Sends a signal to a server.
fn signal_to(name: &str, id: &str, who: &str) -> Option<Child> {
    signal(name, &process(id, "python3 /", &format!("WHO={who}")));
    None
}

/// Takes a port until its input ends.
const TAKE: &str = "import socket, sys; port = socket.socket(); port.bind(('', int(sys.argv[1]))); port.listen(); \
    print(flush=True); sys.stdin.read()";

/// Takes the port of a copy on its node, and kills it. The copy is held, so it has not bound its port yet.
fn take_the_port_of_a_copy(id: &str) -> Child {
    let copy = process(id, "python3 /", "WHO=model");
    let port = copy.environment.split('\0').find_map(|line| line.strip_prefix("PORT=")).unwrap();
    // Each node has a network of its own.
    let network = format!("--net=/proc/{}/ns/net", copy.id);
    let mut taker = Command::new("nsenter")
        .args([&network, "python3", "-c", TAKE, port])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = String::new();
    BufReader::new(taker.stdout.take().unwrap()).read_line(&mut told).unwrap();
    assert_eq!(told, "\n", "the port {port} is taken by another program");
    signal("KILL", &copy);
    taker
}

const FAULTS: [Fault; 8] = [
    Fault {
        name: "a copy is killed while it loads",
        change: loads_for_ever,
        when: is_loading,
        act: Some(|id| signal_to("KILL", id, "model")),
        end: End::Error("The service model-", "Last lines of "),
        limit: 0,
    },
    Fault {
        name: "the judge is killed when it is ready, and before the evaluation",
        change: loads_for_ever,
        when: |status| {
            is_loading(status) && !status["message"].as_str().unwrap_or_default().contains("judge")
        },
        act: Some(|id| signal_to("KILL", id, "judge")),
        end: End::Error("The service judge has ended with code 137", "Last lines of judge/0.out:\nloading"),
        limit: 0,
    },
    Fault {
        name: "the judge is killed during the evaluation",
        change: evaluates_long,
        when: is_evaluating,
        act: Some(|id| signal_to("KILL", id, "judge")),
        end: End::Error("The service judge has ended with code 137", "answers "),
        limit: 0,
    },
    Fault {
        name: "a copy is killed during the evaluation and starts again",
        change: |job| job["services"][0]["max_restarts"] = 2.into(),
        when: is_evaluating,
        act: Some(|id| signal_to("KILL", id, "model")),
        end: End::StartsAgain,
        limit: 0,
    },
    Fault {
        name: "the judge hangs",
        change: evaluates_long,
        when: is_evaluating,
        act: Some(|id| signal_to("STOP", id, "judge")),
        end: End::Error("The service judge has failed 2 probes in a row", "answers "),
        limit: 4,
    },
    Fault {
        name: "the port of a copy is taken",
        change: |job| {
            job["services"][0]["env"]["HELD"] = "1".into();
            job["services"][0]["max_restarts"] = 1.into();
        },
        when: is_loading,
        act: Some(|id| Some(take_the_port_of_a_copy(id))),
        end: End::Retried("port-taken"),
        limit: 0,
    },
    Fault {
        name: "a copy accepts connections and never answers",
        change: |job| {
            is_not_ready_in_time(job);
            job["services"][0]["env"]["DEAF"] = "1".into();
        },
        when: is_loading,
        act: None,
        end: End::Error("The service model-", "loading"),
        limit: 6,
    },
    Fault {
        name: "HAProxy is killed",
        change: evaluates_long,
        when: is_evaluating,
        act: Some(|id| {
            signal("KILL", &process(id, "haproxy -db", &format!("TAO_API_JOB_ID={id}")));
            None
        }),
        end: End::Error("The service model has ended with code 137", "Last lines of model/0."),
        limit: 0,
    },
];

/// One job for each fault, four at a time.
#[test]
#[expect(clippy::print_stdout, reason = "measurements, shown with --success-output")]
fn each_fault_of_a_server_ends_the_job_or_is_survived() {
    let service = Service::start_with(&[("TAO_SLURM_RETRY_WAIT", "1s")]);
    if !are_installed(&service) {
        return;
    }
    let mut slowest = Duration::ZERO;
    for round in 0..size(1, 13) {
        for four in FAULTS.chunks(4) {
            let mut waiting: Vec<_> = four.iter().map(|fault| (fault, submit(&service, fault))).collect();
            let (mut running, mut ended) = (Vec::new(), Vec::new());
            until("the end of the jobs", Duration::from_mins(3), || {
                waiting.retain(|(fault, id)| {
                    let status = service.status(id);
                    let is_over = status["phase"] == "ended";
                    assert!(!is_over || fault.act.is_none(), "{}, too early: {status}", fault.name);
                    let is_due = is_over || (fault.when)(&status);
                    if is_due {
                        let left = Duration::from_secs(fault.limit.saturating_sub(loaded(&status)));
                        let held = fault.act.and_then(|act| act(id));
                        service.let_go(id);
                        running.push((*fault, id.clone(), held, Instant::now() + left));
                    }
                    !is_due
                });
                let over = running.extract_if(.., |(_, id, ..)| service.status(id)["phase"] == "ended");
                ended.extend(over.map(|(fault, id, held, event)| (fault, id, held, event.elapsed())));
                waiting.is_empty() && running.is_empty()
            });
            for (fault, id, held, took) in ended {
                ends_as_documented(&service, fault, &id);
                if matches!(fault.end, End::Error(..)) {
                    println!("round {round}: {}: {:.1} s", fault.name, took.as_secs_f64());
                    slowest = slowest.max(took);
                }
                is_gone(&id);
                if let Some(mut taker) = held {
                    drop(taker.stdin.take());
                    taker.wait().unwrap();
                }
            }
        }
    }
    println!("the slowest end came {:.1} s after its event or its limit", slowest.as_secs_f64());
}

fn submit(service: &Service, fault: &Fault) -> String {
    let mut job = evaluation(2000);
    job["name"] = fault.name.into();
    (fault.change)(&mut job);
    service.submit(&job)
}

fn ends_as_documented(service: &Service, fault: &Fault, id: &str) {
    let ended = service.wait_ended(id);
    let message = ended["message"].as_str().unwrap_or_default();
    let errors = service.get(&format!("/jobs/{id}/logs?tail=100&stream=err")).text;
    let attempts = service.get(&format!("/jobs/{id}/attempts")).json()["attempts"].clone();
    let shown = format!("{}: {message}\n{attempts}\n{errors}", fault.name);
    match fault.end {
        End::Error(begins, line) => {
            assert_eq!(
                (&ended["status"], &attempts[0]["rule"]),
                (&"Error".into(), &"service-failed".into()),
                "{shown}"
            );
            assert!(message.starts_with(begins) && message.contains(line), "{shown}");
            return;
        }
        End::StartsAgain => {
            assert!(errors.contains("it starts again, for time 1 of at most 2"), "{shown}");
            assert_eq!(attempts.as_array().unwrap().len(), 1, "{shown}");
        }
        End::Retried(rule) => assert_eq!(attempts[0]["rule"], rule, "{shown}"),
    }
    assert_eq!(ended["status"], "Done", "{shown}");
    assert_eq!(service.get(&format!("/jobs/{id}/results")).json()[0]["value"]["score"], 1.0, "{shown}");
}
