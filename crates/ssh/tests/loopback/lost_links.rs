//! Connections, servers and programs that end in the middle of a command.
//!
//! libssh2 reports exit status 0 whenever the answer is lost. If the server times out a channel, it reports
//! no error either: the read ends, the channel closes, and only the missing end mark shows that the command
//! did not succeed.

use std::time::{Duration, Instant};

use ssh::{Doubt, Effect, SshError, SshPool};

use crate::proxy::Proxy;
use crate::sshd::{Sshd, command};

fn doubt(error: &SshError) -> Option<Doubt> {
    match error {
        SshError::OutcomeUnknown { doubt, .. } => Some(*doubt),
        _ => None,
    }
}

#[tokio::test]
async fn a_killed_session_process_leaves_the_outcome_unknown_and_the_next_command_works() {
    let server = Sshd::start();
    let pool = server.pool();
    pool.run(command("true")).await.expect("an answer");
    let kill = async {
        server.has_begun().await;
        server.kill_connections();
    };
    let (result, ()) = tokio::join!(pool.run(server.marked("echo begun; sleep 60")), kill);
    let error = result.expect_err("a killed command was accepted");
    assert_eq!((doubt(&error), error.effect()), (Some(Doubt::LinkLost), Effect::Unknown), "{error:?}");
    assert_eq!(pool.run(command("echo x")).await.expect("an answer").stdout, b"x\n");
}

#[tokio::test]
async fn a_channel_that_the_server_times_out_leaves_the_outcome_unknown() {
    let server = Sshd::with("ChannelTimeout session:*=1s\nUnusedConnectionTimeout none");
    let pool = server.pool();
    let error =
        pool.run(command("sleep 50; exit 7")).await.expect_err("a channel that timed out was accepted");
    assert_eq!(doubt(&error), Some(Doubt::LinkLost), "{error:?}");
}

#[tokio::test]
async fn only_a_repeatable_command_is_repeated_after_a_lost_connection() {
    let server = Sshd::start();
    let pool = server.pool();
    let counter = server.path("counter");
    for (repeatable, times) in [(true, 2), (false, 1)] {
        let _ = std::fs::remove_file(&counter);
        let mut request =
            command(&format!("echo x >> {0}; [ $(wc -l < {0}) = 2 ] || sleep 60", counter.display()));
        request.repeatable = repeatable;
        let kill = async {
            server.has("counter").await;
            server.kill_connections();
        };
        let (result, ()) = tokio::join!(pool.run(request), kill);
        assert_eq!(result.is_ok(), repeatable, "{result:?}");
        assert_eq!(std::fs::read_to_string(&counter).expect("a counter").lines().count(), times);
    }
}

#[tokio::test]
async fn a_repetition_that_cannot_connect_does_not_hide_that_the_first_attempt_may_have_run() {
    let server = Sshd::start();
    let pool = server.pool();
    pool.run(command("true")).await.expect("an answer");
    let mut request = server.marked("sleep 60");
    request.repeatable = true;
    let stop = async {
        server.has_begun().await;
        drop(server);
    };
    let (result, ()) = tokio::join!(pool.run(request), stop);
    let error = result.expect_err("a killed command was accepted");
    assert_eq!(error.effect(), Effect::Unknown, "{error:?}");
}

#[tokio::test]
async fn a_program_is_stopped_at_its_deadline_and_the_next_command_works() {
    let server = Sshd::start();
    let pool = server.pool();
    let mut request = command("sleep 600");
    request.deadline = Duration::from_secs(1);
    request.repeatable = true;
    let begun = Instant::now();
    let error = pool.run(request).await.expect_err("it ended by itself");
    assert_eq!(doubt(&error), Some(Doubt::Deadline), "{error:?}");
    assert!(begun.elapsed() < Duration::from_mins(5), "it took {:?}", begun.elapsed());
    assert_eq!(pool.run(command("echo x")).await.expect("an answer").stdout, b"x\n");
    // The login host reported the timeout itself, so the session stays usable.
    assert_eq!(pool.health().connects_total, 1);
}

