//! User keys that are accepted, refused, unreadable, or in an agent.

use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command as Process, Stdio};
use std::time::Duration;

use ssh::{Effect, HostState, SshError, SshPool};

use crate::sshd::{Sshd, command, generate_key, pause};

/// An agent of the test; it ends when the value is dropped.
struct Agent {
    child: Child,
    socket: PathBuf,
}

impl Agent {
    fn start(socket: PathBuf) -> Self {
        let mut child = Process::new("ssh-agent")
            .args(["-D", "-a"])
            .arg(&socket)
            .stdout(Stdio::null())
            .spawn()
            .expect("ssh-agent");
        // The socket is there before anybody listens.
        while UnixStream::connect(&socket).is_err() {
            assert!(child.try_wait().expect("its state").is_none(), "ssh-agent has ended");
            pause(Duration::from_millis(20));
        }
        Self { child, socket }
    }

    fn add(&self, key: PathBuf) {
        let added = Process::new("ssh-add")
            .arg("-q")
            .arg(key)
            .env("SSH_AUTH_SOCK", &self.socket)
            .status()
            .expect("ssh-add");
        assert!(added.success());
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn an_unknown_user_key_is_refused_and_not_retried_at_once() {
    let server = Sshd::start();
    generate_key(&server.path("wrong_key"), "ed25519");
    let mut config = server.config();
    config.key_path = Some(server.path("wrong_key"));
    let pool = SshPool::start(config);
    for _ in 0..3 {
        let error = pool.run(command("true")).await.expect_err("it logged in");
        let SshError::AuthRefused { host, tried, .. } = &error else { panic!("{error:?}") };
        assert_eq!((host, error.effect()), (&server.host(), Effect::None));
        assert!(tried[0].contains("wrong_key") && error.advice().contains("authorized_keys"), "{error:?}");
    }
    let health = pool.health();
    assert!(matches!(health.hosts[0].state, HostState::AuthRefused { .. }));
    let pause =
        health.hosts[0].next_try.expect("a pause").saturating_duration_since(std::time::Instant::now());
    assert!(health.connects_total == 1 && pause > Duration::from_mins(3), "{health:?}");
}

#[tokio::test]
async fn a_replaced_key_file_is_tried_before_the_pause_is_over() {
    let server = Sshd::start();
    generate_key(&server.path("key"), "rsa");
    let mut config = server.config();
    config.key_path = Some(server.path("key"));
    let pool = SshPool::start(config);
    assert!(matches!(pool.run(command("true")).await, Err(SshError::AuthRefused { .. })));
    std::fs::copy(server.path("user_key"), server.path("key")).expect("copied");
    pool.run(command("true")).await.expect("an answer with the right key");
}

#[tokio::test]
async fn the_agent_is_used_without_a_key_file_or_after_its_key_is_refused() {
    let server = Sshd::start();
    generate_key(&server.path("other_key"), "ed25519");
    let agent = Agent::start(server.path("agent"));
    agent.add(server.path("other_key"));
    agent.add(server.path("user_key"));
    for key in [None, Some("other_key"), Some("absent")] {
        let mut config = server.config();
        config.key_path = key.map(|name| server.path(name));
        config.use_agent = true;
        config.agent_socket = Some(agent.socket.clone());
        let output = SshPool::start(config).run(command("echo x")).await;
        assert_eq!(output.expect("an answer").stdout, b"x\n", "{key:?}");
    }
}

#[tokio::test]
async fn a_refusal_lists_every_key_that_was_tried() {
    let server = Sshd::start();
    generate_key(&server.path("wrong_key"), "ed25519");
    generate_key(&server.path("agent_key"), "ecdsa");
    let agent = Agent::start(server.path("agent"));
    agent.add(server.path("agent_key"));
    let mut config = server.config();
    config.key_path = Some(server.path("wrong_key"));
    config.use_agent = true;
    config.agent_socket = Some(agent.socket.clone());
    let error = SshPool::start(config).run(command("true")).await.expect_err("it logged in");
    let SshError::AuthRefused { tried, .. } = &error else { panic!("{error:?}") };
    assert!(
        tried.len() == 2 && tried[0].contains("wrong_key") && tried[1].starts_with("agent key"),
        "{tried:?}"
    );
}

#[tokio::test]
async fn an_unusable_key_file_is_reported_without_contacting_a_host() {
    let server = Sshd::start();
    let mut config = server.config();
    config.key_path = Some(server.path("absent"));
    let pool = SshPool::start(config.clone());
    let error = pool.run(command("true")).await.expect_err("it logged in");
    let SshError::KeyUnreadable { path, reason } = &error else { panic!("{error:?}") };
    assert!(path == &server.path("absent") && reason.contains("No such file"), "{error:?}");
    config.key_path = None;
    let none = SshPool::start(config);
    assert_eq!(none.run(command("true")).await, Err(SshError::NoKey));
    assert_eq!(pool.health().connects_total + none.health().connects_total, 0);
}

#[tokio::test]
async fn an_unknown_user_is_refused() {
    let server = Sshd::start();
    let mut config = server.config();
    config.user = "nobody-of-that-name".to_owned();
    let error = SshPool::start(config).run(command("true")).await.expect_err("it logged in");
    assert!(matches!(error, SshError::AuthRefused { .. }), "{error:?}");
}
