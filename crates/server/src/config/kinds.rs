//! The types that keys can have, and how each is read from the file and from an environment variable.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    path::{Path, PathBuf},
    str::FromStr,
    time::Duration,
};

use humantime_serde::re::humantime::{format_duration, parse_duration};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use toml::Value;

use super::{database_url, declare::Setting};

/// How callers prove who they are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AuthMode {
    #[default]
    Tokens,
    Disabled,
}

/// The token of a log-in that the API gets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TokenKind {
    #[default]
    AccessToken,
    IdToken,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    #[default]
    Human,
    Json,
}

/// Each type: what it takes, how it reads an environment variable, and how it is shown, if not as it is.
macro_rules! kinds {
    ($($type:ty, $takes:literal, $of_text:expr $(, shown $shown:expr)?;)+) => { $(
        impl Setting for $type {
            const TAKES: &'static str = $takes;

            fn of_value(value: &Value) -> Option<Self> {
                value.clone().try_into().ok()
            }

            fn of_text(text: &str) -> Option<Self> {
                $of_text(text)
            }

            fn shown(&self) -> Option<Value> {
                kinds!(@shown self $($shown)?)
            }
        }
    )+ };
    (@shown $value:ident) => { Value::try_from($value).ok() };
    (@shown $value:ident $shown:expr) => { $shown($value) };
}

kinds! {
    bool, "true or false", flag;
    u32, "a whole number", parsed;
    i32, "a whole number", parsed;
    usize, "a whole number", parsed;
    f64, "a number", parsed;
    String, "a string", parsed;
    SocketAddr, "an IP address and a port", parsed;
    PathBuf, "a path", parsed, shown path;
    SecretString, "a string", quoted, shown |url| Some(database_url::redacted(url).into());
    AuthMode, "\"tokens\" or \"disabled\"", quoted;
    TokenKind, "\"access_token\" or \"id_token\"", quoted;
    LogFormat, "\"human\" or \"json\"", quoted;
    Vec<String>, "a list of strings", |text: &str| Some(list(text));
    Vec<PathBuf>, "a list of paths", |text: &str| Some(list(text));
    BTreeMap<String, String>, "a table of strings", quoted;
    toml::Table, "a table", quoted;
    BTreeMap<String, Vec<String>>, "a table of lists", quoted;
}

fn parsed<T: FromStr>(text: &str) -> Option<T> {
    text.parse().ok()
}

/// Like a string of the file.
fn quoted<T: Setting>(text: &str) -> Option<T> {
    T::of_value(&text.into())
}

/// Comma-separated.
fn list<T: From<String>>(text: &str) -> Vec<T> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts.map(|part| part.to_owned().into()).collect()
}

/// What TAO takes for yes and no.
fn flag(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "y" | "on" => Some(true),
        "0" | "false" | "no" | "n" | "off" => Some(false),
        _ => None,
    }
}

/// An empty path stands for a default that depends on the machine.
fn path(path: &Path) -> Option<Value> {
    (!path.as_os_str().is_empty()).then(|| path.display().to_string().into())
}

impl<T: Setting> Setting for Option<T> {
    const TAKES: &'static str = T::TAKES;

    fn of_value(value: &Value) -> Option<Self> {
        T::of_value(value).map(Some)
    }

    fn of_text(text: &str) -> Option<Self> {
        T::of_text(text).map(Some)
    }

    fn shown(&self) -> Option<Value> {
        self.as_ref()?.shown()
    }
}

impl Setting for Duration {
    const TAKES: &'static str = "a duration";

    fn of_value(value: &Value) -> Option<Self> {
        Self::of_text(value.as_str()?)
    }

    fn of_text(text: &str) -> Option<Self> {
        parse_duration(text).ok()
    }

    fn shown(&self) -> Option<Value> {
        Some(format_duration(*self).to_string().into())
    }
}
