//! Standard output of a command. A closed pipe is an error here, where `println!` would panic.

use std::{
    io::{self, IsTerminal, Write},
    process::ExitCode,
};

use serde::de::DeserializeOwned;

use crate::{
    cli::ServerArgs,
    client::{Answer, Client, printable, with_query},
};

/// Standard output, and whether it is a terminal.
pub(super) struct Output {
    stdout: io::StdoutLock<'static>,
    pub(super) is_terminal: bool,
}

impl Output {
    pub(super) fn new() -> Self {
        let stdout = io::stdout();
        Self { is_terminal: stdout.is_terminal(), stdout: stdout.lock() }
    }

    pub(super) fn line(&mut self, text: &str) -> io::Result<()> {
        self.bytes(format!("{text}\n").as_bytes())
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stdout.write_all(bytes)?;
        self.stdout.flush()
    }

    /// Bytes that a job wrote: unchanged into a file or pipe, without control characters on a terminal.
    pub(super) fn foreign(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.is_terminal { self.bytes(printable(bytes).as_bytes()) } else { self.bytes(bytes) }
    }

    /// The JSON document of the service: indented on a terminal, else on a line of its own.
    pub(super) fn json(&mut self, answer: &Answer) -> io::Result<()> {
        let indented = if self.is_terminal { indented(&answer.body) } else { None };
        self.bytes(indented.as_deref().unwrap_or(&answer.body))?;
        self.bytes(b"\n")
    }

    /// The JSON document of the service with `--json`, else the text for a person.
    pub(super) fn show<T: DeserializeOwned>(
        &mut self,
        server: &ServerArgs,
        answer: &Answer,
        text: impl FnOnce(T) -> String,
    ) -> anyhow::Result<ExitCode> {
        if server.json {
            self.json(answer)?;
        } else {
            self.bytes(text(answer.document()?).as_bytes())?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// All pages of a list: each JSON document with `--json`, else one table of the entries for a person. `page`: the entries of a
    /// page, and the token of the next one.
    pub(super) fn show_pages<P: DeserializeOwned, E>(
        &mut self,
        server: &ServerArgs,
        path: &str,
        query: &[(&str, Option<String>)],
        page: impl Fn(P) -> (Vec<E>, Option<String>),
        text: impl FnOnce(Vec<E>) -> String,
    ) -> anyhow::Result<ExitCode> {
        let client = Client::new(server);
        let (mut entries, mut token) = (Vec::new(), None);
        loop {
            let pages = [("limit", Some("200".to_owned())), ("page_token", token)];
            let answer = client.get(&with_query(path, query.iter().cloned().chain(pages)))?;
            if server.json {
                self.json(&answer)?;
            }
            let (more, next) = page(answer.document()?);
            entries.extend(more);
            token = next;
            if token.is_none() {
                break;
            }
        }
        if !server.json {
            self.bytes(text(entries).as_bytes())?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// The terminal's width in columns.
    pub(super) fn width(&self) -> usize {
        let columns = rustix::termios::tcgetwinsize(&self.stdout).map_or(0, |size| usize::from(size.ws_col));
        if columns == 0 { 80 } else { columns }
    }

    /// The terminal's height in lines.
    pub(super) fn height(&self) -> usize {
        let lines = rustix::termios::tcgetwinsize(&self.stdout).map_or(0, |size| usize::from(size.ws_row));
        if lines == 0 { 24 } else { lines }
    }
}

/// The document with indentation and its fields in their order, unless it is not JSON.
fn indented(body: &[u8]) -> Option<Vec<u8>> {
    let document: serde_json::Value = serde_json::from_slice(body).ok()?;
    serde_json::to_vec_pretty(&document).ok()
}

/// A note for a person, on standard error.
pub(super) fn note(text: &str) {
    // The command goes on if standard error is closed.
    let _ = writeln!(io::stderr(), "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_indented_and_keeps_the_order_of_its_fields() {
        let text = |body: &str| indented(body.as_bytes()).map(|bytes| String::from_utf8(bytes).unwrap());
        assert_eq!(
            text(r#"{"status":"Done","id":"a","esc":"\u001b[1m"}"#).unwrap(),
            "{\n  \"status\": \"Done\",\n  \"id\": \"a\",\n  \"esc\": \"\\u001b[1m\"\n}"
        );
        assert_eq!(text("not JSON"), None);
    }
}
