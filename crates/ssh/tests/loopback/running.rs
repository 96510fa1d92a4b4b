//! Commands and their answers, on ordinary servers and on servers that write noise.

use std::path::Path;
use std::time::{Duration, Instant};

use ssh::{Doubt, Effect, SshError};

use crate::sshd::{Sshd, command, generate_key};

#[tokio::test]
async fn a_command_returns_its_exact_output_and_exit_code() {
    let server = Sshd::start();
    let pool = server.pool();
    let output =
        pool.run(command("printf 'a\\0b'; printf 'it'\\''s wrong' >&2; exit 7")).await.expect("an answer");
    assert_eq!((output.stdout.as_slice(), output.stderr.as_slice()), (&b"a\0b"[..], &b"it's wrong"[..]));
    assert_eq!((output.exit_code, output.host), (7, server.host()));
    pool.close().await;
}

#[tokio::test]
async fn output_about_lost_connections_is_ordinary_output() {
    let server = Sshd::start();
    let pool = server.pool();
    let said = "ssh: connect to host x port 22: Connection timed out; connection reset; no route to host";
    for code in [0, 1, 255] {
        let output = pool
            .run(command(&format!("echo '{said}'; echo '{said}' >&2; exit {code}")))
            .await
            .expect("an answer");
        assert_eq!((output.exit_code, output.stdout), (code, format!("{said}\n").into_bytes()));
    }
    pool.close().await;
}

#[tokio::test]
async fn stdin_reaches_the_program_and_ends() {
    let server = Sshd::start();
    let pool = server.pool();
    let mut request = command("wc -c; echo done");
    request.stdin = vec![0; 12_345];
    assert_eq!(pool.run(request).await.expect("an answer").stdout, b"12345\ndone\n");
    assert_eq!(pool.run(command("cat; echo end")).await.expect("an answer").stdout, b"end\n");
}

#[tokio::test]
async fn input_that_the_program_does_not_read_is_harmless() {
    let server = Sshd::start();
    let pool = server.pool();
    let mut request = command("echo early");
    request.stdin = vec![b'x'; 8 << 20];
    assert_eq!(pool.run(request).await.expect("an answer").stdout, b"early\n");
    assert_eq!(pool.run(command("echo next")).await.expect("an answer").stdout, b"next\n");
}

#[tokio::test]
async fn a_program_longer_than_a_packet_runs() {
    let server = Sshd::start();
    let pool = server.pool();
    let mut request = command(&format!("cat; printf %s '{}' | wc -c", "!x\n".repeat(30_000)));
    request.stdin = b"input ".to_vec();
    assert_eq!(pool.run(request).await.expect("an answer").stdout, b"input 90000\n");
}

#[tokio::test]
async fn a_background_child_does_not_delay_the_answer() {
    let server = Sshd::start();
    let pool = server.pool();
    // The child outlives the deadline of the command.
    let output = pool.run(command("sleep 100 & echo started")).await.expect("an answer");
    assert_eq!(output.stdout, b"started\n");
    assert_eq!(pool.run(command("echo next")).await.expect("an answer").stdout, b"next\n");
}

#[tokio::test]
async fn login_noise_and_an_echoed_command_are_not_part_of_the_answer() {
    let noisy = "ForceCommand echo \"Welcome! $SSH_ORIGINAL_COMMAND\"; echo 'quota: 99%' >&2; \
                 eval \"$SSH_ORIGINAL_COMMAND\"; echo goodbye; exit 0";
    let server = Sshd::with(noisy);
    let pool = server.pool();
    let output = pool.run(command("echo 42; echo warning >&2; exit 3")).await.expect("an answer");
    assert_eq!((output.stdout.as_slice(), output.stderr.as_slice()), (&b"42\n"[..], &b"warning\n"[..]));
    assert_eq!(output.exit_code, 3);
}

#[tokio::test]
async fn a_bash_env_file_cannot_write_into_the_answer() {
    let directory = tempfile::tempdir().expect("a directory");
    let noise = directory.path().join("noise");
    std::fs::write(&noise, "echo noise\n").expect("written");
    let server = Sshd::with(&format!("SetEnv BASH_ENV={}", noise.display()));
    let pool = server.pool();
    assert_eq!(pool.run(command("echo 42")).await.expect("an answer").stdout, b"42\n");
}

#[tokio::test]
async fn without_the_end_mark_the_outcome_is_unknown_even_if_the_server_reports_success() {
    // The server runs another command that prints nothing and succeeds: exit status 0 without a frame.
    let server = Sshd::with("ForceCommand exit 0");
    let pool = server.pool();
    let error = pool.run(command("echo 42")).await.expect_err("an answer without a frame");
    assert!(matches!(&error, SshError::OutcomeUnknown { doubt: Doubt::LinkLost, .. }), "{error:?}");
    assert_eq!(error.effect(), Effect::Unknown);
}

