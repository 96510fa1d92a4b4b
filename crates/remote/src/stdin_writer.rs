//! The stdin of a program: lines of tab-separated fields, and blobs whose length is in an earlier line.

use std::time::Duration;

use crate::{Call, commands::StatusCursor};
use slurm::{RemotePath, SlurmJobId};

/// An absent field. No path, number or name of ours is a single dash, and bash's `read` would drop an empty field between two
/// tabs.
pub(crate) const ABSENT: &str = "-";

/// Builds the stdin of a program.
#[derive(Default)]
pub(crate) struct StdinWriter {
    bytes: Vec<u8>,
    in_line: bool,
}

impl StdinWriter {
    /// Adds a field to the current line. The value must not hold a tab or a newline: pass a newtype or a number.
    pub(crate) fn field(&mut self, value: impl std::fmt::Display) -> &mut Self {
        use std::io::Write;
        if self.in_line {
            self.bytes.push(b'\t');
        }
        self.in_line = true;
        // Writing to a Vec cannot fail.
        let _ = write!(self.bytes, "{value}");
        self
    }

    /// Adds a line: its name, so that no line is empty, and a field for each value.
    pub(crate) fn line(
        &mut self,
        name: &'static str,
        values: impl IntoIterator<Item = impl std::fmt::Display>,
    ) -> &mut Self {
        self.field(name);
        for value in values {
            self.field(value);
        }
        self.end_line()
    }

    /// Adds a line for each value.
    pub(crate) fn rows(&mut self, values: impl IntoIterator<Item = impl std::fmt::Display>) {
        for value in values {
            self.field(value).end_line();
        }
    }

    pub(crate) fn path_or_absent(&mut self, path: Option<&RemotePath>) -> &mut Self {
        self.field(path.map_or(ABSENT, RemotePath::as_str))
    }

    pub(crate) fn id_or_absent(&mut self, id: Option<SlurmJobId>) -> &mut Self {
        match id {
            Some(id) => self.field(id),
            None => self.field(ABSENT),
        }
    }

    /// Adds a line for each cursor: the index of its job, inode, offset, time of writing, path.
    pub(crate) fn cursors(&mut self, index: usize, cursors: &[StatusCursor]) -> &mut Self {
        for cursor in cursors {
            self.field(index).field(cursor.inode).field(cursor.offset).field(cursor.written_at);
            self.field(&cursor.path).end_line();
        }
        self
    }

    pub(crate) fn end_line(&mut self) -> &mut Self {
        self.bytes.push(b'\n');
        self.in_line = false;
        self
    }

    /// Adds raw bytes. Their number must be in an earlier line.
    pub(crate) fn blob(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// The call of `program` with this stdin.
    pub(crate) fn call(self, program: &'static str, deadline: Duration, stdout_limit: usize) -> Call {
        Call { program, stdin: self.bytes, deadline, stdout_limit }
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}
