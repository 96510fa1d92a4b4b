//! Makes the data directory and the database in it, once and whole.

use std::{fs, io, path::Path};

use anyhow::Context;

use super::{NAME, account::Account, binaries::Binaries, run};

/// Does nothing when `data` is there. Interrupted, it begins anew: the directory gets its name when it is whole.
pub(super) fn once(data: &Path, binaries: &Binaries, account: &Account) -> anyhow::Result<()> {
    if data.exists() {
        return Ok(());
    }
    let partial = data.with_extension("partial");
    fs::remove_dir_all(&partial).or_else(|error| match error.kind() {
        io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    })?;
    // Nobody else can reach the socket's directory, so who can connect is us. Host connections are refused even
    // if somebody makes it listen.
    let mut initdb = account.command(&binaries.initdb);
    initdb
        .arg("-D")
        .arg(&partial)
        .args(["--encoding=UTF8", "--no-locale", "--data-checksums"])
        .args(["--auth-local=trust", "--auth-host=reject"])
        .arg(format!("--username={NAME}"));
    run(&mut initdb, "").context("cannot initialise a private Postgres")?;
    // Single-user mode needs nothing but the server itself: the client programs may not be installed.
    let mut single = account.command(&binaries.postgres);
    single.arg("--single").arg("-D").arg(&partial).args(["-c", "exit_on_error=true", "postgres"]);
    run(&mut single, &format!("create database {NAME}\n")).context("cannot make the private database")?;
    fs::rename(&partial, data).with_context(|| format!("cannot name {}", data.display()))
}
