//! Installs credentials of a private registry for enroot.

use std::time::Duration;

use crate::{
    Call, InvalidNetrcWord, NetrcWord, ParseError, RawOutput, RemoteCommand, Repeat, answer::Answer,
    stdin_writer::StdinWriter,
};

const PROGRAM: &str = program!("preamble", "enroot_config", "install_credentials");

/// Ten seconds to wait for another writer, and a few small files.
const DEADLINE: Duration = Duration::from_secs(20);

/// Writes an entry to `~/.config/enroot/.credentials` (0600, in a directory 0700). It replaces every entry of the same
/// machine, because enroot uses the first one; all others stay as they are.
///
/// enroot finds an entry by its line, which must begin with `machine NAME login USER` (`docker.sh`), so it is
/// written on a line of its own.
#[derive(Debug, Clone)]
pub struct InstallCredentials {
    machine: NetrcWord,
    login: NetrcWord,
    password: NetrcWord,
}

impl InstallCredentials {
    /// Checks the password as [`NetrcWord::password`] does; the other words are already checked.
    pub fn new(machine: NetrcWord, login: NetrcWord, password: &str) -> Result<Self, InvalidNetrcWord> {
        Ok(Self { machine, login, password: NetrcWord::password(password)? })
    }
}

impl RemoteCommand for InstallCredentials {
    type Output = ();

    const NAME: &'static str = "install_credentials";
    const REPEAT: Repeat = Repeat::Safe;

    fn render(&self) -> Call {
        let mut stdin = StdinWriter::default();
        stdin
            .field(self.machine.expose())
            .field(self.login.expose())
            .field(self.password.expose())
            .end_line();
        stdin.call(PROGRAM, DEADLINE, super::STDOUT_BASE)
    }

    fn rpcs(&self) -> u32 {
        0
    }

    fn parse(&self, raw: &RawOutput) -> Result<Self::Output, ParseError> {
        let answer = Answer::read(Self::NAME, raw)?;
        let line = answer.lines().next().ok_or_else(|| answer.lacks("whether they are installed"))?;
        if line.tag == b"INSTALLED" { Ok(()) } else { Err(line.malformed("an unknown kind of line")) }
    }
}
