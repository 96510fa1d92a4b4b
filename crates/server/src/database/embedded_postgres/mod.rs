//! A private Postgres, so that a first run needs no database.
//!
//! It keeps its data in the data directory, and listens only on a Unix socket that no other account can reach. Several
//! processes may use it at once: the first one starts it and the last one stops it (`locks`). If it outlives a killed
//! service, the next one uses it again.

mod account;
mod binaries;
mod locks;
mod process;
mod socket_dir;

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::{fs::OpenOptionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use account::Account;
use anyhow::{Context, bail};
use binaries::Binaries;
use locks::Locks;
use secrecy::SecretString;
use url::form_urlencoded::byte_serialize;

/// The name of our role and of our database.
const NAME: &str = "tao_slurm";
/// In seconds. Recovery after a crash takes a while; a start that takes longer is stuck.
const START_TIMEOUT: &str = "60";
const STOP_TIMEOUT: &str = "30";

/// A share in the running private Postgres.
pub(crate) struct EmbeddedPostgres {
    server: Server,
    url: SecretString,
    locks: Locks,
    share: File,
}

/// The private Postgres of a data directory.
struct Server {
    /// Owned by the account that runs Postgres.
    home: PathBuf,
    data: PathBuf,
    log: PathBuf,
    account: Account,
    binaries: Binaries,
}

impl EmbeddedPostgres {
    /// Starts the Postgres of `data_dir`, or joins the running one. Blocks for a second or two.
    pub(crate) fn start(data_dir: &Path, search_path: &[PathBuf]) -> anyhow::Result<Self> {
        let server = Server::find(data_dir, search_path)?;
        let locks = Locks::new(data_dir);
        let _exclusive = locks.start_or_stop()?;
        let sockets = socket_dir::of(&server.home, server.account.uid);
        if !server.is_running() {
            if locks.has_users()? {
                bail!(
                    "another tao-slurm uses {}, but its Postgres is not visible from here (does it run in another \
                     container?); stop it, or give this one its own data_dir (TAO_SLURM_DATA_DIR)",
                    data_dir.display()
                );
            }
            server.account.let_in(data_dir)?;
            server.account.check_reaches(&server.home)?;
            server.account.make_private_dir(&server.home)?;
            server.initialise()?;
            server.account.make_private_dir(&sockets)?;
            server.start(&sockets)?;
        }
        let host: String = byte_serialize(sockets.as_os_str().as_encoded_bytes()).collect();
        // A host that is a directory means a socket in it.
        let url = format!("postgres:///{NAME}?host={host}&port=5432&user={NAME}&sslmode=disable").into();
        Ok(Self { server, url, share: locks.share()?, locks })
    }

    pub(crate) fn url(&self) -> &SecretString {
        &self.url
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.server.is_running()
    }

    /// Stops Postgres unless another of our processes uses it. Blocks until it has ended.
    pub(crate) fn stop(self) -> anyhow::Result<()> {
        let _exclusive = self.locks.start_or_stop()?;
        if locks::is_last(&self.share)? && self.is_alive() {
            let mut stop = self.server.pg_ctl("stop", STOP_TIMEOUT);
            run(stop.args(["-m", "fast"]), "").context("cannot stop the private Postgres")?;
        }
        Ok(())
    }
}

impl Server {
    fn find(data_dir: &Path, search_path: &[PathBuf]) -> anyhow::Result<Self> {
        let account = Account::for_postgres()?;
        let home = data_dir.join("postgres");
        let data = home.join("data");
        // pg_ctl passes the path to a shell, in double quotes.
        if data.to_string_lossy().contains(['"', '$', '`', '\\']) {
            bail!(
                "data_dir {} has one of the characters \" $ ` \\, which pg_ctl does not support; set another one \
                 (TAO_SLURM_DATA_DIR), or set DATABASE_URL",
                data_dir.display()
            );
        }
        let binaries = binaries::find(&data, search_path)?;
        Ok(Self { home, data, log: data_dir.join("postgres.log"), account, binaries })
    }

    fn is_running(&self) -> bool {
        process::running(&self.data).is_some()
    }

    fn pg_ctl(&self, action: &str, timeout: &str) -> Command {
        let mut command = self.account.command(&self.binaries.pg_ctl);
        command.args([action, "--silent", "--wait", "--timeout", timeout, "-D"]).arg(&self.data);
        // Ctrl-C on the terminal must not interrupt it: the service needs the database to stop in order.
        command.process_group(0);
        command
    }

    /// Creates the data directory and the database, unless they exist. The directory gets its name when it is complete, so an
    /// interrupted run is repeated.
    fn initialise(&self) -> anyhow::Result<()> {
        if self.data.exists() {
            return Ok(());
        }
        let partial = self.data.with_extension("partial");
        fs::remove_dir_all(&partial).or_else(|error| match error.kind() {
            io::ErrorKind::NotFound => Ok(()),
            _ => Err(error),
        })?;
        // Only this account can reach the socket, so a connection needs no password. Connections over the network are rejected.
        let mut initdb = self.account.command(&self.binaries.initdb);
        initdb
            .arg("-D")
            .arg(&partial)
            .args(["--encoding=UTF8", "--no-locale", "--data-checksums"])
            .args(["--auth-local=trust", "--auth-host=reject"])
            .arg(format!("--username={NAME}"));
        run(&mut initdb, "").context("cannot initialise the private Postgres")?;
        // Single-user mode, because the client programs may not be installed.
        let mut single = self.account.command(&self.binaries.postgres);
        single.arg("--single").arg("-D").arg(&partial).args(["-c", "exit_on_error=true", "postgres"]);
        run(&mut single, &format!("create database {NAME}\n"))
            .context("cannot create the private database")?;
        fs::rename(&partial, &self.data).with_context(|| format!("cannot create {}", self.data.display()))
    }

    fn start(&self, sockets: &Path) -> anyhow::Result<()> {
        process::remove_stale_pid_file(&self.data)?;
        // Each start truncates the log, so that it does not grow over the years.
        let log = OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(&self.log);
        let log = log.with_context(|| format!("cannot write {}", self.log.display()))?;
        let options = format!(
            "-c listen_addresses= -c port=5432 -c unix_socket_permissions=0700 -c unix_socket_directories={} \
             -c logging_collector=off -c log_destination=stderr -c max_connections=100",
            sockets.display()
        );
        let started = self
            .pg_ctl("start", START_TIMEOUT)
            .args(["-o", &options])
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .status()
            .with_context(|| format!("cannot run {}", self.binaries.pg_ctl.display()))?;
        if started.success() {
            return Ok(());
        }
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let tail = lines[lines.len().saturating_sub(10)..].join("\n");
        bail!("the private Postgres did not start; the end of {}:\n{tail}", self.log.display())
    }
}

/// Runs a program of Postgres to its end. Its error output becomes the error.
fn run(command: &mut Command, input: &str) -> anyhow::Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {program}"))?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input.as_bytes())?;
    }
    let output = child.wait_with_output()?;
    if output.status.success() {
        return Ok(());
    }
    bail!("{program} failed ({}):\n{}", output.status, String::from_utf8_lossy(&output.stderr).trim_end())
}

#[cfg(test)]
mod tests;
