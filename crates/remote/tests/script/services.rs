//! Services that must be ready before the steps begin and work until these have ended, and steps that may fail.

use std::{
    fs,
    net::TcpListener,
    process::{Command, Output},
    time::Instant,
};

use remote::{BatchScript, Component, Kind, Log, Probe, ServiceRules, Value};

use crate::{
    components::record,
    node::{Node, component, stderr},
};

/// Answers with a status and a body, until there is a file `hang`. $1: the port.
const SERVER: &str = r#"
import http.server, os, sys, time
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if os.path.exists(os.environ["SITE"] + "/hang"):
            time.sleep(600)
        body = open(os.environ["SITE"] + "/body", "rb").read()
        self.send_response(200 if self.path == "/health" else 404)
        self.end_headers()
        self.wfile.write(body)
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"#;

/// A job with a service `model` by these rules, and the step `score`.
fn job(node: &Node, rules: ServiceRules, serve: &str, score: &str) -> BatchScript {
    let program = |name: &str, kind, text: &str| Component {
        name: name.parse().unwrap(),
        kind,
        log: Log::Own,
        ..component(&["bash", "-c", text])
    };
    let model = Component { rules: Some(rules), ..program("model", Kind::Service, serve) };
    BatchScript { components: vec![model, program("score", Kind::Step, score)], ..node.script(&[]) }
}

