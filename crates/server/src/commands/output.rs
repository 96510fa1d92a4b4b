//! What a command says on standard output. Writing through here, a closed pipe is an error like any other and not
//! a panic.

use std::io::{self, IsTerminal, Write};

/// Standard output, and whether a person looks at it.
pub(super) struct Output {
    stdout: io::StdoutLock<'static>,
    pub(super) is_terminal: bool,
}

impl Output {
    pub(super) fn new() -> Self {
        let stdout = io::stdout();
        Self { is_terminal: stdout.is_terminal(), stdout: stdout.lock() }
    }

    /// One line.
    pub(super) fn line(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.stdout, "{text}")?;
        self.stdout.flush()
    }

    /// Exactly these bytes.
    pub(super) fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stdout.write_all(bytes)?;
        self.stdout.flush()
    }

    /// The service's own document, on a line of its own.
    pub(super) fn document(&mut self, body: &[u8]) -> io::Result<()> {
        self.bytes(body)?;
        self.bytes(b"\n")
    }

    /// How wide the terminal is.
    pub(super) fn width(&self) -> usize {
        rustix::termios::tcgetwinsize(&self.stdout).map_or(80, |size| match usize::from(size.ws_col) {
            0 => 80,
            columns => columns,
        })
    }
}

/// A remark beside the output, for a person.
pub(super) fn remark(text: &str) {
    // A closed terminal is no reason to fail.
    let _ = writeln!(io::stderr(), "{text}");
}
