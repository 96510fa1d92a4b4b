//! Large amounts of data in both directions.

use std::time::Duration;

use ssh::{Effect, SshError};

use crate::sshd::{Sshd, command};

const SIZE: usize = 20 << 20;

fn pattern(length: usize) -> Vec<u8> {
    // The period divides no buffer size, so that a lost or repeated piece is detected.
    (0..length).map(|index| u8::try_from(index % 251).unwrap_or_default()).collect()
}

#[tokio::test]
async fn twenty_megabytes_are_transferred_each_way_at_the_same_time() {
    let server = Sshd::start();
    let pool = server.pool();
    let mut request = command("cat");
    request.stdin = pattern(SIZE);
    request.stdout_limit = SIZE;
    request.deadline = Duration::from_mins(2);
    let sent = request.stdin.clone();
    let output = pool.run(request).await.expect("an answer");
    assert!(
        output.stdout == sent,
        "{} of {SIZE} bytes came back, or their content differs",
        output.stdout.len()
    );
    assert_eq!(pool.health().connects_total, 1);
}

#[tokio::test]
async fn output_before_the_input_is_read_does_not_deadlock() {
    let server = Sshd::start();
    let pool = server.pool();
    let mut request = command("head -c 20971520 /dev/zero; head -c 5000000 /dev/zero >&2; wc -c");
    request.stdin = pattern(SIZE);
    request.stdout_limit = 2 * SIZE;
    request.deadline = Duration::from_mins(2);
    let output = pool.run(request).await.expect("an answer");
    assert!(output.stdout.ends_with(b"\x0020971520\n"));
    assert_eq!((output.stdout.len(), output.stderr.len()), (SIZE + 9, 1 << 20));
}

#[tokio::test]
async fn too_much_output_ends_the_command_and_the_session_but_not_the_pool() {
    let server = Sshd::start();
    let pool = server.pool();
    let mut request = command("cat /dev/zero");
    request.stdout_limit = 100_000;
    let error = pool.run(request).await.expect_err("an endless answer");
    assert_eq!(error, SshError::OutputTooLarge { host: server.host(), limit: 100_000 });
    assert_eq!(error.effect(), Effect::Unknown);
    assert_eq!(pool.run(command("echo x")).await.expect("an answer").stdout, b"x\n");
    assert_eq!(pool.health().connects_total, 2);
}
