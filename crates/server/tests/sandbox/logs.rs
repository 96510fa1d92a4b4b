//! Logs of a real cluster: followed to the end, by role and by attempt, of any size.

#![expect(
    clippy::format_collect,
    clippy::struct_field_names,
    reason = "short texts of tests, and a record of bytes"
)]

use std::{
    io::{BufRead, BufReader, Read},
    time::{Duration, Instant},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::{
    cluster::Sandbox,
    ending::command,
    service::{Service, until},
};

/// A response with bytes.
pub(crate) struct Bytes {
    status: u16,
    next_offset: Option<u64>,
    pub(crate) bytes: Vec<u8>,
}

pub(crate) fn get(service: &Service, path: &str) -> Bytes {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(Duration::from_mins(3)))
        .build()
        .into();
    let mut answer = agent.get(format!("{}{path}", service.url)).call().unwrap();
    let next = answer.headers().get("x-log-next-offset");
    let next_offset = next.map(|next| next.to_str().unwrap().parse().unwrap());
    let mut bytes = Vec::new();
    answer.body_mut().as_reader().read_to_end(&mut bytes).unwrap();
    Bytes { status: answer.status().as_u16(), next_offset, bytes }
}

/// One event of a stream.
#[derive(Debug, Clone)]
struct Event {
    name: String,
    id: Option<String>,
    data: Value,
}

/// Reads a stream until it ends or `enough` is true, then closes the connection.
fn follow(
    service: &Service,
    path: &str,
    last: Option<&str>,
    mut enough: impl FnMut(&[Event]) -> bool,
) -> Vec<Event> {
    let agent: ureq::Agent =
        ureq::Agent::config_builder().timeout_global(Some(Duration::from_mins(10))).build().into();
    let mut request = agent.get(format!("{}{path}", service.url));
    if let Some(last) = last {
        request = request.header("last-event-id", last);
    }
    let lines = BufReader::new(request.call().unwrap().into_body().into_reader()).lines();
    let (mut events, mut name, mut id, mut data) = (Vec::new(), String::new(), None, None);
    for line in lines {
        let line = line.unwrap();
        match line.split_once(": ") {
            Some(("event", value)) => value.clone_into(&mut name),
            Some(("id", value)) => id = Some(value.to_owned()),
            Some(("data", value)) => data = Some(serde_json::from_str(value).unwrap()),
            _ => {}
        }
        if let Some(data) = data.take_if(|_| line.is_empty()) {
            events.push(Event { name: std::mem::take(&mut name), id: id.take(), data });
            if enough(&events) {
                break;
            }
        }
    }
    events
}

