//! A Postgres of our own, so that a first run needs no database set up.
//!
//! It lives in the data directory, listens on a socket that only this account can reach, and never on the
//! network. Any number of our processes may use it at once: whoever comes first starts it, whoever leaves last
//! stops it (`turnstile`). One that outlived its service (kill -9) is simply used again.

mod account;
mod binaries;
mod initialise;
mod postmaster;
mod socket_dir;
mod turnstile;

use std::{
    fs::{self, File, OpenOptions},
    os::unix::{fs::OpenOptionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use account::Account;
use anyhow::{Context, bail};
use postmaster::Postmaster;
use secrecy::SecretString;
use turnstile::{Turnstile, User};

/// The role and the database we use.
const NAME: &str = "tao_slurm";
/// Recovery after a crash may take a while; a start that takes longer is stuck.
const START_TIMEOUT: Duration = Duration::from_mins(1);
const STOP_TIMEOUT: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The right to use the running private Postgres.
pub(crate) struct EmbeddedPostgres {
    url: SecretString,
    postmaster: Postmaster,
    child: Option<Child>,
    turnstile: Turnstile,
    user: User,
}

/// Where a private Postgres lies below the data directory.
struct Layout {
    /// Owned by the account that runs Postgres.
    home: PathBuf,
    data: PathBuf,
    log: PathBuf,
}

impl Layout {
    fn new(data_dir: &Path) -> Self {
        let home = data_dir.join("postgres");
        Self { data: home.join("data"), home, log: data_dir.join("postgres.log") }
    }
}

impl EmbeddedPostgres {
    /// Starts the Postgres of `data_dir`, or joins the one that runs. Blocks for a second or two.
    pub(crate) fn start(data_dir: &Path, search_path: &[PathBuf]) -> anyhow::Result<Self> {
        let account = Account::for_postgres()?;
        let layout = Layout::new(data_dir);
        let turnstile = Turnstile::new(data_dir);
        let gate = turnstile.close()?;
        let (postmaster, child) = if let Some(running) = Postmaster::running(&layout.data) {
            (running, None)
        } else {
            if turnstile.has_users()? {
                bail!(
                    "another tao-slurm uses {}, but its Postgres cannot be seen from here (is it in another \
                     container?); stop that one, or give this one its own data_dir (TAO_SLURM_DATA_DIR)",
                    data_dir.display()
                );
            }
            account.let_in(data_dir)?;
            account.check_reaches(&layout.home)?;
            let (postmaster, child) = launch(&layout, &account, search_path)?;
            (postmaster, Some(child))
        };
        let mut this =
            Self { url: postmaster.url(NAME), postmaster, child, user: turnstile.enter()?, turnstile };
        this.wait_until_ready(&layout)?;
        drop(gate);
        Ok(this)
    }

    /// How to reach it.
    pub(crate) fn url(&self) -> &SecretString {
        &self.url
    }

    /// Whether it still runs.
    pub(crate) fn is_alive(&mut self) -> bool {
        match &mut self.child {
            Some(child) => matches!(child.try_wait(), Ok(None)),
            None => self.postmaster.is_alive(),
        }
    }

    /// Stops it, unless another of our processes still uses it. Blocks until it is gone.
    pub(crate) fn stop(mut self) -> anyhow::Result<()> {
        let _gate = self.turnstile.close()?;
        if !self.user.is_last()? || !self.is_alive() {
            return Ok(());
        }
        self.postmaster.interrupt()?;
        let begun = Instant::now();
        while self.is_alive() {
            if begun.elapsed() > STOP_TIMEOUT {
                bail!("the private Postgres (process {}) does not stop", self.postmaster.pid());
            }
            pause();
        }
        Ok(())
    }

    fn wait_until_ready(&mut self, layout: &Layout) -> anyhow::Result<()> {
        let begun = Instant::now();
        loop {
            if !self.is_alive() {
                bail!(
                    "the private Postgres ended at its start; the end of {}:\n{}",
                    layout.log.display(),
                    tail(&layout.log)
                );
            }
            if postmaster::is_ready(&layout.data, self.postmaster.pid()) {
                return Ok(());
            }
            if begun.elapsed() > START_TIMEOUT {
                bail!(
                    "the private Postgres does not get ready; the end of {}:\n{}",
                    layout.log.display(),
                    tail(&layout.log)
                );
            }
            pause();
        }
    }
}

fn launch(
    layout: &Layout,
    account: &Account,
    search_path: &[PathBuf],
) -> anyhow::Result<(Postmaster, Child)> {
    account.make_private_dir(&layout.home)?;
    let binaries = binaries::find(&layout.data, search_path)?;
    initialise::once(&layout.data, &binaries, account)?;
    let sockets = socket_dir::make(&layout.home, account)?;
    postmaster::forget_stranger(&layout.data)?;
    let log = open_log(&layout.log)?;
    let child = account
        .command(&binaries.postgres)
        .arg("-D")
        .arg(&layout.data)
        .args(["-c", "listen_addresses=", "-c", "port=5432", "-c", "unix_socket_permissions=0700"])
        .args(["-c", "logging_collector=off", "-c", "log_destination=stderr", "-c", "max_connections=100"])
        .arg("-c")
        .arg(format!("unix_socket_directories={}", sockets.display()))
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        // Its own group: Ctrl-C on the terminal is for us, and we still need the database to stop in order.
        .process_group(0)
        .spawn()
        .with_context(|| format!("cannot start {}", binaries.postgres.display()))?;
    Ok((Postmaster::started(child.id(), &layout.data, sockets)?, child))
}

fn open_log(path: &Path) -> anyhow::Result<File> {
    // One start's words are enough to mend the next; the file must not grow with the years.
    OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
        .with_context(|| format!("cannot write {}", path.display()))
}

fn tail(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(10)..].join("\n")
}

#[expect(
    clippy::disallowed_methods,
    reason = "starting and stopping block on their own thread, beside the runtime"
)]
fn pause() {
    std::thread::sleep(LOOK_EVERY);
}

/// Runs one of Postgres's tools to its end; its words are the error.
fn run(command: &mut Command, input: &str) -> anyhow::Result<()> {
    use std::io::Write;

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
