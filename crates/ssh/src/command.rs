//! What is asked of a cluster, and what it answered.

use std::fmt;
use std::time::Duration;

use crate::HostPort;

/// A program to run on a login host.
#[derive(Clone, PartialEq, Eq)]
pub struct Command {
    /// Bash source, run by `bash --noprofile --norc -c`.
    pub program: String,
    /// What the program finds on its standard input, followed by end of file. May hold secrets.
    ///
    /// A lost link ends the input early, and the program goes on: one that must not act on half of it
    /// checks the length.
    pub stdin: Vec<u8>,
    /// How long the program may run. The remote side enforces it as well, rounded up to a second.
    pub deadline: Duration,
    /// The most bytes of standard output that are accepted.
    pub stdout_limit: usize,
    /// Whether it is safe to run the program again after a failure that left its outcome unknown.
    pub repeatable: bool,
}

impl fmt::Debug for Command {
    /// Lengths only: both the program and its input can carry secrets.
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

/// The whole answer of a program that ended.
#[derive(Clone, PartialEq, Eq)]
pub struct Output {
    /// Exactly what the program wrote, without login noise.
    pub stdout: Vec<u8>,
    /// What the program wrote, without login noise, cut after one mebibyte.
    pub stderr: Vec<u8>,
    /// The code the program ended with; 128 + n after signal n.
    pub exit_code: i32,
    /// The login host that ran it.
    pub host: HostPort,
    /// From sending the request to the last byte of the answer.
    pub elapsed: Duration,
}

impl fmt::Debug for Output {
    /// Lengths only: output can repeat secrets.
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
