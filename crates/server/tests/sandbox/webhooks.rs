//! The webhook of a real job: messages arrive in order, and are repeated after a kill in the middle.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::mpsc::{Receiver, channel},
    time::Duration,
};

use serde_json::{Value, json};

use crate::{ending::held, service::Service};

/// A request to the webhook that waits for its response.
struct Message {
    id: String,
    body: Value,
    stream: TcpStream,
}

impl Message {
    fn status(&self) -> &str {
        self.body["data"]["status"].as_str().unwrap()
    }

    /// The sender may have closed the connection.
    fn answer(&self, status: u16) {
        let _ =
            (&self.stream).write_all(format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n").as_bytes());
    }
}

fn receiver() -> (String, Receiver<Message>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://127.0.0.1:{}/", listener.local_addr().unwrap().port());
    let (sender, messages) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut id, mut length, mut line) = (String::new(), 0, String::new());
            while reader.read_line(&mut line).unwrap_or(0) > 0 && !line.trim().is_empty() {
                match line.split_once(": ") {
                    Some(("webhook-id", value)) => value.trim().clone_into(&mut id),
                    Some(("content-length", value)) => length = value.trim().parse().unwrap(),
                    _ => {}
                }
                line.clear();
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let _ = sender.send(Message { id, body: serde_json::from_slice(&body).unwrap(), stream });
        }
    });
    (url, messages)
}

fn next(messages: &Receiver<Message>) -> Message {
    messages.recv_timeout(Duration::from_mins(5)).unwrap()
}

#[test]
fn webhook_deliveries_continue_after_the_service_was_killed() {
    let config = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&config, "[webhooks]\nallowed_networks = [\"127.0.0.0/8\"]\ntimeout = \"5s\"\n").unwrap();
    let mut service = Service::start_with(&[("TAO_SLURM_CONFIG", config.path().to_str().unwrap())]);
    let (url, messages) = receiver();
    let mut job = held("true");
    job["webhook"] = json!({"url": url, "secret": "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"});
    let id = service.submit(&job);

    let first = next(&messages);
    assert_eq!(first.status(), "Pending");
    first.answer(503);
    let second = next(&messages);
    assert_eq!((&second.id, &second.body), (&first.id, &first.body));
    // The message has arrived, but the process that would record this is killed.
    service.kill();
    second.answer(204);
    service.spawn();
    let third = next(&messages);
    assert_eq!((&third.id, &third.body), (&first.id, &first.body));
    third.answer(204);
    let mut statuses = vec!["Pending".to_owned()];
    while statuses.last().is_some_and(|status| status != "Done") {
        let one = next(&messages);
        assert_eq!(one.body["data"]["previous_status"], *statuses.last().unwrap());
        statuses.push(one.status().to_owned());
        one.answer(204);
        if one.status() == "Running" {
            service.let_go(&id);
        }
    }
    // Every status of the job, and nothing else.
    let events = service.get(&format!("/jobs/{id}/events?kind=transition&limit=1000")).json();
    let events = events["events"].as_array().unwrap().iter();
    let mut had: Vec<&str> = events.map(|event| event["data"]["status"].as_str().unwrap()).collect();
    had.dedup();
    assert_eq!(statuses, had);
    assert!(statuses.contains(&"Running".to_owned()), "{statuses:?}");
    crate::service::until("the last message to be recorded", Duration::from_secs(5), || {
        service.get(&format!("/jobs/{id}/webhook")).json()["pending"] == 0
    });
    assert!(service.metric("tao_slurm_webhook_deliveries_total", "delivered") >= 2.0);
    assert!(!service.log_text().contains("C2FVsBQIhrsc"));
}
