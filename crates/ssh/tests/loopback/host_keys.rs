//! Known, unknown, changed and revoked host keys.

use std::fs;

use ssh::{Effect, HostState, SshConfig, SshError, SshPool};

use crate::sshd::{Sshd, command, generate_key};

fn with_file(server: &Sshd, text: &str) -> SshConfig {
    fs::write(server.path("known_hosts"), text).expect("written");
    let mut config = server.config();
    config.pinned_host_keys = Vec::new();
    config.known_hosts = vec![server.path("absent"), server.path("known_hosts")];
    config
}

fn other_key(server: &Sshd, kind: &str) -> String {
    let name = format!("other_{kind}");
    generate_key(&server.path(&name), kind);
    let public = fs::read_to_string(server.path(&name).with_extension("pub")).expect("a key");
    format!("[127.0.0.1]:{} {public}", server.host().port())
}

#[tokio::test]
async fn an_unknown_host_is_refused_until_the_line_from_the_error_is_added() {
    let server = Sshd::start();
    let config = with_file(&server, "# nothing\n");
    let pool = SshPool::start(config);
    let error = pool.run(command("true")).await.expect_err("an unknown key was trusted");
    let SshError::HostKeyUnknown { line_to_add, fingerprint, .. } = &error else { panic!("{error:?}") };
    assert_eq!(line_to_add, &server.host_key_line(server.host().port()));
    assert!(fingerprint.starts_with("SHA256:") && error.advice().contains(line_to_add), "{error:?}");
    assert_eq!(error.effect(), Effect::None);
    assert!(matches!(pool.health().hosts[0].state, HostState::HostKeyRefused { .. }));
    assert_eq!(pool.run(command("true")).await, Err(error.clone()), "the pool contacted the host again");
    assert_eq!(pool.health().connects_total, 1);
    fs::write(server.path("known_hosts"), format!("{line_to_add}\n")).expect("written");
    pool.run(command("true")).await.expect("an answer from the host, which is known now");
}

#[tokio::test]
async fn a_changed_host_key_is_refused_and_the_error_says_where_the_known_key_is() {
    let server = Sshd::start();
    let old = other_key(&server, "ed25519");
    let pool = SshPool::start(with_file(&server, &format!("\n{old}")));
    let error = pool.run(command("true")).await.expect_err("an unknown key was trusted");
    let SshError::HostKeyChanged { line_to_add, known_at, revoked, .. } = &error else { panic!("{error:?}") };
    assert_eq!(line_to_add, &server.host_key_line(server.host().port()));
    assert!(known_at.len() == 1 && known_at[0].ends_with("known_hosts:2") && !revoked, "{known_at:?}");
    assert!(!server.log().contains("Accepted"), "we logged in to the server");
}

#[tokio::test]
async fn a_host_with_several_keys_is_accepted_by_the_known_one() {
    let directory = tempfile::tempdir().expect("a directory");
    for kind in ["rsa", "ecdsa", "ed25519"] {
        generate_key(&directory.path().join(kind), kind);
    }
    let lines = ["rsa", "ecdsa"].map(|kind| format!("HostKey {}", directory.path().join(kind).display()));
    let server = Sshd::with(&lines.join("\n"));
    for kind in ["rsa", "ecdsa"] {
        let public = fs::read_to_string(directory.path().join(kind).with_extension("pub")).expect("a key");
        let line = format!("[127.0.0.1]:{} {public}", server.host().port());
        SshPool::start(with_file(&server, &line)).run(command("true")).await.expect(kind);
    }
}

#[tokio::test]
async fn a_host_without_a_key_of_the_known_type_has_changed() {
    let server = Sshd::start();
    let rsa = other_key(&server, "rsa");
    let error = SshPool::start(with_file(&server, &rsa)).run(command("true")).await.expect_err("trusted");
    assert!(matches!(error, SshError::HostKeyChanged { .. }), "{error:?}");
}

#[tokio::test]
async fn known_hosts_may_contain_several_keys_patterns_hashed_names_and_damaged_lines() {
    let server = Sshd::start();
    let right = server.host_key_line(server.host().port());
    let several = format!("{}{right}\n", other_key(&server, "ed25519"));
    let damaged = "this is damaged\n@cert-authority *.example.org ssh-rsa AAAA\n";
    let config = with_file(&server, &format!("{damaged}{several}"));
    SshPool::start(config.clone()).run(command("true")).await.expect("one of several keys");
    // ssh-keygen, unlike ssh, rejects damaged lines.
    fs::write(server.path("known_hosts"), several).expect("written");
    let mut keygen = std::process::Command::new("ssh-keygen");
    let hashed =
        keygen.args(["-q", "-H", "-f"]).arg(server.path("known_hosts")).output().expect("ssh-keygen");
    assert!(hashed.status.success(), "{hashed:?}");
    assert!(fs::read_to_string(server.path("known_hosts")).expect("text").contains("|1|"));
    SshPool::start(config).run(command("true")).await.expect("a hashed name");
    let (_, key) = right.split_once(' ').expect("a line");
    SshPool::start(with_file(&server, &format!("[127.0.0.*]:* {key}")))
        .run(command("true"))
        .await
        .expect("a pattern");
}

#[tokio::test]
async fn a_revoked_key_is_refused_even_if_it_is_pinned() {
    let server = Sshd::start();
    let mut config = server.config();
    config.pinned_host_keys.push(format!("@revoked {}", server.host_key_line(server.host().port())));
    let error = SshPool::start(config).run(command("true")).await.expect_err("trusted");
    assert!(matches!(error, SshError::HostKeyChanged { revoked: true, .. }), "{error:?}");
}
