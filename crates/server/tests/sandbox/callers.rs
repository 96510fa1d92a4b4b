//! The headers of a submission: an idempotency key, through two processes at once, and a trace that Slurm shows.

use std::{
    net::TcpListener,
    process::{Child, Stdio},
    time::Duration,
};

use crate::{
    ending::command,
    service::{Service, until},
};

const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// Another API process on the same database.
struct Second(Child);

impl Second {
    fn start(service: &Service) -> (Self, String) {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let address = format!("127.0.0.1:{port}");
        let mut serve = service.command(&["serve", "--role", "api", "--bind", &address]);
        let second = Self(serve.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        let url = format!("http://{address}");
        until("the second process to listen", Duration::from_secs(30), || {
            std::net::TcpStream::connect(&address).is_ok()
        });
        (second, url)
    }
}

impl Drop for Second {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn fifty_posts_with_one_idempotency_key_through_two_processes_are_one_job() {
    let service = Service::start();
    let (_second, other) = Second::start(&service);
    let body = command("sleep 600").to_string();
    let headers = [("idempotency-key", "k"), ("traceparent", TRACE)];
    let ids: Vec<String> = std::thread::scope(|scope| {
        let send = |number: usize| {
            let url = if number.is_multiple_of(2) { &service.url } else { &other };
            let answer = service.post_with(url, "/jobs", &headers, &body);
            assert_eq!(answer.status, 201, "{}", answer.text);
            answer.json()["id"].as_str().unwrap().to_owned()
        };
        let threads: Vec<_> = (0..50).map(|number| scope.spawn(move || send(number))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    assert_eq!(service.get("/jobs").json()["jobs"].as_array().unwrap().len(), 1);
    service.wait(&ids[0], "running", |status| status["status"] == "Running");
    let comment = service.sandbox.login(&format!("squeue -h -o %k --name tao-job-{}", ids[0]));
    assert_eq!(comment.trim(), format!("traceparent={TRACE}"));
    service.post(&format!("/jobs/{}/cancel", ids[0]), "");
    assert_eq!(service.wait_ended(&ids[0])["status"], "Canceled");
}
