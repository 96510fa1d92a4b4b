//! Links, servers and programs that go away in the middle.
//!
//! libssh2 alone reports an exit status of 0 in each case of a lost answer. For a channel that the server
//! times out it reports no error either: the read ends, the channel closes, and nothing but the missing
//! end mark tells it from success.

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
        tokio::time::sleep(Duration::from_millis(500)).await;
        server.kill_connections();
    };
    let (result, ()) = tokio::join!(pool.run(command("echo begun; sleep 10")), kill);
    let error = result.expect_err("a killed command was believed");
    assert_eq!((doubt(&error), error.effect()), (Some(Doubt::LinkLost), Effect::Unknown), "{error:?}");
    assert_eq!(pool.run(command("echo x")).await.expect("an answer").stdout, b"x\n");
}

#[tokio::test]
async fn a_channel_that_the_server_times_out_leaves_the_outcome_unknown() {
    let server = Sshd::with("ChannelTimeout session:*=1s\nUnusedConnectionTimeout none");
    let pool = server.pool();
    let begun = Instant::now();
    let error =
        pool.run(command("sleep 5; exit 7")).await.expect_err("a channel that timed out was believed");
    assert_eq!(doubt(&error), Some(Doubt::LinkLost), "{error:?}");
    assert!(begun.elapsed() < Duration::from_secs(4));
}

#[tokio::test]
async fn a_repeatable_command_is_tried_again_after_a_lost_link_and_another_is_not() {
    let server = Sshd::start();
    let pool = server.pool();
    let counter = server.path("counter");
    for (repeatable, times) in [(true, 2), (false, 1)] {
        let _ = std::fs::remove_file(&counter);
        let mut wanted =
            command(&format!("echo x >> {0}; [ $(wc -l < {0}) = 2 ] || sleep 10", counter.display()));
        wanted.repeatable = repeatable;
        let kill = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            server.kill_connections();
        };
        let (result, ()) = tokio::join!(pool.run(wanted), kill);
        assert_eq!(result.is_ok(), repeatable, "{result:?}");
        assert_eq!(std::fs::read_to_string(&counter).expect("a counter").lines().count(), times);
    }
}

#[tokio::test]
async fn a_repetition_that_cannot_even_connect_does_not_hide_that_the_first_try_may_have_run() {
    let server = Sshd::start();
    let pool = server.pool();
    pool.run(command("true")).await.expect("an answer");
    let mut wanted = command("sleep 10");
    wanted.repeatable = true;
    let stop = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        drop(server);
    };
    let (result, ()) = tokio::join!(pool.run(wanted), stop);
    let error = result.expect_err("a killed command was believed");
    assert_eq!(error.effect(), Effect::Unknown, "{error:?}");
}

#[tokio::test]
async fn a_program_that_outlives_its_deadline_is_ended_and_the_next_command_works() {
    let server = Sshd::start();
    let pool = server.pool();
    let mut wanted = command("sleep 30");
    wanted.deadline = Duration::from_secs(1);
    wanted.repeatable = true;
    let begun = Instant::now();
    let error = pool.run(wanted).await.expect_err("it ended by itself");
    assert_eq!(doubt(&error), Some(Doubt::Deadline), "{error:?}");
    assert!(begun.elapsed() < Duration::from_secs(4), "it took {:?}", begun.elapsed());
    assert_eq!(pool.run(command("echo x")).await.expect("an answer").stdout, b"x\n");
    // The remote side reported the timeout itself, so the session is as good as before.
    assert_eq!(pool.health().connects_total, 1);
}

#[tokio::test]
async fn a_program_that_ignores_the_end_of_its_deadline_costs_the_session_and_nothing_else() {
    let server = Sshd::start();
    let pool = server.pool();
    let mut wanted = command("trap '' TERM; sleep 30 & wait; sleep 30");
    wanted.deadline = Duration::from_secs(1);
    let begun = Instant::now();
    let error = pool.run(wanted).await.expect_err("it ended by itself");
    assert_eq!(doubt(&error), Some(Doubt::Deadline), "{error:?}");
    assert!(begun.elapsed() < Duration::from_secs(6), "it took {:?}", begun.elapsed());
    assert_eq!(pool.run(command("echo x")).await.expect("an answer").stdout, b"x\n");
    assert_eq!(pool.health().connects_total, 2);
}