fn bytes_of<'a>(events: impl IntoIterator<Item = &'a Event>) -> Vec<u8> {
    let bytes = |event: &Event| match event.data["text"].as_str() {
        Some(text) => text.as_bytes().to_vec(),
        None => STANDARD.decode(event.data["bytes"].as_str().unwrap()).unwrap(),
    };
    events.into_iter().filter(|event| event.name == "log").flat_map(bytes).collect()
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The log directory of the job's newest attempt, as documented by TAO.
pub(crate) fn log_dir(service: &Service, status: &Value, attempt: u32) -> String {
    let (base, id) = (service.sandbox.var("SLURM_BASE_RESULTS_DIR"), status["id"].as_str().unwrap());
    let suffix = if attempt == 1 { String::new() } else { format!("-r{attempt}") };
    format!("{base}/slurm-logs/tao-job-{id}{suffix}-{}", status["slurm_job_id"].as_str().unwrap())
}

/// SHA-256 of a file, computed on the cluster.
fn sha256_there(sandbox: &Sandbox, path: &str) -> String {
    sandbox.login(&format!("sha256sum < '{path}'")).split(' ').next().unwrap().to_owned()
}

/// Text in several alphabets, invalid UTF-8, lines without a line end, and bursts larger than one read.
const BABBLE: &str = r#"
for i in $(seq 1 40); do
  printf 'step %s: loss ↓ 日本語 Größe' "$i"
  head -c $((i * 977 % 4096)) /dev/urandom
  [ $((i % 7)) = 0 ] || echo
  [ "$i" != 20 ] || head -c 1500000 /dev/urandom
  sleep 0.1
done
printf '\xe2\x9c'
"#;

#[test]
fn a_growing_log_is_followed_to_its_end_and_no_byte_is_lost_or_doubled() {
    let service = Service::start();
    let id = service.submit(&command(BABBLE));
    let path = format!("/jobs/{id}/logs?follow=true&stream=out");
    let mut all: Vec<Event> = Vec::new();
    let mut streams = 0_usize;
    while all.last().is_none_or(|event| event.name != "end") {
        streams += 1;
        let last = all.iter().rev().find_map(|event| event.id.clone());
        // Each stream is closed after some events.
        all.extend(follow(&service, &path, last.as_deref(), |events| events.len() > streams % 5));
        assert!(streams < 500, "the stream did not end");
    }
    assert!(streams > 5, "{streams} streams are no test of going on");
    let ended = service.wait_ended(&id);
    let seen = bytes_of(&all);
    assert!(seen.len() > 1_500_000, "{} bytes", seen.len());
    let file = format!("{}/main.out", log_dir(&service, &ended, 1));
    assert_eq!(sha256(&seen), sha256_there(&service.sandbox, &file));

    // Byte ranges and the command line return the same.
    let (mut read, mut next) = (Vec::new(), 0);
    loop {
        let part = get(&service, &format!("/jobs/{id}/logs?stream=out&offset={next}&limit=400000"));
        assert_eq!(part.status, 200);
        if part.bytes.is_empty() {
            break;
        }
        next = part.next_offset.unwrap();
        read.extend(part.bytes);
    }
    assert!(read == seen);
    let printed = service.run(&["logs", &id, "--follow", "--stream", "out"]);
    assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    assert!(printed.stdout == seen);
}

#[test]
fn a_follower_from_before_the_start_gets_the_whole_log_live_over_one_connection() {
    let service = Service::start();
    let before = service.sandbox.logins();
    let id = service.submit(&command(
        "for i in 1 2 3 4 5; do echo out $i; echo err $i >&2; sleep 0.5; done
         until [ -e \"$TAO_API_RESULTS_DIR/$TAO_API_JOB_ID/go\" ]; do sleep 0.2; done
         echo out 6; echo err 6 >&2",
    ));
    // Not by a login: they are counted.
    let (sandbox, base) = (service.sandbox.var("SANDBOX_DIR"), service.sandbox.var("SLURM_BASE_RESULTS_DIR"));
    let go = format!("{sandbox}{base}/results/{id}/go");
    let events = follow(&service, &format!("/jobs/{id}/logs?follow=true"), None, |events| {
        // The job goes on when everything so far has come while it runs.
        let seen = String::from_utf8(bytes_of(events)).unwrap();
        if seen.contains("out 5\n") && seen.contains("err 5\n") {
            std::fs::write(&go, "").unwrap();
        }
        false
    });
    let of = |file: &str| bytes_of(events.iter().filter(|event| event.data["file"] == file));
    let lines = |word: &str| (1..=6).map(|i| format!("{word} {i}\n")).collect::<String>().into_bytes();
    assert_eq!((of("main.out"), of("main.err")), (lines("out"), lines("err")));
    let end = events.last().unwrap();
    assert_eq!((end.name.as_str(), end.data["status"].as_str()), ("end", Some("Done")));
    let logins = service.sandbox.logins() - before;
    assert!(logins <= 3, "{logins} logins: the worker has two sessions, and logs one");
}

#[test]
fn a_log_of_two_gigabytes_is_read_in_parts_with_little_memory() {
    let service = Service::start();
    let id = service.submit(&command("echo begin"));
    let ended = service.wait_ended(&id);
    let file = format!("{}/main.out", log_dir(&service, &ended, 1));
    // Not a sparse file: real lines, as a program prints them.
    service.sandbox.login(&format!("head -c 2147483648 <(yes 'the same line, again and again') >> '{file}'; printf '\\nlast ✓\\n' >> '{file}'"));
    let size: u64 = service.sandbox.login(&format!("stat -c %s '{file}'")).parse().unwrap();
    assert!(size > 2_147_483_648);
    get(&service, &format!("/jobs/{id}/logs?stream=out&tail=1"));
    let before = service.memory_kib("VmRSS");
    let begun = Instant::now();
    let tail = get(&service, &format!("/jobs/{id}/logs?stream=out&tail=2"));
    assert_eq!(String::from_utf8_lossy(&tail.bytes).lines().last(), Some("last ✓"));
    assert_eq!(tail.next_offset, Some(size));
    let middle = get(&service, &format!("/jobs/{id}/logs?stream=out&offset=1073741824&limit=1000000"));
    assert_eq!(middle.bytes.len(), 1_000_000);
    let capped = get(&service, &format!("/jobs/{id}/logs?stream=out&offset=0"));
    assert_eq!(capped.bytes.len(), 8 * 1024 * 1024);
    let events = follow(&service, &format!("/jobs/{id}/logs?follow=true&stream=out&tail=1"), None, |_| false);
    assert_eq!(bytes_of(&events), "last ✓\n".as_bytes());
    let took = begun.elapsed();
    let grown = service.memory_kib("VmRSS").saturating_sub(before);
    service.sandbox.login(&format!("rm '{file}'"));
    assert!(took < Duration::from_mins(5), "{took:?}");
    assert!(grown < 80_000, "{grown} KiB more than before");
}

#[test]
fn the_logs_of_roles_are_read_and_followed_by_task() {
    let service = Service::start();
    let text = r#"
echo main
for role in controller policy; do mkdir -p "$ROLE_LOGS/$role"; done
echo "controller at work" > "$ROLE_LOGS/controller/0.out"
for i in 1 2 3; do
  for task in 0 1 10; do echo "task $task step $i" >> "$ROLE_LOGS/policy/$task.out"; done
  sleep 1
done
echo "oops" > "$ROLE_LOGS/policy/1.err"
"#;
    let base = service.sandbox.var("SLURM_BASE_RESULTS_DIR").to_owned();
    let roles = format!("ROLE_LOGS={base}/slurm-logs/$SLURM_JOB_NAME-$SLURM_JOB_ID\n{text}");
    let id = service.submit(&command(&roles));
    let followed = follow(&service, &format!("/jobs/{id}/logs?follow=true&stream=policy"), None, |_| false);
    let of = |file: &str| {
        let bytes = bytes_of(followed.iter().filter(|event| event.data["file"] == file));
        String::from_utf8(bytes).unwrap()
    };
    let steps = |task: u32| format!("task {task} step 1\ntask {task} step 2\ntask {task} step 3\n");
    assert_eq!(
        (of("policy/0.out"), of("policy/10.out"), of("policy/1.err")),
        (steps(0), steps(10), "oops\n".into())
    );
    service.wait_ended(&id);
    let read =
        |query: &str| String::from_utf8(get(&service, &format!("/jobs/{id}/logs?{query}")).bytes).unwrap();
    assert_eq!(read("stream=controller"), "controller at work\n");
    let headed = format!("==> policy/1.out <==\n{}==> policy/1.err <==\noops\n", steps(1));
    assert_eq!(read("role=policy&task=1"), headed);
    let all = read("stream=policy");
    let place = |name: &str| all.find(&format!("==> policy/{name} <==\n")).unwrap_or_else(|| panic!("{all}"));
    assert!(place("1.out") < place("1.err") && place("1.err") < place("10.out"), "{all}");
    let printed =
        service.run(&["logs", &id, "--role", "policy", "--task", "10", "--stream", "out", "--tail", "1"]);
    assert_eq!(String::from_utf8_lossy(&printed.stdout), "task 10 step 3\n");
    let none = service.get(&format!("/jobs/{id}/logs?stream=rollout"));
    assert_eq!((none.status, none.json()["code"].as_str()), (404, Some("no_log_yet")));
}

#[test]
fn each_attempt_keeps_its_log_and_a_follower_gets_all_of_them() {
    let service = Service::start();
    let id = service.submit(&command("echo \"as $SLURM_JOB_ID\"; exit 7"));
    let first = service.wait_ended(&id);
    let again = service.post(&format!("/jobs/{id}/retry"), "");
    assert_eq!(again.status, 202, "{}", again.text);
    let second =
        service.wait(&id, "the end of the second attempt", |s| s["phase"] == "ended" && s["attempt"] == 2);
    let says = |status: &Value| format!("as {}\n", status["slurm_job_id"].as_str().unwrap());
    let read = |query: &str| service.get(&format!("/jobs/{id}/logs?stream=out{query}")).text;
    assert_eq!(
        (read(""), read("&attempt=1"), read("&attempt=2")),
        (says(&second), says(&first), says(&second))
    );
    assert_eq!(service.get(&format!("/jobs/{id}/logs?attempt=3")).json()["code"], "attempt_not_found");
    let events =
        follow(&service, &format!("/jobs/{id}/logs?follow=true&stream=out&attempt=1"), None, |_| false);
    let names: Vec<_> = events.iter().map(|event| event.name.as_str()).collect();
    assert_eq!(names, ["log", "attempt", "log", "end"], "{events:?}");
    assert_eq!(bytes_of(&events), format!("{}{}", says(&first), says(&second)).into_bytes());
    let printed = service.run(&["logs", &id, "-f", "--attempt", "1", "--stream", "out"]);
    assert_eq!(String::from_utf8_lossy(&printed.stdout), format!("{}{}", says(&first), says(&second)));
}

#[test]
fn a_truncated_or_replaced_log_is_followed_from_its_start() {
    let service = Service::start();
    let id = service.submit(&command("echo one; exec sleep 600"));
    let running = service.wait(&id, "running", |s| s["status"] == "Running");
    let file = format!("{}/main.out", log_dir(&service, &running, 1));
    let mut stage = 0;
    let events = follow(&service, &format!("/jobs/{id}/logs?follow=true&stream=out"), None, |events| {
        let seen = events.last().unwrap();
        match (stage, seen.name.as_str()) {
            (0, "log") => {
                service.sandbox.login(&format!(": > '{file}'"));
                stage = 1;
            }
            (1, "reset") => {
                service.sandbox.login(&format!("echo another > '{file}.new'; mv '{file}.new' '{file}'"));
                stage = 2;
            }
            (2, "log") => return true,
            _ => {}
        }
        false
    });
    service.post(&format!("/jobs/{id}/cancel"), "");
    let found: Vec<_> = events
        .iter()
        .filter(|event| matches!(event.name.as_str(), "log" | "reset"))
        .map(|event| event.data["reason"].as_str().or(event.data["text"].as_str()).unwrap())
        .collect();
    assert_eq!(found, ["one\n", "truncated", "replaced", "another\n"]);
    service.wait_ended(&id);
}

#[test]
fn frozen_login_hosts_are_reported_and_a_follower_misses_nothing() {
    let service = Service::start();
    let id = service.submit(&command(
        "i=0; until [ -e \"$TAO_API_RESULTS_DIR/$TAO_API_JOB_ID/go\" ]; do i=$((i + 1)); echo $i; sleep 1; done
         for more in 1 2 3; do echo $((i + more)); sleep 1; done",
    ));
    service.wait(&id, "running", |s| s["status"] == "Running");
    let mut frozen = None;
    let mut refused = None;
    let events = follow(&service, &format!("/jobs/{id}/logs?follow=true&stream=out"), None, |events| {
        match events.last().unwrap().name.as_str() {
            // Only once: earlier output may still arrive, and a second fault would end the first.
            "log" if events.len() > 2 && refused.is_none() && frozen.is_none() => {
                frozen = Some(service.sandbox.freeze_logins());
            }
            "stale" => {
                let answer = service.get(&format!("/jobs/{id}/logs"));
                assert_eq!(
                    (answer.status, answer.json()["code"].as_str()),
                    (503, Some("cluster_unavailable"))
                );
                assert_eq!(service.status(&id)["status"], "Running", "requests without logs do not wait");
                refused = Some(answer);
                frozen = None;
                service.let_go(&id);
            }
            _ => {}
        }
        false
    });
    assert!(refused.is_some() && frozen.is_none());
    let names: Vec<_> =
        events.iter().filter(|event| event.name != "log").map(|event| event.name.as_str()).collect();
    assert_eq!(names.iter().filter(|name| **name == "stale").count(), 1, "{names:?}");
    assert!(names.contains(&"live") && names.last() == Some(&"end"), "{names:?}");
    let seen = bytes_of(&events);
    assert_eq!(seen, get(&service, &format!("/jobs/{id}/logs?stream=out&offset=0")).bytes);
    let seen = String::from_utf8(seen).unwrap();
    let expected: String = (1..=seen.lines().count()).map(|i| format!("{i}\n")).collect();
    assert_eq!(seen, expected);
}

#[test]
fn a_stopping_service_closes_followed_logs_and_the_command_line_reconnects() {
    let mut service = Service::start();
    let id = service.submit(&command("for i in $(seq 1 12); do echo $i; sleep 1; done"));
    service.wait(&id, "running", |s| s["status"] == "Running");
    let mut client = service.command(&["logs", &id, "-f", "--stream", "out"]);
    let client =
        client.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null()).spawn().unwrap();
    until("a follower", Duration::from_secs(20), || service.metric("tao_slurm_log_followers", "") >= 1.0);
    assert!(service.stop().success());
    assert!(!service.log_text().contains("aborting the remaining tasks"), "a follower held up the end");
    service.spawn();
    let output = client.wait_with_output().unwrap();
    let expected: String = (1..=12).map(|i| format!("{i}\n")).collect();
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
    assert!(output.status.success());
    assert_eq!(json!(service.status(&id)["status"]), "Done");
}