fn rules(probe: Probe) -> ServiceRules {
    ServiceRules {
        probe: Some(probe),
        every: 1,
        probe_limit: 2,
        ready_limit: 120,
        live_every: 1,
        most_missed: 2,
        most_again: 0,
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn http(port: u16, body: Option<(&str, u32)>) -> Probe {
    let body = body.map(|(pattern, least)| (pattern.to_owned(), least));
    Probe::Http {
        node: 0,
        port: Value::Text(port.to_string()),
        path: "/health".to_owned(),
        status: 200,
        body,
    }
}

/// A server on this port, with this body.
fn server(node: &Node, port: u16, body: &str) -> String {
    fs::write(node.file("server.py"), SERVER).unwrap();
    fs::write(node.file("body"), body).unwrap();
    format!("exec python3 $SITE/server.py {port}")
}

fn is_code(output: &Output, code: i32) {
    assert_eq!(output.status.code(), Some(code), "{}", stderr(output));
}

fn says(output: &Output, text: &str) {
    assert!(stderr(output).contains(text), "{text} in {}", stderr(output));
}

#[test]
fn steps_begin_when_the_service_answers_as_its_rule_says() {
    let node = Node::new();
    let port = free_port();
    let serve = server(&node, port, "\"worker\" ");
    // The second worker registers later.
    let serve = format!("(sleep 2; echo '\"worker\" \"worker\"' >$SITE/body) & {serve}");
    let score = "cat $SITE/body; grep -c 'model ' $SITE/state/services || true";
    let output = node.run(&job(&node, rules(http(port, Some(("\"worker\"", 2)))), &serve, score), 42, 0);
    is_code(&output, 0);
    assert_eq!(node.read("logs/job-1-42/score/0.out"), "\"worker\" \"worker\"\n0\n");
    says(&output, "the service model is ready after ");
    assert_eq!(record(&node)[..2], ["done", "score 0"]);
}

#[test]
fn while_a_service_loads_the_marker_has_its_start_and_its_limit() {
    let node = Node::new();
    let serve = "until [ -e $SITE/loaded ]; do sleep 0.1; done; echo listening; sleep 600";
    let script = job(&node, rules(Probe::Log("^listening$".to_owned())), serve, "true");
    let mut run = node.command(&script, 42, 1).spawn().unwrap();
    node.wait_for("state/services");
    let words = node.words("state/services");
    assert_eq!(
        (&*words[0], &*words[1], &*words[3], &*words[4], &*words[6]),
        ("42", "1", "model", "starting", "120;")
    );
    let (now, since): (u64, u64) = (words[2].parse().unwrap(), words[5].parse().unwrap());
    // The time of a round is that of its beginning, and the service may begin in it.
    assert!(now.abs_diff(since) < 60, "{words:?}");
    fs::write(node.file("loaded"), "").unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(0));
    assert_eq!(node.words("state/services")[3..], ["", ""], "no service is left in it");
}

#[test]
fn a_service_that_is_not_ready_in_time_ends_the_job() {
    let node = Node::new();
    // It accepts connections and never answers, and its backlog is small.
    let deaf = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = deaf.local_addr().unwrap().port();
    let rules = ServiceRules { ready_limit: 4, ..rules(http(port, None)) };
    let began = Instant::now();
    let output = node.run(&job(&node, rules, "exec sleep 600", "echo never >$SITE/never"), 42, 0);
    is_code(&output, 126);
    says(&output, "the service model is not ready after 4 s; the others are terminated");
    // The script counts in whole seconds.
    assert!(began.elapsed().as_secs() >= 3 && !node.has("never"));
    assert_eq!(record(&node)[0], "service model");
    assert_eq!(node.words("state/exit")[2], "126");
}

#[test]
fn a_service_that_ends_while_it_loads_ends_the_job_with_its_code() {
    let node = Node::new();
    let file = node.path("never");
    let output = node.run(&job(&node, rules(Probe::File(file)), "sleep 1; exit 9", "true"), 42, 0);
    is_code(&output, 9);
    says(&output, "the service model has ended with code 9");
}

#[test]
fn a_service_that_no_longer_answers_ends_the_job() {
    let node = Node::new();
    let port = free_port();
    let serve = server(&node, port, "");
    let score = "touch $SITE/hang; exec sleep 600";
    let output = node.run(&job(&node, rules(http(port, None)), &serve, score), 42, 0);
    is_code(&output, 125);
    says(&output, "the service model has failed 2 probes in a row; the others are terminated");
    assert_eq!(record(&node)[0], "service model");
}

#[test]
fn a_service_that_ends_just_after_a_step_has_failed_is_the_cause() {
    let node = Node::new();
    // Its end is seen a moment after that of the step, which has lost its connection.
    let serve = "touch $SITE/up; until [ -e $SITE/lost ]; do sleep 0.1; done; sleep 0.5; exit 9";
    let rules = rules(Probe::File(node.path("up")));
    let output = node.run(&job(&node, rules, serve, "touch $SITE/lost; exit 1"), 42, 0);
    is_code(&output, 9);
    says(&output, "the service model has ended with code 9; the others are terminated");
    assert_eq!(record(&node), ["service model", "score 1", "model 9"]);
}

#[test]
fn a_service_that_ends_in_order_after_a_step_has_failed_is_not_the_cause() {
    let node = Node::new();
    let serve = "touch $SITE/up; until [ -e $SITE/lost ]; do sleep 0.1; done; sleep 0.5";
    let rules = rules(Probe::File(node.path("up")));
    let output = node.run(&job(&node, rules, serve, "touch $SITE/lost; exit 7"), 42, 0);
    is_code(&output, 7);
    assert_eq!(record(&node), ["step score", "score 7", "model 0"]);
}

#[test]
fn a_service_that_ends_just_after_a_step_that_may_fail_ends_the_job() {
    let node = Node::new();
    let serve = "touch $SITE/up; until [ -e $SITE/lost ]; do sleep 0.1; done; sleep 0.5; exit 9";
    let mut script = job(&node, rules(Probe::File(node.path("up"))), serve, "touch $SITE/lost; exit 1");
    script.components[1].may_fail = true;
    is_code(&node.run(&script, 42, 0), 9);
    assert_eq!(record(&node)[0], "service model");
}

#[test]
fn a_step_that_fails_beside_a_service_that_works_is_the_cause() {
    let node = Node::new();
    let rules = rules(Probe::File(node.path("up")));
    let output = node.run(&job(&node, rules, "touch $SITE/up; sleep 600", "exit 7"), 42, 0);
    is_code(&output, 7);
    assert_eq!(record(&node)[..2], ["step score", "score 7"]);
}

#[test]
fn a_service_that_may_starts_again_and_the_steps_go_on() {
    let node = Node::new();
    let serve = "echo start >>$SITE/starts; if [ $(wc -l <$SITE/starts) = 1 ]; then \
                 until [ -e $SITE/scoring ]; do sleep 0.1; done; exit 9; fi; touch $SITE/again; sleep 600";
    let score = "touch $SITE/scoring; until [ -e $SITE/again ]; do sleep 0.1; done";
    let mut rules = ServiceRules { probe: None, most_again: 1, ..rules(Probe::File(node.path("never"))) };
    let output = node.run(&job(&node, rules.clone(), serve, score), 42, 0);
    is_code(&output, 0);
    says(&output, "the service model has ended with code 9; it starts again, for time 1 of at most 1");
    rules.most_again = 2;
    let other = Node::new();
    let output = other.run(&job(&other, rules, "exit 9", "exec sleep 600"), 42, 0);
    is_code(&output, 9);
    assert_eq!(stderr(&output).matches("it starts again").count(), 2, "{}", stderr(&output));
}

#[test]
fn a_service_that_ends_while_it_loads_starts_again_if_it_may() {
    let node = Node::new();
    let serve = "echo start >>$SITE/starts; if [ $(wc -l <$SITE/starts) = 1 ]; then exit 9; fi; touch $SITE/up; sleep 600";
    let rules = ServiceRules { most_again: 1, ..rules(Probe::File(node.path("up"))) };
    let output = node.run(&job(&node, rules, serve, "echo scored >$SITE/scored"), 42, 0);
    is_code(&output, 0);
    says(&output, "the service model has ended with code 9; it starts again, for time 1 of at most 1");
    assert!(node.has("scored"));
}

#[test]
fn a_service_that_could_not_start_again_has_not_begun() {
    let node = Node::new();
    let serve = ": >\"$_tao_begun\"; ls $SITE/state >$SITE/first; cd $SITE/bin; rm srun; \
                 printf '#!/bin/bash\\nexit 1\\n' >srun; chmod +x srun; exit 9";
    let rules = ServiceRules { most_again: 1, ..rules(Probe::File(node.path("never"))) };
    is_code(&node.run(&job(&node, rules, serve, "touch $SITE/scored"), 42, 0), 1);
    assert!(node.read("first").contains("begun.model.0"), "{}", node.read("first"));
    // What ended the job was the setup, which is tried again, and not the program.
    assert!(!node.has("state/begun.model.0") && !node.has("scored"));
}

#[test]
fn a_service_that_hangs_is_ended_and_starts_again() {
    let node = Node::new();
    // It ignores SIGTERM, as a program that hangs in the kernel does.
    let serve = "echo start >>$SITE/starts; if [ $(wc -l <$SITE/starts) = 1 ]; then trap '' TERM; rm -f $SITE/up; fi; \
                 touch $SITE/up; sleep 600 & while :; do wait; done";
    let score = "rm -f $SITE/up; until [ $(wc -l <$SITE/starts) = 2 -a -e $SITE/up ]; do sleep 0.1; done";
    let rules = ServiceRules { most_again: 1, ..rules(Probe::File(node.path("up"))) };
    let output = node.run(&job(&node, rules, serve, score), 42, 0);
    is_code(&output, 0);
    says(&output, "the service model has failed 2 probes in a row; it is ended");
    says(&output, "it starts again, for time 1 of at most 1");
}

#[test]
fn lines_from_before_its_start_do_not_make_a_service_ready() {
    let node = Node::new();
    fs::create_dir_all(node.file("logs/job-1-42/model")).unwrap();
    fs::write(node.file("logs/job-1-42/model/0.out"), "ready\n").unwrap();
    let rules = ServiceRules { ready_limit: 3, ..rules(Probe::Log("ready".to_owned())) };
    is_code(&node.run(&job(&node, rules, "exec sleep 600", "true"), 42, 0), 126);
}

#[test]
fn a_port_that_is_taken_ends_the_service_before_its_program() {
    let node = Node::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = Value::Text(taken.local_addr().unwrap().port().to_string());
    let probe = Probe::Tcp { node: 0, port: port.clone() };
    let mut script = job(&node, rules(probe), "echo never >$SITE/never; sleep 600", "sleep 600");
    script.components[0].port = Some(port);
    let output = node.run(&script, 42, 0);
    is_code(&output, 111);
    let log = node.read("logs/job-1-42/model/0.err");
    assert!(log.contains(" is taken on node01"), "{log}");
    assert!(!node.has("never"));
}

#[test]
fn no_program_of_a_probe_stays() {
    let node = Node::new();
    let deaf = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = deaf.local_addr().unwrap().port();
    let rules = ServiceRules { probe_limit: 100, live_every: 1, ..rules(http(port, None)) };
    let output = node.run(&job(&node, rules, "sleep 2; exit 9", "true"), 42, 0);
    is_code(&output, 9);
    let words = format!(" localhost {port} /health");
    let left = Command::new("pgrep").args(["-f", &words]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&left.stdout), "");
}

#[test]
fn the_steps_after_one_that_may_fail_run_and_the_job_has_its_code() {
    let node = Node::new();
    let step = |name: &str, may_fail, text: &str| Component {
        name: name.parse().unwrap(),
        may_fail,
        ..component(&["bash", "-c", text])
    };
    let mut slow = step("slow", true, "trap 'echo saved; exit' TERM; while :; do sleep 0.1; done");
    // By then it listens, on a busy machine too.
    slow.timeout = slurm::RunTime::from_seconds(5);
    let components = vec![
        step("first", true, "exit 7"),
        slow,
        step("second", true, "exit 8"),
        step("last", false, "echo last"),
    ];
    let output = node.run(&BatchScript { components, ..node.script(&[]) }, 42, 0);
    is_code(&output, 7);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "saved\nlast\n");
    says(&output, "the step first has ended with code 7; the job goes on");
    assert_eq!(record(&node), ["done", "first 7", "slow 115", "second 8", "last 0"]);
    let failing = vec![step("first", true, "exit 7"), step("last", false, "exit 9")];
    let other = Node::new();
    is_code(&other.run(&BatchScript { components: failing, ..other.script(&[]) }, 42, 0), 9);
}