#[tokio::test]
async fn a_session_closed_by_the_server_while_idle_is_replaced_without_a_failure() {
    let server = Sshd::start();
    let pool = server.pool();
    pool.run(command("true")).await.expect("an answer");
    server.kill_connections();
    assert_eq!(pool.run(command("echo x")).await.expect("an answer").stdout, b"x\n");
    let health = pool.health();
    assert_eq!((health.connects_total, health.failures_total), (2, 0));
}

#[tokio::test]
async fn a_server_that_asks_whether_we_are_there_gets_an_answer_while_idle() {
    let server = Sshd::with("ClientAliveInterval 1\nClientAliveCountMax 2");
    let pool = server.pool();
    pool.run(command("true")).await.expect("an answer");
    tokio::time::sleep(Duration::from_secs(5)).await;
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
async fn a_link_that_falls_silent_while_idle_is_noticed_before_the_next_command() {
    let server = Sshd::start();
    let proxy = Proxy::to(&server.host());
    let pool = through(&proxy, &server);
    pool.run(command("true")).await.expect("an answer");
    proxy.fall_silent();
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(pool.health().sessions_open, 0);
    let begun = Instant::now();
    assert_eq!(pool.run(command("echo x")).await.expect("an answer").stdout, b"x\n");
    assert!(begun.elapsed() < Duration::from_secs(1), "it took {:?}", begun.elapsed());
}

#[tokio::test]
async fn a_link_that_falls_silent_under_a_command_is_bounded_by_the_deadline() {
    let server = Sshd::start();
    let proxy = Proxy::to(&server.host());
    let pool = through(&proxy, &server);
    pool.run(command("true")).await.expect("an answer");
    let mut wanted = command("sleep 1; echo x");
    wanted.deadline = Duration::from_secs(2);
    let silence = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        proxy.fall_silent();
    };
    let begun = Instant::now();
    let (result, ()) = tokio::join!(pool.run(wanted), silence);
    let error = result.expect_err("an answer over a dead link");
    assert_eq!(error.effect(), Effect::Unknown, "{error:?}");
    assert!(begun.elapsed() < Duration::from_secs(7), "it took {:?}", begun.elapsed());
    assert_eq!(pool.run(command("echo x")).await.expect("an answer").stdout, b"x\n");
}

#[tokio::test]
async fn closing_the_pool_gives_up_a_command_that_does_not_end_and_does_not_call_it_done() {
    let server = Sshd::start();
    let pool = server.pool();
    let clone = pool.clone();
    let mut wanted = command("sleep 60");
    wanted.deadline = Duration::from_mins(2);
    let closing = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        pool.close().await;
    };
    let begun = Instant::now();
    let (result, ()) = tokio::join!(clone.run(wanted), closing);
    assert_eq!(doubt(&result.expect_err("an answer")), Some(Doubt::Closing));
    assert!(begun.elapsed() < Duration::from_secs(14), "it took {:?}", begun.elapsed());
}

#[tokio::test]
async fn a_command_that_nobody_waits_for_any_more_is_not_sent_when_its_connection_comes_at_last() {
    let server = Sshd::start();
    let proxy = Proxy::closed_to(&server.host());
    let pool = through(&proxy, &server);
    let sent = server.path("sent");
    let wanted = command(&format!("touch {}", sent.display()));
    let given_up = tokio::time::timeout(Duration::from_millis(300), pool.run(wanted)).await;
    assert!(given_up.is_err(), "{given_up:?}");
    proxy.open();
    assert_eq!(pool.run(command("echo x")).await.expect("an answer").stdout, b"x\n");
    assert!(!sent.exists());
}
