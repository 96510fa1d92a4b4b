//! A program to run on a login host, and its answer.

use std::fmt;
use std::time::Duration;

use crate::HostPort;

/// A program to run on a login host.
#[derive(Clone, PartialEq, Eq)]
pub struct Command {
    /// Bash source, run by `bash --noprofile --norc -c`.
    pub program: String,
    /// The bytes for the program's stdin, followed by end of file. May contain secrets.
    ///
    /// A lost connection ends the input early, and the program continues. A program that must not act on
    /// incomplete input has to check its length.
    pub stdin: Vec<u8>,
    /// How long the program may run. The login host enforces it as well, rounded up to a second.
    pub deadline: Duration,
    /// The most bytes of stdout that are accepted.
    pub stdout_limit: usize,
    /// Whether the program may run again after a failure that left its outcome unknown.
    pub repeatable: bool,
}

impl fmt::Debug for Command {
    /// Lengths only: the program and its input may contain secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command")
            .field("program_bytes", &self.program.len())
            .field("stdin_bytes", &self.stdin.len())
            .field("deadline", &self.deadline)
            .field("stdout_limit", &self.stdout_limit)
            .field("repeatable", &self.repeatable)
            .finish()
    }
}

/// The complete answer of a program that ended.
#[derive(Clone, PartialEq, Eq)]
pub struct Output {
    /// Exactly what the program wrote to stdout, without output of the login shell.
    pub stdout: Vec<u8>,
    /// What the program wrote to stderr, without output of the login shell, cut after one mebibyte.
    pub stderr: Vec<u8>,
    /// The program's exit code; 128 + n after signal n.
    pub exit_code: i32,
    /// The login host that ran it.
    pub host: HostPort,
    /// From sending the request to the last byte of the answer.
    pub elapsed: Duration,
}

impl fmt::Debug for Output {
    /// Lengths only: the output may contain secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Output")
            .field("stdout_bytes", &self.stdout.len())
            .field("stderr_bytes", &self.stderr.len())
            .field("exit_code", &self.exit_code)
            .field("host", &self.host)
            .field("elapsed", &self.elapsed)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_lengths_and_never_content() {
        let command = Command {
            program: "echo hunter2".to_owned(),
            stdin: b"hunter2".to_vec(),
            deadline: Duration::from_secs(1),
            stdout_limit: 10,
            repeatable: true,
        };
        let shown = format!("{command:?}");
        assert!(shown.contains("stdin_bytes: 7") && !shown.contains("hunter2"), "{shown}");
    }
}
