//! Standard output of a command. A closed pipe is an error here, where `println!` would panic.

use std::{
    io::{self, IsTerminal, Write},
    process::ExitCode,
};

use anstream::{AutoStream, ColorChoice, adapter::strip_str};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    cli::{Format, ServerArgs},
    client::{Answer, Client, on_one_line, printable, with_query},
};

/// Standard output, and whether it is a terminal.
pub(super) struct Output {
    stdout: io::StdoutLock<'static>,
    pub(super) is_terminal: bool,
    /// By the terminal, and by `NO_COLOR` and `CLICOLOR_FORCE`.
    has_colors: bool,
}

impl Output {
    pub(super) fn new() -> Self {
        let stdout = io::stdout();
        let has_colors = AutoStream::choice(&stdout) != ColorChoice::Never;
        Self { is_terminal: stdout.is_terminal(), has_colors, stdout: stdout.lock() }
    }

    /// Text of this program, which may have colours.
    pub(super) fn text(&mut self, text: &str) -> io::Result<()> {
        if self.has_colors {
            self.bytes(text.as_bytes())
        } else {
            self.bytes(strip_str(text).to_string().as_bytes())
        }
    }

    pub(super) fn line(&mut self, text: &str) -> io::Result<()> {
        self.text(&format!("{text}\n"))
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stdout.write_all(bytes)?;
        self.stdout.flush()
    }

    /// Bytes that a job wrote: unchanged into a file or pipe, without control characters on a terminal.
    pub(super) fn foreign(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.is_terminal { self.bytes(printable(bytes).as_bytes()) } else { self.bytes(bytes) }
    }

    /// A document for a program: JSON, indented on a terminal and else on a line of its own, or YAML.
    pub(super) fn document(&mut self, format: Format, document: &Value) -> anyhow::Result<()> {
        let text = written(format, document, self.is_terminal)?;
        Ok(self.bytes(text.as_bytes())?)
    }

    /// The answer of the service in the format that the user chose; `text`: the answer for a person.
    pub(super) fn show<T: DeserializeOwned>(
        &mut self,
        server: &ServerArgs,
        answer: &Answer,
        text: impl FnOnce(T) -> String,
    ) -> anyhow::Result<ExitCode> {
        match server.output {
            Format::Json | Format::Yaml => self.document(server.output, &answer.document()?)?,
            Format::Name => self.bytes(names(&answer.document()?).as_bytes())?,
            Format::Text | Format::Wide => self.text(&text(answer.document()?))?,
        }
        Ok(ExitCode::SUCCESS)
    }

    /// All pages of a list as one document or one table. `page`: the entries of a page, and the token of the next one.
    pub(super) fn show_pages<P: DeserializeOwned, E>(
        &mut self,
        server: &ServerArgs,
        path: &str,
        query: &[(&str, Option<String>)],
        page: impl Fn(P) -> (Vec<E>, Option<String>),
        text: impl FnOnce(Vec<E>) -> String,
    ) -> anyhow::Result<ExitCode> {
        let client = Client::new(server)?;
        let (mut entries, mut document, mut token) = (Vec::new(), Value::Null, None);
        loop {
            let pages = [("limit", Some("200".to_owned())), ("page_token", token)];
            let answer = client.get(&with_query(path, query.iter().cloned().chain(pages)))?;
            append(&mut document, answer.document()?);
            let (more, next) = page(answer.document()?);
            entries.extend(more);
            token = next;
            if token.is_none() {
                break;
            }
        }
        match server.output {
            Format::Json | Format::Yaml => self.document(server.output, &document)?,
            Format::Name => self.bytes(names(&document).as_bytes())?,
            Format::Text | Format::Wide => self.text(&text(entries))?,
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

/// Adds the entries of a page to the pages before it. Of all else the last page has the newest.
pub(super) fn append(pages: &mut Value, page: Value) {
    match (pages, page) {
        (Value::Object(pages), Value::Object(page)) => {
            for (key, value) in page {
                match (pages.get_mut(&key), value) {
                    (Some(Value::Array(entries)), Value::Array(more)) => entries.extend(more),
                    (_, value) => {
                        pages.insert(key, value);
                    }
                }
            }
        }
        (pages, page) => *pages = page,
    }
}

fn written(format: Format, document: &Value, is_terminal: bool) -> anyhow::Result<String> {
    Ok(match format {
        Format::Yaml => format!("---\n{}", serde_saphyr::to_string(document)?),
        _ if is_terminal => serde_json::to_string_pretty(document)? + "\n",
        _ => serde_json::to_string(document)? + "\n",
    })
}

/// The id or name of the document, or of each entry of its first list, one on each line.
fn names(document: &Value) -> String {
    let own = |value: &Value| {
        let name = ["id", "name", "number", "task"].iter().find_map(|key| value.get(key))?;
        let name = name.as_str().map_or_else(|| name.to_string(), str::to_owned);
        Some(on_one_line(&name) + "\n")
    };
    let entries = |fields: &serde_json::Map<String, Value>| {
        let list = fields
            .values()
            .find_map(|value| value.as_array().filter(|list| list.iter().all(Value::is_object)));
        list.into_iter().flatten().filter_map(own).collect::<String>()
    };
    match document {
        Value::Object(fields) => own(document).unwrap_or_else(|| entries(fields)),
        Value::Array(list) => list.iter().filter_map(own).collect(),
        _ => String::new(),
    }
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
    fn json_is_indented_on_a_terminal_and_else_on_one_line() {
        let document = serde_json::json!({"id": "a", "nodes": [1]});
        let text = |format, is_terminal| written(format, &document, is_terminal).unwrap();
        assert_eq!(text(Format::Json, true), "{\n  \"id\": \"a\",\n  \"nodes\": [\n    1\n  ]\n}\n");
        assert_eq!(text(Format::Json, false), "{\"id\":\"a\",\"nodes\":[1]}\n");
        assert_eq!(text(Format::Yaml, true), text(Format::Yaml, false));
    }

    #[test]
    fn names_are_those_of_a_document_or_of_the_entries_of_a_list() {
        let found = |json: &str| names(&serde_json::from_str(json).unwrap());
        assert_eq!(found(r#"{"id": "a", "jobs": [{"id": "b"}]}"#), "a\n");
        assert_eq!(
            found(r#"{"jobs": [{"id": "a"}, {"id": "b\u001b"}], "next_page_token": null}"#),
            "a\nb\u{241b}\n"
        );
        assert_eq!(found(r#"{"tasks": [{"task": 7}]}"#), "7\n");
        assert_eq!(found(r#"[{"name": "accuracy", "value": 1}]"#), "accuracy\n");
        assert_eq!(found("{}"), "");
    }

    #[test]
    fn pages_become_one_document() {
        let mut pages = Value::Null;
        append(&mut pages, serde_json::json!({"jobs": [1, 2], "next_page_token": "x"}));
        append(&mut pages, serde_json::json!({"jobs": [3], "next_page_token": null}));
        assert_eq!(pages, serde_json::json!({"jobs": [1, 2, 3], "next_page_token": null}));
    }
}
