//! Several login hosts, some of them unusable.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use ssh::{Effect, HostPort, HostState, SshConfig, SshError, SshPool};

use crate::sshd::{Sshd, command, free_port};

fn local(port: u16) -> HostPort {
    HostPort::new("127.0.0.1", port).expect("a host")
}

fn with_hosts(server: &Sshd, hosts: Vec<HostPort>) -> SshConfig {
    SshConfig { hosts, ..server.config() }
}

#[tokio::test]
async fn a_host_that_refuses_connections_is_skipped_and_the_pool_stays_with_the_other_host() {
    let server = Sshd::start();
    let dead = local(free_port());
    let pool = SshPool::start(with_hosts(&server, vec![dead.clone(), server.host()]));
    for _ in 0..3 {
        assert_eq!(pool.run(command("true")).await.expect("an answer").host, server.host());
    }
    let health = pool.health();
    assert!(matches!(health.hosts[0].state, HostState::Down { .. }), "{health:?}");
    assert_eq!((&health.hosts[1].state, health.connects_total), (&HostState::Up, 2));
    assert!(health.hosts[0].last_error.as_ref().is_some_and(|error| error.contains("refused")), "{health:?}");
}

#[tokio::test]
async fn a_host_that_accepts_and_never_answers_costs_one_connect_timeout() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let server = Sshd::start();
    let mut config =
        with_hosts(&server, vec![local(silent.local_addr().expect("an address").port()), server.host()]);
    // The other host has to answer within it, on a busy machine too.
    config.connect_timeout = Duration::from_secs(10);
    let pool = SshPool::start(config);
    let output = pool.run(command("echo x")).await.expect("an answer");
    assert_eq!((output.host, output.stdout.as_slice()), (server.host(), &b"x\n"[..]));
    assert_eq!(pool.health().connects_total, 2);
}

#[tokio::test]
async fn if_every_host_is_left_alone_the_error_is_immediate_and_names_each_host() {
    let (one, two) = (local(free_port()), local(free_port()));
    let server = Sshd::start();
    // A host is left alone for 0.8 s or more. A machine that needs longer for two commands does it again.
    let pool = loop {
        let (pool, begun) =
            (SshPool::start(with_hosts(&server, vec![one.clone(), two.clone()])), Instant::now());
        for _ in 0..2 {
            let error = pool.run(command("true")).await.expect_err("an answer from nowhere");
            let SshError::Unreachable { failures } = &error else { panic!("{error:?}") };
            let hosts: Vec<&HostPort> = failures.iter().map(|failure| &failure.host).collect();
            assert_eq!((hosts, error.effect()), (vec![&one, &two], Effect::None));
            assert!(error.advice().contains(&one.to_string()), "{}", error.advice());
        }
        if begun.elapsed() < Duration::from_millis(800) {
            break pool;
        }
    };
    assert_eq!(pool.health().connects_total, 2, "a host was retried too early");
    while pool.health().connects_total == 2 {
        assert!(pool.run(command("true")).await.is_err());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_pool_without_hosts_reports_it() {
    let server = Sshd::start();
    let error = SshPool::start(with_hosts(&server, vec![])).run(command("true")).await.expect_err("no hosts");
    assert_eq!(error, SshError::Unreachable { failures: vec![] });
    assert!(error.advice().contains("Configure"));
}

#[tokio::test]
async fn the_pool_fails_over_and_returns_to_the_first_host_when_it_reopens_sessions() {
    let (first, second) = (Sshd::start(), Sshd::start());
    let mut config = with_hosts(&first, vec![first.host(), second.host()]);
    config.pinned_host_keys.push(second.host_key_line(second.host().port()));
    // The second server accepts the key of the first.
    std::fs::copy(first.path("user_key.pub"), second.path("authorized_keys")).expect("copied");
    let pool = SshPool::start(config);
    assert_eq!(pool.run(command("true")).await.expect("an answer").host, first.host());
    // Only the first run lasts: it makes the file.
    let mut request = command(&format!("mkdir {} && sleep 50; echo x", first.path("begun").display()));
    request.repeatable = true;
    let kill = async {
        first.has_begun().await;
        first.kill_connections();
    };
    let (result, ()) = tokio::join!(pool.run(request), kill);
    assert_eq!(result.expect("an answer from the other host").host, second.host());
    assert_eq!(
        pool.run(command("true")).await.expect("an answer").host,
        second.host(),
        "the pool left the working host"
    );
    second.kill_connections();
    assert_eq!(pool.run(command("true")).await.expect("an answer").host, first.host());
}

#[tokio::test]
async fn sessions_open_one_after_another_so_that_a_strict_server_drops_none() {
    // While two connections are not logged in yet, the server drops every further one. sshd stops counting a connection a little late.
    let server = Sshd::with("MaxStartups 2");
    let mut config = server.config();
    config.sessions = 4;
    let pool = SshPool::start(config);
    let long = || pool.run(command("sleep 3"));
    let (one, two, three, four) = tokio::join!(long(), long(), long(), long());
    assert!([one, two, three, four].iter().all(Result::is_ok), "{:?}\n{}", pool.health(), server.log());
    let health = pool.health();
    assert_eq!((health.connects_total, health.sessions_open, health.failures_total), (4, 4, 0));
    assert!(!server.log().contains("MaxStartups"), "{}", server.log());
}

#[tokio::test]
async fn more_commands_than_sessions_wait_and_open_no_further_session() {
    let server = Sshd::with("MaxSessions 1");
    let pool = server.pool();
    let mut running = tokio::task::JoinSet::new();
    for number in 0..24 {
        let pool = pool.clone();
        running.spawn(async move { (number, pool.run(command(&format!("sleep 0.1; echo {number}"))).await) });
    }
    while let Some(ended) = running.join_next().await {
        let (number, output) = ended.expect("a task");
        assert_eq!(output.expect("an answer").stdout, format!("{number}\n").into_bytes());
    }
    let health = pool.health();
    assert!(health.connects_total <= 2 && health.failures_total == 0, "{health:?}");
}