#[tokio::test]
async fn a_program_that_ignores_sigterm_at_its_deadline_costs_only_the_session() {
    let server = Sshd::start();
    let pool = server.pool();
    let mut request = command("trap '' TERM; sleep 600 & wait; sleep 600");
    request.deadline = Duration::from_secs(1);
    let begun = Instant::now();
    let error = pool.run(request).await.expect_err("it ended by itself");
    assert_eq!(doubt(&error), Some(Doubt::Deadline), "{error:?}");
    assert!(begun.elapsed() < Duration::from_mins(5), "it took {:?}", begun.elapsed());
    assert_eq!(pool.run(command("echo x")).await.expect("an answer").stdout, b"x\n");
    assert_eq!(pool.health().connects_total, 2);
}

#[tokio::test]
async fn an_idle_session_closed_by_the_server_is_replaced_without_a_failure() {
    let server = Sshd::start();
    let pool = server.pool();
    pool.run(command("true")).await.expect("an answer");
    server.kill_connections();
    assert_eq!(pool.run(command("echo x")).await.expect("an answer").stdout, b"x\n");
    let health = pool.health();
    assert_eq!((health.connects_total, health.failures_total), (2, 0));
}

#[tokio::test]
async fn an_idle_session_answers_the_keepalives_of_the_server() {
    let server = Sshd::with("ClientAliveInterval 1\nClientAliveCountMax 5");
    let pool = server.pool();
    pool.run(command("true")).await.expect("an answer");
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(pool.health().sessions_open, 1, "{}", server.log());
    pool.run(command("true")).await.expect("an answer");
    assert_eq!(pool.health().connects_total, 1);
}

fn through(proxy: &Proxy, server: &Sshd) -> SshPool {
    let mut config = server.config();
    config.hosts = vec![ssh::HostPort::new("127.0.0.1", proxy.port).expect("a host")];
    config.pinned_host_keys = vec![server.host_key_line(proxy.port)];
    config.keepalive = Duration::from_secs(1);
    SshPool::start(config)
}

#[tokio::test]
async fn an_idle_connection_that_stops_carrying_data_is_detected_before_the_next_command() {
    let server = Sshd::start();
    let proxy = Proxy::to(&server.host());
    let pool = through(&proxy, &server);
    pool.run(command("true")).await.expect("an answer");
    proxy.stop_carrying_data();
    while pool.health().sessions_open > 0 {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(pool.run(command("echo x")).await.expect("an answer").stdout, b"x\n");
}

#[tokio::test]
async fn a_connection_that_stops_carrying_data_during_a_command_is_bounded_by_the_deadline() {
    let server = Sshd::start();
    let proxy = Proxy::to(&server.host());
    let pool = through(&proxy, &server);
    pool.run(command("true")).await.expect("an answer");
    let mut request = server.marked("sleep 60; echo x");
    request.deadline = Duration::from_secs(5);
    let outage = async {
        server.has_begun().await;
        proxy.stop_carrying_data();
    };
    let begun = Instant::now();
    let (result, ()) = tokio::join!(pool.run(request), outage);
    let error = result.expect_err("an answer over a dead link");
    assert_eq!(error.effect(), Effect::Unknown, "{error:?}");
    assert!(begun.elapsed() < Duration::from_mins(1), "it took {:?}", begun.elapsed());
    assert_eq!(pool.run(command("echo x")).await.expect("an answer").stdout, b"x\n");
}

#[tokio::test]
async fn closing_the_pool_gives_up_a_running_command_with_an_unknown_outcome() {
    let server = Sshd::start();
    let pool = server.pool();
    let clone = pool.clone();
    let mut request = server.marked("sleep 60");
    request.deadline = Duration::from_mins(2);
    let closing = async {
        server.has_begun().await;
        pool.close().await;
    };
    let (result, ()) = tokio::join!(clone.run(request), closing);
    assert_eq!(doubt(&result.expect_err("an answer")), Some(Doubt::Closing));
}

#[tokio::test]
async fn an_abandoned_command_is_not_sent_when_its_connection_opens_later() {
    let server = Sshd::start();
    let proxy = Proxy::closed_to(&server.host());
    let pool = through(&proxy, &server);
    let sent = server.path("sent");
    let request = command(&format!("touch {}", sent.display()));
    let given_up = tokio::time::timeout(Duration::from_millis(300), pool.run(request)).await;
    assert!(given_up.is_err(), "{given_up:?}");
    proxy.open();
    assert_eq!(pool.run(command("echo x")).await.expect("an answer").stdout, b"x\n");
    assert!(!sent.exists());
}
