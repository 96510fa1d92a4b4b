//! A request from a file or from standard input, in JSON or in YAML.

use std::{
    fmt,
    fs::File,
    io::{self, Read},
    path::Path,
    str,
};

use anyhow::{Context, anyhow, bail};
use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Number, Value};
use serde_saphyr::{MessageFormatter, UserMessageFormatter};

use crate::client::on_one_line;

/// Larger files are refused.
const LARGEST: u64 = 4 * 1024 * 1024;

/// The request in the file as JSON; `-` is standard input. `what` must be in it, for messages.
pub(super) fn read(file: &Path, what: &str) -> anyhow::Result<Vec<u8>> {
    let (name, text) = if file == Path::new("-") {
        ("standard input".to_owned(), limited(io::stdin().lock()))
    } else {
        (on_one_line(&file.display().to_string()), File::open(file).and_then(limited))
    };
    let text = text.with_context(|| format!("cannot read {name}"))?;
    if text.len() as u64 > LARGEST {
        bail!("{name} has more than {} MiB; make it smaller", LARGEST >> 20);
    }
    as_json(&name, text, what)
}

fn limited(file: impl Read) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    // One byte more shows that the file is too large.
    file.take(LARGEST + 1).read_to_end(&mut text)?;
    Ok(text)
}

/// JSON stays as it is: the service validates it and names what is wrong.
fn as_json(name: &str, text: Vec<u8>, what: &str) -> anyhow::Result<Vec<u8>> {
    if text.trim_ascii().is_empty() {
        bail!("{name} is empty; it must contain {what} as JSON or YAML");
    }
    if text.trim_ascii_start().starts_with(b"{") {
        let Document(_) = serde_json::from_slice(&text).map_err(|error| {
            let whole = error.to_string();
            let place = format!(" at line {} column {}", error.line(), error.column());
            let why = whole.strip_suffix(&place).unwrap_or(&whole);
            anyhow!("{name}:{}:{}: {}", error.line(), error.column(), on_one_line(why))
        })?;
        return Ok(text);
    }
    let text = str::from_utf8(&text).map_err(|error| {
        let before = String::from_utf8_lossy(&text[..error.valid_up_to()]);
        let (line, last) = before.split('\n').enumerate().last().unwrap_or_default();
        let column = last.chars().count() + 1;
        anyhow!("{name}:{}:{column}: the file is not UTF-8; save it as UTF-8", line + 1)
    })?;
    let Document(value) =
        serde_saphyr::from_str_with_options(text, options()).map_err(|error| yaml_error(name, &error))?;
    if !value.is_object() {
        bail!("{name} has no fields; it must contain {what} as JSON or YAML, such as `image: …`");
    }
    Ok(serde_json::to_vec(&value)?)
}

/// Words such as `no` and numbers such as `007` are text, as in YAML 1.2 or closer to what the author sees.
fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        reject_unsupported_tags: true,
        // The file may have secrets.
        with_snippet: false,
    }
}

fn yaml_error(name: &str, error: &serde_saphyr::Error) -> anyhow::Error {
    use serde_saphyr::Error as Yaml;
    let place = error.location().map(|at| format!(":{}:{}", at.line(), at.column())).unwrap_or_default();
    let why = match error {
        Yaml::MultipleDocuments { .. } => {
            "a second document begins here; put each one into a file of its own".to_owned()
        }
        Yaml::DuplicateMappingKey { key: Some(key), .. } => duplicate(key),
        _ => UserMessageFormatter.format_message(error).into_owned(),
    };
    anyhow!("{name}{place}: {}", on_one_line(&why))
}

fn duplicate(key: &str) -> String {
    format!("the key `{key}` occurs twice; remove one")
}

/// A JSON value without duplicate keys and without numbers that JSON does not have.
#[derive(Debug, PartialEq)]
struct Document(Value);

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader).map(Self)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value that JSON has")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        let number = Number::from_f64(value).map(Value::Number);
        number
            .ok_or_else(|| E::custom(format!("{value} is not a number in JSON; quote it to make it a text")))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Document(value)) = items.next_element()? {
            list.push(value);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if map.contains_key(&key) {
                return Err(A::Error::custom(duplicate(&key)));
            }
            let Document(value) = entries.next_value()?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests;