#[tokio::test]
async fn half_an_answer_with_exit_status_0_is_an_unknown_outcome() {
    // The output stops before the end mark, with exit status 0.
    let server = Sshd::with("ForceCommand eval \"$SSH_ORIGINAL_COMMAND\" | head -n 2; exit 0");
    let pool = server.pool();
    let error = pool.run(command("seq 10")).await.expect_err("half an answer was accepted");
    assert!(matches!(&error, SshError::OutcomeUnknown { doubt: Doubt::LinkLost, .. }), "{error:?}");
}

#[tokio::test]
async fn one_connection_serves_a_hundred_commands() {
    let server = Sshd::start();
    let pool = server.pool();
    for number in 0..100 {
        let output = pool.run(command(&format!("echo {number}"))).await.expect("an answer");
        assert_eq!(output.stdout, format!("{number}\n").as_bytes());
    }
    let health = pool.health();
    assert_eq!((health.connects_total, health.sessions_open, health.commands_total), (1, 1, 100));
    assert_eq!(server.log().matches("Accepted publickey").count(), 1);
}

#[tokio::test]
async fn long_commands_at_the_same_time_open_a_second_session() {
    let server = Sshd::start();
    let pool = server.pool();
    let (first, second) = (server.path("first"), server.path("second"));
    // Each lasts until the other has begun, however late that is.
    let meets = |own: &Path, other: &Path| {
        let wait = format!("touch {}; until [ -e {} ]; do sleep 0.1; done", own.display(), other.display());
        pool.run(command(&wait))
    };
    let (one, two) = tokio::join!(meets(&first, &second), meets(&second, &first));
    assert!(one.is_ok() && two.is_ok(), "{one:?}, {two:?}");
    assert_eq!(pool.health().connects_total, 2);
}

#[tokio::test]
async fn a_server_that_allows_one_session_per_connection_is_enough() {
    let server = Sshd::with("MaxSessions 1");
    let pool = server.pool();
    for _ in 0..50 {
        pool.run(command("echo x")).await.expect("an answer");
    }
    let health = pool.health();
    assert_eq!((health.connects_total, health.failures_total), (1, 0));
}

#[tokio::test]
async fn a_server_that_runs_no_programs_is_distinguished_from_a_lost_answer() {
    let server = Sshd::with("MaxSessions 0");
    let error = server.pool().run(command("echo x")).await.expect_err("it ran");
    assert!(matches!(error, SshError::NotSent { .. }), "{error:?}");
    assert_eq!(error.effect(), Effect::None);
}

#[tokio::test]
async fn dropping_the_future_affects_neither_the_session_nor_the_next_command() {
    let server = Sshd::start();
    let mut config = server.config();
    config.sessions = 1;
    let pool = ssh::SshPool::start(config);
    pool.run(command("true")).await.expect("an answer");
    let go = server.path("go");
    let program = format!("until [ -e {} ]; do sleep 0.1; done", go.display());
    tokio::select! {
        ended = pool.run(server.marked(&program)) => panic!("{ended:?}"),
        () = server.has_begun() => {}
    }
    // The only session is busy until the file is there.
    let waiting =
        tokio::time::timeout(Duration::from_millis(200), pool.run(command("echo never > /dev/null")));
    assert!(waiting.await.is_err());
    std::fs::write(go, "").expect("written");
    assert_eq!(pool.run(command("echo 42")).await.expect("an answer").stdout, b"42\n");
    let health = pool.health();
    assert_eq!((health.connects_total, health.commands_total), (1, 3), "the withdrawn command was sent");
}

#[tokio::test]
async fn a_closed_pool_refuses_commands_and_lets_a_running_command_end() {
    let server = Sshd::start();
    let pool = server.pool();
    pool.run(command("true")).await.expect("an answer");
    let clone = pool.clone();
    let running = clone.run(server.marked("sleep 1; echo finished"));
    let closing = async {
        server.has_begun().await;
        let begun = Instant::now();
        pool.close().await;
        begun.elapsed()
    };
    let (finished, took) = tokio::join!(running, closing);
    assert_eq!(finished.expect("an answer").stdout, b"finished\n");
    assert!(took < Duration::from_mins(5), "closing took {took:?}");
    assert_eq!(clone.run(command("true")).await.expect_err("it ran"), SshError::Closed);
    assert_eq!(clone.health().sessions_open, 0);
}

#[tokio::test]
async fn user_keys_of_every_type_work() {
    for kind in ["rsa", "ecdsa"] {
        let server = Sshd::start();
        generate_key(&server.path("other_key"), kind);
        std::fs::copy(server.path("other_key.pub"), server.path("authorized_keys")).expect("copied");
        let mut config = server.config();
        config.key_path = Some(server.path("other_key"));
        let output = ssh::SshPool::start(config).run(command("echo x")).await.expect("an answer");
        assert_eq!(output.stdout, b"x\n", "{kind}");
    }
}
